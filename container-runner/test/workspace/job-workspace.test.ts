/** Jobs with a workspace: from the request to the result, over restarts (C7). */
import fs from 'node:fs';

import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { parseJob } from '../../jobs/job.ts';
import { Jobs } from '../../jobs/jobs.ts';
import { Ledger } from '../../ledger/ledger.ts';
import { limits } from '../../limits.ts';
import { DEFAULT_OPERATOR_LIMITS } from '../../operator-limits.ts';
import { Prewarmer } from '../../prewarm.ts';
import { SandboxRegistry } from '../../sandbox/registry.ts';
import type { Launch } from '../../sandbox/sandbox.ts';
import { FakeSandbox } from '../support/fake-sandbox.ts';
import { type JobBody, type SessionEvent, startRunner, type TestRunner } from '../support/test-runner.ts';
import { cacheKit, download, jobFile, sha256Of, upload } from '../support/workspace-kit.ts';
import { eventually } from '../../../test/support/eventually.ts';

let sandbox: FakeSandbox;
let runner: TestRunner;
let now: number;
beforeEach(async () => {
  sandbox = new FakeSandbox('docker');
  now = Date.now();
  runner = await startRunner({ sandboxes: [sandbox], now: () => now });
});
afterEach(async () => {
  await runner.close();
});

const MAX = 1_000_000;
function job(files: readonly unknown[], more: JobBody = {}): JobBody {
  return { session: 'ses_1', kind: 'python', code: 'x', workspace: { files, max_bytes: MAX }, ...more };
}
async function recordOf(id: string): Promise<Record<string, unknown>> {
  return (await (await runner.ask('GET', `/jobs/${id}`)).json()) as Record<string, unknown>;
}
async function exitOf(id: string): Promise<SessionEvent['data'] | undefined> {
  const events = await runner.watch('ses_1', 0, (event) => event.type === 'exited' && event.job === id);
  return events.at(-1)?.data;
}
async function restart(options: Partial<Parameters<typeof startRunner>[0]> = {}): Promise<void> {
  const { stateDir } = runner;
  await runner.stop();
  sandbox = new FakeSandbox('docker');
  runner = await startRunner({ sandboxes: [sandbox], now: () => now, stateDir, ...options });
}

const NONE = { changes: [], skipped: [], skipped_count: 0, error: null };

describe('the program', () => {
  test('[C7] gets the files with their bytes', async () => {
    await upload(runner, 'ses_1', 'hello', 'run');
    await runner.put('a', job([jobFile('data/a.txt', 'hello'), jobFile('run.sh', 'run', true)]));
    const files = sandbox.started[0]?.launch.workspace?.files ?? [];
    expect(files.map(({ source, ...file }) => ({ ...file, bytes: fs.readFileSync(source, 'utf8') }))).toEqual([
      { path: 'data/a.txt', size: 5, executable: false, modifiedAt: 1_000, bytes: 'hello' },
      { path: 'run.sh', size: 3, executable: true, modifiedAt: 1_000, bytes: 'run' },
    ]);
  });

  const kinds: readonly (readonly [string, JobBody])[] = [
    ['python', {}],
    ['shell', { kind: 'shell', inputs: { CORTEX_WORKSPACE: '/etc', x: '1' } }],
    ['docker', { kind: 'docker', code: undefined, image: 'busybox', inputs: { x: '1' } }],
    ['a script tool', { kind: 'tool', runtime: 'shell' }],
    ['an image tool', { kind: 'tool', code: undefined, image: 'busybox' }],
    ['a built tool', { kind: 'tool', code: undefined, build: { files: { 'main.py': '' }, entrypoint: 'main.py' } }],
  ];
  test.each(kinds)('[C7] of %s knows its folder; only docker jobs start there by an option', async (kind, body) => {
    await runner.put('a', job([], body));
    await runner.put('b', { ...job([], body), workspace: undefined });
    await eventually(() => expect(sandbox.started.length).toBe(2));
    const [with_, without] = sandbox.started.map(({ launch }) => launch);
    expect(with_?.env['CORTEX_WORKSPACE']).toBe('/workspace');
    expect(with_?.workspace?.files).toEqual([]);
    expect(with_ !== undefined && 'directory' in with_ ? with_.directory : undefined).toBe(
      kind === 'docker' ? '/workspace' : undefined,
    );
    expect(without?.env).not.toHaveProperty('CORTEX_WORKSPACE');
    expect(without).not.toHaveProperty('workspace');
    expect(without).not.toHaveProperty('directory');
    if (kind === 'python') expect((with_ as Launch).entry).toBe('code');
  });
});

