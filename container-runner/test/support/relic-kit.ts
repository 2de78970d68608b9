/** Calls to relics as the Worker makes them, and the definitions of the bundled relics. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

import { DEFAULT_OPERATOR_LIMITS } from '../../operator-limits.ts';
import type { TestRunner } from './test-runner.ts';

export interface RelicReply {
  readonly httpStatus: number;
  readonly status?: number;
  readonly body?: unknown;
  readonly error?: { readonly code: string; readonly message: string; readonly before_dispatch: boolean };
  readonly detail?: string;
  readonly code?: string;
}

type Definition = Record<string, unknown>;

const shipped = (name: string): string =>
  fs.readFileSync(fileURLToPath(new URL(`../../../manifests/relics/${name}/service.py`, import.meta.url)), 'utf8');

/** A relic of one Python file; its health checks have long timeouts, so that a slow restart does not break a call. */
export function pythonRelic(source: string, more: Definition = {}): Definition {
  return {
    build: { base: 'python3', files: { 'service.py': source }, entrypoint: 'service.py' },
    port: 8080,
    health: { path: '/health', interval_ms: 5_000 },
    ...more,
  };
}

export const KEY_VALUE = pythonRelic(shipped('key_value'), { persistent: true });
export const SQL_STORE = pythonRelic(shipped('sql_store'), { persistent: true });

/** Runs the code that it receives, as a malicious relic could. The code has `out`, its answer, and `me`, the handler. */
export const EVIL = pythonRelic(`
import http.server, json, os
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def say(self, value):
        body = json.dumps(value).encode()
        self.send_response(200); self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_GET(self): self.say({})
    def do_POST(self):
        out = {}
        code = json.loads(self.rfile.read(int(self.headers["content-length"])))["code"]
        try: exec(code, {"out": out, "me": self})
        except BaseException as fault: out["fault"] = repr(fault)
        self.say(out)
http.server.ThreadingHTTPServer(("0.0.0.0", int(os.environ["RELIC_PORT"])), Handler).serve_forever()
`);

/** Limits of an operator that states reach soon. */
export const NARROW = { ...DEFAULT_OPERATOR_LIMITS, diskMb: 64 };

/** Code that makes a state exceed a limit, and words of the reason. */
export const HOARDERS = {
  bytes: {
    code: 'for i in range(40): open(f"/state/{i}", "wb").write(b"x" * 4_000_000)',
    words: 'more than 64 MiB',
  },
  files: {
    code: 'for i in range(20_000): os.close(os.open(f"/state/{i}", os.O_CREAT))',
    words: 'more than 16384 files',
  },
  directories: { code: 'os.makedirs("/state/a/b"); os.chmod("/state/a", 0)', words: 'cannot be read' },
} as const;

export class RelicCaller {
  readonly #runner: Pick<TestRunner, 'ask'>;
  readonly #space: string;

  constructor(runner: Pick<TestRunner, 'ask'>, space: string) {
    this.#runner = runner;
    this.#space = space;
  }

  async call(
    name: string,
    relic: Definition,
    [method = '', path = '', body]: readonly [string, string, unknown?],
    timeoutMs = 30_000,
  ): Promise<RelicReply> {
    const response = await this.#runner.ask('POST', `/relics/${name}/call`, {
      space: this.#space,
      relic,
      call: { method, path, ...(body === undefined ? {} : { body: JSON.stringify(body) }) },
      timeout_ms: timeoutMs,
    });
    const reply = (await response.json()) as Record<string, unknown>;
    return {
      ...reply,
      httpStatus: response.status,
      ...(typeof reply['body'] === 'string' && reply['body'].startsWith('{')
        ? { body: JSON.parse(reply['body']) }
        : {}),
    };
  }

  async list(): Promise<Record<string, unknown>[]> {
    const response = await this.#runner.ask('GET', `/relics?space=${this.#space}`);
    return ((await response.json()) as { relics: Record<string, unknown>[] }).relics;
  }

  async stop(forget = false): Promise<void> {
    await this.#runner.ask('DELETE', `/relics?space=${this.#space}${forget ? '&forget=true' : ''}`);
  }
}
