/** A runner on a free port, with signed requests as the Worker sends them. */
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

import { createParser } from 'eventsource-parser';
import { SignJWT } from 'jose';
import { pino } from 'pino';

import type { JobEnd } from '../../jobs/job.ts';
import { limits } from '../../limits.ts';
import { createRunner, type RunnerOptions } from '../../runner.ts';
import { withSnapshot } from './python-snapshot.ts';

export const SECRET = 'a secret of the tests, long enough for anyone';

export interface Result {
  readonly end: JobEnd;
  readonly exitCode: number | null;
  readonly truncated: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

export interface SessionEvent {
  readonly seq: number;
  readonly type: string;
  readonly job: string;
  readonly data: Record<string, unknown>;
}

export type JobBody = Record<string, unknown>;

export interface TestRunner {
  readonly url: string;
  readonly stateDir: string;
  /** A signed request; a body is sent as JSON, bytes as they are. */
  ask(method: string, target: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  put(id: string, body: JobBody, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** Events of a session until `enough` returns true. */
  watch(
    session: string,
    after: number | null,
    enough: (event: SessionEvent, all: readonly SessionEvent[]) => boolean,
  ): Promise<SessionEvent[]>;
  /** Runs one job to its end. */
  run(
    body: JobBody,
    onOutput?: (stream: string, text: string) => void,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Result>;
  /** Stops the runner and keeps its state for the next one. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

export function job(body: JobBody): JobBody {
  return { session: 'ses_test', ...body };
}

export async function startRunner(options: Partial<RunnerOptions> = {}): Promise<TestRunner> {
  const stateDir = options.stateDir ?? (await fs.mkdtemp(path.join(os.tmpdir(), 'runner-test-')));
  if (options.sandboxes === undefined && (options.sandbox ?? 'wasm') === 'wasm') withSnapshot(stateDir);
  const runner = await createRunner({
    host: '127.0.0.1',
    port: 0,
    secret: SECRET,
    sandbox: null,
    allowProcess: false,
    logLevel: 'silent',
    // with the test's own sandboxes, the engine is not needed
    dockerSocket: options.sandboxes === undefined ? (process.env['RUNNER_DOCKER'] ?? null) : 'off',
    images: ['*'],
    warm: limits.warm,
    pipIndex: null,
    baseImages: {},
    log: pino({ level: 'silent' }),
    ...options,
    stateDir,
  });
  const { url } = runner;

  const ask: TestRunner['ask'] = async (method, target, body, headers = {}) => {
    const request = await signed(
      url,
      method,
      target,
      body === undefined ? '' : body instanceof Uint8Array ? body : JSON.stringify(body),
      firstKey(options.secret ?? SECRET),
    );
    for (const [name, value] of Object.entries(headers)) request.headers.set(name, value);
    return await fetch(request);
  };
  const put: TestRunner['put'] = (id, body, headers) => ask('PUT', `/jobs/${encodeURIComponent(id)}`, body, headers);

  async function watch(
    session: string,
    after: number | null,
    enough: (event: SessionEvent, all: readonly SessionEvent[]) => boolean,
  ): Promise<SessionEvent[]> {
    const response = await ask('GET', `/events?session=${session}${after === null ? '' : `&after=${after}`}`);
    if (!response.ok || response.body === null)
      throw new Error(`GET /events: ${response.status} ${await response.text()}`);
    const seen: SessionEvent[] = [];
    let done = false;
    const parser = createParser({
      onEvent: ({ id, event, data }) => {
        if (done) return;
        const { job: jobId, data: payload } = JSON.parse(data) as { job: string; data: Record<string, unknown> };
        const arrived = { seq: Number(id), type: event ?? '', job: jobId, data: payload };
        seen.push(arrived);
        done = enough(arrived, seen);
      },
    });
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const chunk = await reader.read();
      if (chunk.done) break;
      parser.feed(decoder.decode(chunk.value, { stream: true }));
      if (done) break;
    }
    await reader.cancel();
    return seen;
  }

  const run: TestRunner['run'] = async (body, onOutput, headers) => {
    const id = randomUUID();
    const session = `ses_${id}`;
    const accepted = await put(id, { session, ...body }, headers);
    if (!accepted.ok) throw new Error(`PUT: ${accepted.status} ${await accepted.text()}`);
    const events = await watch(session, 0, ({ type, data }) => {
      if (type === 'stdout' || type === 'stderr') {
        onOutput?.(type, String(data['text']));
      }
      return type === 'exited';
    });
    const printed = (stream: string): string =>
      events
        .filter(({ type }) => type === stream)
        .map(({ data }) => String(data['text']))
        .join('');
    const exited = events.at(-1)?.data ?? {};
    return {
      end: exited['end'] as JobEnd,
      exitCode: exited['exit_code'] as number | null,
      truncated: exited['truncated'] === true,
      stdout: printed('stdout'),
      stderr: printed('stderr'),
    };
  };

  return {
    url,
    stateDir,
    ask,
    put,
    watch,
    run,
    stop: () => runner.close(),
    async close() {
      await runner.close();
      await fs.rm(stateDir, { recursive: true, force: true });
    },
  };
}

export interface Tampering {
  readonly secret?: string;
  readonly claims?: Record<string, unknown>;
  /** Sent instead of the signed body. */
  readonly sentBody?: string;
  readonly sentTarget?: string;
  readonly sentMethod?: string;
  readonly algorithm?: string;
  readonly keyId?: string;
}

/** The secret for requests to a runner with these keys: the first one. */
function firstKey(keys: string): Pick<Tampering, 'secret' | 'keyId'> {
  const [, keyId, secret = keys] = /^([\w.-]+)=([^,]{32,})/.exec(keys) ?? [];
  return { secret, ...(keyId === undefined ? {} : { keyId }) };
}

/** A signed request, or one that was tampered with. */
export async function signed(
  url: string,
  method: string,
  target: string,
  body: string | Uint8Array,
  tampering: Tampering = {},
): Promise<Request> {
  const now = Math.floor(Date.now() / 1_000);
  const token = await new SignJWT({
    aud: 'cortex-runner',
    iat: now,
    exp: now + 60,
    jti: randomUUID(),
    htm: method,
    htu: target,
    bod: createHash('sha256').update(body).digest('base64url'),
    ...tampering.claims,
  })
    .setProtectedHeader({
      alg: tampering.algorithm ?? 'HS256',
      ...(tampering.keyId === undefined ? {} : { kid: tampering.keyId }),
    })
    .sign(new TextEncoder().encode(tampering.secret ?? SECRET));
  const sent = tampering.sentBody ?? body;
  return new Request(`${url}${tampering.sentTarget ?? target}`, {
    method: tampering.sentMethod ?? method,
    headers: { authorization: `Bearer ${token}` },
    ...(sent === '' ? {} : { body: typeof sent === 'string' ? sent : Buffer.from(sent) }),
  });
}