describe('what it leaves', () => {
  test('[C7] is in its last event and in its record, again after a restart; its bytes can be read', async () => {
    await upload(runner, 'ses_1', 'old', 'same');
    await runner.put('a', job([jobFile('changed', 'old'), jobFile('gone', 'old'), jobFile('same', 'same')]));
    const entries = [
      { path: 'changed', bytes: 'new' },
      { path: 'same', bytes: 'same' },
      { path: 'link', kind: 'symlink' as const },
    ];
    sandbox.started[0]?.end({ exitCode: 3 }, { entries });
    const workspace = {
      changes: [
        { path: 'changed', base: sha256Of('old'), sha256: sha256Of('new'), size: 3, executable: false },
        { path: 'gone', base: sha256Of('old'), deleted: true },
      ],
      skipped: [{ path: 'link', reason: 'symbolic links are not kept' }],
      skipped_count: 1,
      error: null,
    };
    const exited = { end: 'exited', exit_code: 3, truncated: false, workspace };
    expect(await exitOf('a')).toEqual(exited);
    expect(await recordOf('a')).toMatchObject(exited);
    await restart();
    expect(await recordOf('a')).toMatchObject(exited);
    expect(await exitOf('a')).toEqual(exited);
    expect((await download(runner, 'ses_1', [sha256Of('new')]))[0]?.bytes).toBe('new');
  });

  test('[C7] is an error past the bytes that the job allows', async () => {
    await runner.put('a', job([]));
    sandbox.started[0]?.end({}, { entries: [{ path: 'a', bytes: 'x'.repeat(MAX + 1) }] });
    expect((await exitOf('a'))?.['workspace']).toMatchObject({ changes: [], error: { code: 'workspace_full' } });
  });

  test.each([
    ['killed', async () => void (await runner.ask('DELETE', '/jobs/a'))],
    ['timeout', () => undefined],
    ['oom', () => sandbox.started[0]?.end({ oom: true }, { entries: [{ path: 'a', bytes: '1' }] })],
    ['lost', () => sandbox.started[0]?.end({ lost: true }, { entries: [{ path: 'a', bytes: '1' }] })],
  ])('[C7] does not count if it ended as %s', async (end, act) => {
    await runner.put('a', job([], { limits: { timeout_ms: end === 'timeout' ? 1 : 60_000 } }));
    await act();
    const exited = await exitOf('a');
    expect(exited?.['end']).toBe(end);
    expect(exited).not.toHaveProperty('workspace');
    expect(await recordOf('a')).not.toHaveProperty('workspace');
  });

  test('[C7] is absent for a job without a workspace', async () => {
    await runner.put('a', { session: 'ses_1', kind: 'python', code: 'x' });
    sandbox.started[0]?.end();
    expect(await exitOf('a')).toEqual({ end: 'exited', exit_code: 0, truncated: false });
    expect(await recordOf('a')).not.toHaveProperty('workspace');
  });

  test('[C7] is nothing if its sandbox did not start', async () => {
    sandbox.start = () => Promise.reject(new Error('no space'));
    await runner.put('a', job([]));
    expect(await exitOf('a')).toMatchObject({ end: 'exited', exit_code: 126, workspace: NONE });
  });
});

describe('missing files', () => {
  async function missing(answer: Response): Promise<unknown> {
    expect(answer.status).toBe(409);
    const problem = (await answer.json()) as Record<string, unknown>;
    expect(problem['code']).toBe('missing_files');
    return problem['missing'];
  }

  test('[C7] are named, each once; nothing is recorded, and the id can be used', async () => {
    await upload(runner, 'ses_1', 'here');
    const body = job([jobFile('a', 'absent'), jobFile('b', 'here'), jobFile('c', 'absent'), jobFile('d', 'other')]);
    expect(await missing(await runner.put('a', body))).toEqual([sha256Of('absent'), sha256Of('other')]);
    expect((await runner.ask('GET', '/jobs/a')).status).toBe(404);
    expect(sandbox.started).toEqual([]);
    await upload(runner, 'ses_1', 'absent', 'other');
    expect((await runner.put('a', body)).status).toBe(202);
    expect((await runner.put('a', body)).status).toBe(200);
    // The same attempt, submitted again after a crash of its host, may have other files by then.
    expect((await runner.put('a', job([]))).status).toBe(200);
    expect(sandbox.started).toHaveLength(1);
  });

  test('[C7] include those that only another session has', async () => {
    await upload(runner, 'ses_2', 'secret');
    expect(await missing(await runner.put('a', job([jobFile('a', 'secret')])))).toEqual([sha256Of('secret')]);
  });

  test('[C7] of a job that was queued: it is lost and does not start', async () => {
    await upload(runner, 'ses_1', 'x');
    for (let at = 0; at < limits.jobsRunning; at += 1) await runner.put(`busy-${at}`, job([]));
    await runner.put('queued', job([jobFile('a', 'x')]));
    await runner.ask('DELETE', '/workspaces/ses_1');
    sandbox.started[0]?.end();
    expect(await exitOf('queued')).toEqual({ end: 'lost', exit_code: null, truncated: false });
    expect((await recordOf('queued'))['stderr']).toBe('The file "a" was lost in the cache of the runner\n');
    expect(sandbox.started.length).toBe(limits.jobsRunning);
  });

  test('[C7] a full runner says so before it asks for files', async () => {
    await restart({ operatorLimits: { ...DEFAULT_OPERATOR_LIMITS, running: 1, queued: 0 } });
    await runner.put('a', job([]));
    expect((await runner.put('b', job([jobFile('a', 'absent')]))).status).toBe(429);
  });
});

