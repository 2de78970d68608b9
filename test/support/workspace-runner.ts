/**
 * A runner whose programs only change files: each line of the code is `write PATH TEXT`, `delete PATH`, `cat PATH`, `exit N`,
 * `link PATH`, `full`, `timeout`, or `wait NAME`, which waits until the test opens that gate. Remembers its jobs.
 */
import { createHash } from 'node:crypto';
import { EngineError } from '../../src/domain/errors.ts';
import type { JobObserver, JobResult, RunnerClient, RunnerJob } from '../../src/domain/ports/runner.ts';
import type { WorkspaceChange } from '../../src/domain/workspace.ts';

export interface WorkspaceRunner extends RunnerClient {
  /** Every submitted job, also those that were submitted again. */
  readonly jobs: RunnerJob[];
  /** Hashes of the files whose bytes were read, by job. */
  readonly sent: Map<string, string[]>;
  /** Bytes that the runner has, by hash; deleting one loses it. */
  readonly bytes: Map<string, Uint8Array>;
  /** Lets programs pass `wait NAME`. */
  open(gate: string): void;
}

export const hashOf = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex');

export function workspaceRunner(): WorkspaceRunner {
  const gates = new Map<string, { readonly opened: Promise<void>; readonly open: () => void }>();
  const gate = (name: string): { readonly opened: Promise<void>; readonly open: () => void } => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const made = gates.get(name) ?? { opened: promise, open: resolve };
    gates.set(name, made);
    return made;
  };
  const ended = new Map<string, Promise<JobResult>>();
  const runner: WorkspaceRunner = {
    jobs: [],
    sent: new Map(),
    bytes: new Map(),
    open: (name) => gate(name).open(),
    run: async (job, observe) => {
      runner.jobs.push(job);
      const running = ended.get(job.id) ?? execute(job, observe);
      ended.set(job.id, running);
      return await running;
    },
    lookup: async ({ id }) => (await ended.get(id)) ?? null,
    callRelic: () => Promise.reject(new Error('no relics')),
    stopRelics: () => Promise.resolve(),
    forgetWorkspace: () => Promise.resolve(),
    prewarm: () => undefined,
    health: () => Promise.resolve({ status: 'healthy' }),
  };

  async function execute(job: RunnerJob, { signal }: JobObserver): Promise<JobResult> {
    const given = job.workspace?.files ?? [];
    const files = new Map<string, string>();
    for (const { path, sha256 } of given) {
      const known = runner.bytes.get(sha256);
      const bytes = known ?? (await job.workspace?.read(sha256)) ?? new Uint8Array();
      if (known === undefined) runner.sent.set(job.id, [...(runner.sent.get(job.id) ?? []), sha256]);
      runner.bytes.set(sha256, bytes);
      files.set(path, new TextDecoder().decode(bytes));
    }
    const result = { end: 'exited', exitCode: 0, stdout: '', stderr: '', truncated: false } as const;
    const skipped: { path: string; reason: string }[] = [];
    let stdout = '';
    let exitCode = 0;
    let error: NonNullable<JobResult['workspace']>['error'] = null;
    for (const line of job.code.trim().split('\n')) {
      const [verb, path = '', ...rest] = line.trim().split(' ');
      if (verb === 'write') files.set(path, rest.join(' '));
      if (verb === 'delete') files.delete(path);
      if (verb === 'cat') stdout += files.get(path) ?? `${path} is missing`;
      if (verb === 'exit') exitCode = Number(path);
      if (verb === 'link') skipped.push({ path, reason: 'a symbolic link' });
      if (verb === 'full') error = { code: 'workspace_full', message: 'The program left 2,001 files (allowed: 2,000)' };
      if (verb === 'timeout') return { ...result, end: 'timeout', exitCode: null };
      if (verb === 'wait') await Promise.race([gate(path).opened, aborted(signal)]);
      if (signal.aborted) return { ...result, end: 'killed', exitCode: null };
    }
    const before = new Map(given.map((file) => [file.path, file.sha256]));
    const changes: WorkspaceChange[] = [];
    for (const [path, text] of files) {
      const bytes = new TextEncoder().encode(text);
      const sha256 = hashOf(bytes);
      runner.bytes.set(sha256, bytes);
      const base = before.get(path) ?? null;
      if (sha256 !== base) changes.push({ path, base, sha256, size: bytes.length, executable: false });
    }
    for (const [path, base] of before) if (!files.has(path)) changes.push({ path, base, deleted: true });
    if (job.workspace === undefined) return { ...result, exitCode, stdout };
    async function* read(hashes: readonly string[]): AsyncGenerator<readonly [string, Uint8Array]> {
      for (const sha256 of hashes) {
        const bytes = runner.bytes.get(sha256);
        if (bytes === undefined) throw new EngineError('runner_unavailable', 'the runner lost the files');
        yield [sha256, bytes];
      }
    }
    const left = error === null ? changes : [];
    return {
      ...result,
      exitCode,
      stdout,
      workspace: { changes: left, skipped, skippedCount: skipped.length, error, read },
    };
  }
  return runner;
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
