/** A project without mistakes in a folder of its own, and a machine whose programs, addresses and clock the test decides. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { COMPATIBILITY_DATE, COMPATIBILITY_FLAGS } from '../../../cli/doctor/check-wrangler.ts';
import { examine } from '../../../cli/doctor/doctor.ts';
import type { DoctorOptions } from '../../../cli/doctor/doctor.ts';
import type { Finding } from '../../../cli/doctor/finding.ts';
import { machine } from '../../../cli/doctor/machine.ts';
import type { Machine, ProgramEnd } from '../../../cli/doctor/machine.ts';
import { RUNTIME_ENTRYPOINTS, RUNTIME_OBJECTS } from '../../../src/domain/bindings.ts';

/** 2026-11-26T10:00:00Z; an HTTP date has no milliseconds. */
const NOW = Date.UTC(2026, 10, 26, 10);

const classes = Object.values(RUNTIME_OBJECTS);
const WRANGLER = `name = "mine"
main = "src/worker.ts"
compatibility_date = "${COMPATIBILITY_DATE}"
compatibility_flags = [${COMPATIBILITY_FLAGS.map((flag) => `"${flag}"`).join(', ')}]

[build]
command = "true"

${Object.entries(RUNTIME_OBJECTS)
  .map(([name, type]) => `[[durable_objects.bindings]]\nname = "${name}"\nclass_name = "${type}"\n`)
  .join('\n')}
[[migrations]]
tag = "v1"
new_sqlite_classes = [${classes.map((name) => `"${name}"`).join(', ')}]
`;

const FILES: Readonly<Record<string, string>> = {
  'wrangler.toml': WRANGLER,
  'src/worker.ts': `import { createWorker } from 'cortex-edge';\nexport default createWorker({});\nexport {\n  ${[...classes, ...RUNTIME_ENTRYPOINTS].join(',\n  ')},\n} from 'cortex-edge';\n`,
  'package.json': JSON.stringify({ name: 'mine' }),
  'package-lock.json': JSON.stringify({
    packages: { 'node_modules/cortex-edge': { version: '1.2.3' }, 'node_modules/zod': { version: '4.6.7' } },
  }),
  'node_modules/cortex-edge/package.json': JSON.stringify({ version: '1.2.3' }),
  'node_modules/zod/package.json': JSON.stringify({ version: '4.6.7' }),
  '.dev.vars': `API_KEYS=admin:admin:0123456789abcdef0123\n`,
  'manifests/tools/ping.yaml': `kind: Tool
version: "1.0"
name: ping
summary: Answers.
implementation: {type: builtin, entrypoint: echo}
parameters: {text: string}
`,
};

export class Project implements Disposable {
  readonly root = mkdtempSync(join(tmpdir(), 'cortex-doctor-'));
  /** By `program first-argument`; others end with 0. */
  readonly programs: Record<string, Partial<ProgramEnd>> = {
    'wrangler whoami': { status: 0, stdout: 'You are logged in' },
    'wrangler secret': { status: 0, stdout: '[{"name": "API_KEYS", "type": "secret_text"}]' },
    'git ls-files': { status: 1 },
  };
  /** Answers by address; others refuse the connection. */
  readonly answers: Record<string, (headers: Headers) => Response> = {};
  readonly environment: Record<string, string> = {};
  readonly takenPorts = new Set<number>();
  nodeVersion = '24.1.0';
  hasWrangler = true;

  constructor() {
    for (const [path, text] of Object.entries(FILES)) this.write(path, text);
  }

  write(path: string, text: string): void {
    const file = join(this.root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** Replaces a part of a file, which must have it. */
  change(path: string, part: string, replacement: string): void {
    const text = readFileSync(join(this.root, path), 'utf8');
    if (!text.includes(part)) throw new Error(`${path} has no ${part}`);
    this.write(path, text.replace(part, replacement));
  }

  remove(path: string): void {
    rmSync(join(this.root, path), { recursive: true });
  }

  settings(lines: string): void {
    this.write('.dev.vars', `${FILES['.dev.vars'] ?? ''}${lines}\n`);
  }

  /** @param url of a system or a runner @param options.ahead by how much its clock is, in milliseconds */
  answer(url: string, body: object | number, { ahead = 0 }: { readonly ahead?: number } = {}): void {
    const status = typeof body === 'number' ? body : 200;
    const date = new Date(NOW + ahead).toUTCString();
    this.answers[url] = () => new Response(JSON.stringify(body), { status, headers: { date } });
  }

  async examine(options: Partial<DoctorOptions> = {}, parts: Partial<Machine> = {}): Promise<Finding[]> {
    const { nodeVersion, environment, programs, hasWrangler, answers, takenPorts } = this;
    const endOf = (call: string): ProgramEnd => {
      const end = programs[call] ?? {};
      return { status: 0, stdout: '', output: end.stdout ?? '', ...end };
    };
    const own: Machine = {
      ...machine,
      nodeVersion,
      environment,
      now: () => NOW,
      run: async (_folder, program, [first = '']) => await Promise.resolve(endOf(`${program} ${first}`)),
      wrangler: async (_folder, [first = '']) => await Promise.resolve(hasWrangler ? endOf(`wrangler ${first}`) : null),
      fetch: async (url, init = {}) => {
        const known = Object.keys(answers).find((address) => url.startsWith(address));
        const answer = known === undefined ? undefined : answers[known];
        if (answer === undefined) throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });
        return await Promise.resolve(answer(new Headers(init.headers)));
      },
      isPortFree: async (port) => await Promise.resolve(!takenPorts.has(port)),
      ...parts,
    };
    return await examine({ root: this.root, env: null, system: null, rights: 'isolated', ...options }, own);
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
