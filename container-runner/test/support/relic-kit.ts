/** Calls to relics as the Worker makes them, and the definitions of the bundled relics. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

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