test('[C7] files of queued and running jobs are kept, those of ended ones expire', async () => {
  const kit = cacheKit();
  const files = kit.open(() => now);
  const ledger = new Ledger(':memory:', () => now);
  const sandboxes = await SandboxRegistry.open([sandbox], new Map(), null);
  const prewarmer = new Prewarmer(sandboxes);
  const operatorLimits = { ...DEFAULT_OPERATOR_LIMITS, running: 1 };
  const log = pino({ level: 'silent' });
  const jobs = new Jobs({
    ledger,
    sandboxes,
    files,
    images: [],
    prewarmer,
    operatorLimits,
    log,
    killGraceMs: 1,
    now: () => now,
  });
  const submit = async (id: string, session: string): Promise<void> => {
    await kit.put(files, session, 'x');
    await jobs.submit(id, parseJob(JSON.stringify(job([jobFile('a', 'x')], { session }))));
  };
  const expire = (): void => {
    now += limits.workspaceCacheMs + 1;
    files.prune();
  };
  const present = async (): Promise<boolean[]> =>
    await Promise.all(['running', 'queued', 'killed'].map((session) => files.has(session, sha256Of('x'))));
  try {
    for (const id of ['running', 'queued', 'killed']) await submit(id, id);
    expire();
    expect(await present()).toEqual([true, true, true]);
    jobs.kill('killed');
    expire();
    expect(await present()).toEqual([true, true, false]);
    await eventually(() => expect(sandbox.started.length).toBe(1));
    sandbox.started[0]?.end();
    await eventually(() => expect(sandbox.started.length).toBe(2));
    expire();
    expect(await present()).toEqual([false, true, false]);
    sandbox.started[1]?.end();
    await jobs.drain();
    expire();
    expect(await present()).toEqual([false, false, false]);
  } finally {
    await jobs.stop();
    ledger.close();
    kit.close();
  }
});

test('[C7] many concurrent requests for one job are one execution', async () => {
  await upload(runner, 'ses_1', 'x');
  const body = job([jobFile('a', 'x')]);
  const answers = await Promise.all(Array.from({ length: 20 }, () => runner.put('a', body)));
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array.from({ length: 19 }, () => 200), 202]);
  expect(sandbox.started.length).toBe(1);
});

describe('a request is rejected:', () => {
  const one = jobFile('a', 'x');
  const cases: readonly (readonly [string, string, unknown])[] = [
    ['a path that leads out', 'workspace.files.0.path', { files: [jobFile('../x', 'x')], max_bytes: MAX }],
    ['an absolute path', 'workspace.files.0.path', { files: [jobFile('/etc/x', 'x')], max_bytes: MAX }],
    ['a duplicate', '"a" is a duplicate', { files: [one, one], max_bytes: MAX }],
    ['a file below a file', '"a/b" is below the file "a"', { files: [jobFile('a/b', 'x'), one], max_bytes: MAX }],
    ['a hash that is a path', 'sha256', { files: [{ ...one, sha256: '../x' }], max_bytes: MAX }],
    ['a negative size', 'size', { files: [{ ...one, size: -1 }], max_bytes: MAX }],
    ['a huge size', 'size', { files: [{ ...one, size: limits.workspaceFileBytes + 1 }], max_bytes: MAX }],
    [
      'too many bytes in total',
      'in total',
      {
        files: Array.from({ length: 5 }, (_, at) => ({ ...one, path: `f${at}`, size: limits.workspaceFileBytes })),
        max_bytes: MAX,
      },
    ],
    [
      'too many files',
      'files',
      {
        files: Array.from({ length: limits.workspaceFiles + 1 }, (_, at) => ({ ...one, path: `f${at}` })),
        max_bytes: 1,
      },
    ],
    ['no limit', 'max_bytes', { files: [] }],
    ['a limit that is too large', 'max_bytes', { files: [], max_bytes: limits.workspaceBytes + 1 }],
    ['an unknown field', 'source', { files: [{ ...one, source: '/etc/passwd' }], max_bytes: MAX }],
    ['a time that is not a number', 'modified_at', { files: [{ ...one, modified_at: 'now' }], max_bytes: MAX }],
  ];
  test.each(cases)('[C7] %s', (_, named, workspace) => {
    expect(() => parseJob(JSON.stringify({ ...job([]), workspace }))).toThrow(named);
  });

  test('[C7] a size that the file does not have', async () => {
    await upload(runner, 'ses_1', 'x');
    const answer = await runner.put('a', job([{ ...one, size: 2 }]));
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      code: 'invalid_request',
      detail: expect.stringContaining('workspace.files.0.size'),
    });
    expect((await runner.ask('GET', '/jobs/a')).status).toBe(404);
  });
});
