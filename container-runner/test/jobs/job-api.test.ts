/** The job API: one execution per id, one resumable stream per session, a limited number of places (R1, R8). */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { limits } from '../../limits.ts';
import { DEFAULT_OPERATOR_LIMITS } from '../../operator-limits.ts';
import { FakeSandbox } from '../support/fake-sandbox.ts';
import { job, signed, startRunner, type TestRunner } from '../support/test-runner.ts';
import { eventually } from '../../../test/support/eventually.ts';

let sandbox: FakeSandbox;
let runner: TestRunner;
beforeEach(async () => {
  sandbox = new FakeSandbox();
  runner = await startRunner({ sandboxes: [sandbox] });
});
afterEach(async () => {
  await runner.close();
});

const hello = job({ kind: 'python', code: 'print(1)' });
const ended = ({ type }: { type: string }): boolean => type === 'exited';

async function problemOf(response: Response): Promise<{ status: number; code: string; detail: string }> {
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  const problem = (await response.json()) as { status: number; code: string; detail: string };
  expect(problem.status).toBe(response.status);
  return problem;
}

async function recordOf(id: string): Promise<Record<string, unknown>> {
  return (await (await runner.ask('GET', `/jobs/${encodeURIComponent(id)}`)).json()) as Record<string, unknown>;
}

describe('one execution per id', () => {
  test('[R1] a repeated job is executed once, also among many concurrent requests', async () => {
    const id = 'ses_1/run_2/1/0/1';
    const answers = await Promise.all(Array.from({ length: 20 }, () => runner.put(id, hello)));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array.from({ length: 19 }, () => 200), 202]);
    expect(await (await runner.put(id, hello)).json()).toMatchObject({ id, state: 'running', sandbox: 'wasm' });
    expect(sandbox.started.length).toBe(1);
  });

  test('[R1] the same id with another body is refused', async () => {
    await runner.put('a', hello);
    const answer = await runner.put('a', { ...hello, code: 'print(2)' });
    expect(answer.status).toBe(409);
    expect(await problemOf(answer)).toMatchObject({ code: 'id_conflict' });
    expect(sandbox.started.length).toBe(1);
  });

  test('[C7] [J2] the same id with other files of the workspace is the same job, which keeps its files', async () => {
    const workspace = { files: [], max_bytes: 10 };
    await runner.put('a', { ...hello, workspace });
    const answer = await runner.put('a', { ...hello, workspace: { ...workspace, max_bytes: 20 } });
    expect(answer.status).toBe(200);
    expect(sandbox.started.length).toBe(1);
  });

  test('[R1] a job that has ended returns its outcome and does not run again', async () => {
    await runner.put('a', hello);
    sandbox.started[0]?.print('out');
    sandbox.started[0]?.end({ exitCode: 4 });
    await runner.watch('ses_test', 0, ended);
    expect(await (await runner.put('a', hello)).json()).toMatchObject({ state: 'ended', end: 'exited', exit_code: 4 });
    expect(await recordOf('a')).toMatchObject({ end: 'exited', exit_code: 4, stdout: 'out', stderr: '' });
    expect(sandbox.started.length).toBe(1);
  });

  test('[R1] a job killed before its request arrives never starts', async () => {
    expect((await runner.ask('DELETE', '/jobs/late')).status).toBe(202);
    expect(await (await runner.put('late', hello)).json()).toMatchObject({ state: 'ended', end: 'killed' });
    expect(sandbox.started).toEqual([]);
  });

  test('[R1] a waiting job that is killed never starts', async () => {
    for (let at = 0; at < limits.jobsRunning; at += 1) await runner.put(`busy-${at}`, hello);
    await runner.put('waiting', hello);
    await runner.ask('DELETE', '/jobs/waiting');
    expect(await recordOf('waiting')).toMatchObject({ state: 'ended', end: 'killed', started_at: null });
    sandbox.started[0]?.end();
    await runner.watch('ses_test', 0, (event) => event.type === 'exited' && event.job === 'busy-0');
    expect(sandbox.started.length).toBe(limits.jobsRunning);
  });

  test('[R1] an unknown job is 404', async () => {
    const answer = await runner.ask('GET', '/jobs/nobody');
    expect(answer.status).toBe(404);
    expect(await problemOf(answer)).toMatchObject({ code: 'unknown_job' });
  });
});

describe('events', () => {
  test('[R1] a session gets the events of its jobs in order, with increasing numbers', async () => {
    await runner.put('a', hello);
    sandbox.started[0]?.print('one');
    await runner.watch('ses_test', 0, ({ type }) => type === 'stdout');
    sandbox.started[0]?.end({ exitCode: 1 });
    const events = await runner.watch('ses_test', 0, ended);
    expect(events.map(({ type, data }) => [type, data])).toEqual([
      ['started', { sandbox: 'wasm' }],
      ['stdout', { text: 'one' }],
      ['exited', { end: 'exited', exit_code: 1, truncated: false }],
    ]);
    const numbers = events.map(({ seq }) => seq);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  });

  test('[R1] resuming gives exactly the missed events, then new ones', async () => {
    await runner.put('a', hello);
    for (const text of ['1', '2', '3']) {
      sandbox.started[0]?.print(text);
      await runner.watch('ses_test', 0, ({ data }) => data['text'] === text);
    }
    const first = await runner.watch('ses_test', 0, ({ data }) => data['text'] === '2');
    const rest = runner.watch('ses_test', first.at(-1)?.seq ?? 0, ended);
    sandbox.started[0]?.end();
    expect((await rest).map(({ type, data }) => data['text'] ?? type)).toEqual(['3', 'exited']);
  });

  test('[R1] without a resume position, unfinished and recent jobs are sent from their beginning', async () => {
    await runner.put('a', hello);
    sandbox.started[0]?.end();
    await runner.watch('ses_test', 0, ended);
    await runner.put('b', hello);
    sandbox.started[1]?.print('x');
    const events = await runner.watch('ses_test', null, ({ type }) => type === 'stdout');
    expect(events.map((event) => [event.job, event.type])).toEqual([
      ['a', 'started'],
      ['a', 'exited'],
      ['b', 'started'],
      ['b', 'stdout'],
    ]);
  });

  test('[R1] a session does not get events of other sessions', async () => {
    await runner.put('a', hello);
    await runner.put('b', { ...hello, session: 'ses_other' });
    sandbox.started[0]?.print('mine');
    sandbox.started[1]?.end();
    const events = await runner.watch('ses_other', 0, ended);
    expect(new Set(events.map((event) => event.job))).toEqual(new Set(['b']));
  });

  test('[R1] long output arrives in pieces, completely', async () => {
    await runner.put('a', hello);
    const text = '🙂'.repeat(100_000);
    sandbox.started[0]?.print(text);
    sandbox.started[0]?.end();
    const events = await runner.watch('ses_test', 0, ended);
    const pieces = events.filter(({ type }) => type === 'stdout').map(({ data }) => String(data['text']));
    expect(pieces.join('')).toBe(text);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(limits.outputEventChars);
    // a surrogate pair is never split
    for (const piece of pieces) expect(piece.isWellFormed()).toBe(true);
  });

  test.each([
    ['/events', 'session'],
    ['/events?session=a%20b', 'session'],
    ['/events?session=a&after=x', 'after'],
    ['/events?session=a&after=-1', 'after'],
  ])('[R1] GET %s is 400 and names %s', async (target, name) => {
    const answer = await runner.ask('GET', target);
    expect(answer.status).toBe(400);
    expect((await problemOf(answer)).detail).toContain(name);
  });
});

describe('restart', () => {
  test('[R1] outcomes survive a restart; running and waiting jobs end as lost', async () => {
    const { stateDir } = runner;
    await runner.put('done', hello);
    sandbox.started[0]?.print('kept');
    sandbox.started[0]?.end();
    await runner.watch('ses_test', 0, ended);
    // the ledger of a lost runner: closing it properly would end its jobs
    await runner.put('cut', hello);
    sandbox.started[1]?.print('half');
    await runner.watch('ses_test', 0, ({ data }) => data['text'] === 'half');
    const { DatabaseSync } = await import('node:sqlite');
    const copy = `${stateDir}-copy`;
    const source = new DatabaseSync(`${stateDir}/runner/jobs.sqlite`);
    const fs = await import('node:fs/promises');
    await fs.mkdir(`${copy}/runner`, { recursive: true });
    source.exec(`VACUUM INTO '${copy}/runner/jobs.sqlite'`);
    source.close();

    const next = await startRunner({ sandboxes: [new FakeSandbox()], stateDir: copy });
    try {
      const record = async (id: string): Promise<unknown> => await (await next.ask('GET', `/jobs/${id}`)).json();
      expect(await record('done')).toMatchObject({ end: 'exited', stdout: 'kept' });
      expect(await record('cut')).toMatchObject({ state: 'ended', end: 'lost', exit_code: null, stdout: 'half' });
      const events = await next.watch('ses_test', 0, (event) => event.type === 'exited' && event.job === 'cut');
      expect(events.at(-1)?.data).toMatchObject({ end: 'lost' });
      expect((await next.put('cut', hello)).status).toBe(200);
    } finally {
      await next.close();
    }
  });

  test('[R1] stopping the runner ends running jobs as killed', async () => {
    const { stateDir } = runner;
    await runner.put('a', hello);
    await runner.stop();
    expect(sandbox.started[0]?.signals).toEqual(['TERM']);
    runner = await startRunner({ sandboxes: [sandbox], stateDir });
    expect(await recordOf('a')).toMatchObject({ state: 'ended', end: 'killed' });
  });
});

describe('admission', () => {
  test('[R8] the numbers of running and waiting jobs are limited; beyond them a job gets 429 with Retry-After and is not recorded', async () => {
    const room = limits.jobsRunning + limits.jobsQueued;
    const answers = await Promise.all(Array.from({ length: 200 }, (_, at) => runner.put(`job-${at}`, hello)));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 202).length).toBe(room);
    expect(statuses.filter((status) => status === 429).length).toBe(200 - room);
    expect(sandbox.started.length).toBe(limits.jobsRunning);
    const refused = answers.find(({ status }) => status === 429);
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
    const at = statuses.indexOf(429);
    expect((await runner.ask('GET', `/jobs/job-${at}`)).status).toBe(404);

    // waiting jobs start in order when places become free, each once
    for (let next = 0; next < room; next += 1) {
      await eventually(() => expect(sandbox.started.length).toBeGreaterThan(next));
      sandbox.started[next]?.end();
    }
    await eventually(async () => expect(await healthOf()).toMatchObject({ running: 0, queued: 0 }));
    expect(sandbox.started.length).toBe(room);
    expect((await runner.put(`job-${at}`, hello)).status).toBe(202);
  });

  async function healthOf(): Promise<unknown> {
    return ((await (await fetch(`${runner.url}/health`)).json()) as { jobs: unknown }).jobs;
  }
});

describe('validation of a job', () => {
  test.each([
    ['an unknown field', 'privileged', { ...hello, privileged: true }],
    ['NUL in code', 'NUL', { ...hello, code: 'a\0b' }],
  ])('[R1] %s gives 400 and names %s', async (_name, named, body) => {
    const answer = await runner.put('a', body);
    expect(answer.status).toBe(400);
    const problem = await problemOf(answer);
    expect(problem.code).toBe('invalid_request');
    expect(problem.detail).toContain(named);
    expect(sandbox.started).toEqual([]);
    expect((await runner.ask('GET', '/jobs/a')).status).toBe(404);
  });

  test('[R2] limits of the operator override the job’s, and are reported', async () => {
    const operatorLimits = {
      ...DEFAULT_OPERATOR_LIMITS,
      running: 1,
      queued: 1,
      memoryMb: 4_096,
      cpus: 2,
      processes: 64,
      diskMb: 512,
      timeoutMs: 120_000,
    };
    const other = await startRunner({ sandboxes: [new FakeSandbox()], operatorLimits });
    try {
      const wishes = [
        [{ memory_mb: 4_097 }, 'memory_mb: 4097 (maximum of this runner: 4096)'],
        [{ cpus: 2.5 }, 'cpus: 2.5 (maximum of this runner: 2)'],
        [{ processes: 65 }, 'processes: 65 (maximum of this runner: 64)'],
        [{ disk_mb: 513 }, 'disk_mb: 513 (maximum of this runner: 512)'],
        [{ timeout_ms: 120_001 }, 'timeout_ms: 120001 (maximum of this runner: 120000)'],
      ] as const;
      for (const [wish, detail] of wishes) {
        const answer = await other.put('a', { ...hello, limits: wish });
        expect(await problemOf(answer)).toMatchObject({ status: 400, detail });
      }
      const all = { memory_mb: 4_096, cpus: 2, processes: 64, timeout_ms: 120_000 };
      expect((await other.put('b', { ...hello, limits: all })).status).toBe(202);
      expect((await other.put('c', hello)).status).toBe(202);
      expect(await problemOf(await other.put('d', hello))).toMatchObject({
        code: 'busy',
        detail: '1 jobs are running and 1 are queued (maximum 1 and 1)',
      });
      expect(await (await other.ask('GET', '/health')).json()).toMatchObject({
        jobs: { running: 1, queued: 1, max_running: 1, max_queued: 1 },
      });
    } finally {
      await other.close();
    }
  });

  test.each(['$(id)', 'a\nb', 'x'.repeat(limits.jobIdChars + 1)])('[R1] the id %j gives 400', async (id) => {
    expect((await runner.put(id, hello)).status).toBe(400);
  });

  test('[R1] JSON nested a million levels deep gives 400', async () => {
    const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
    const text = `{"kind":"python","session":"s","code":"","inputs":{"x":${deep}}}`;
    const answer = await fetch(await signed(runner.url, 'PUT', '/jobs/a', text));
    expect(answer.status).toBe(400);
    expect((await fetch(`${runner.url}/health`)).status).toBe(200);
  });

  test('[R1] an invalid JSON body gives 400', async () => {
    const answer = await fetch(await signed(runner.url, 'PUT', '/jobs/a', '{"kind":'));
    expect(answer.status).toBe(400);
    expect(await problemOf(answer)).toMatchObject({ code: 'invalid_json' });
  });

  test('[R1] a body that is too large gives 413', async () => {
    const answer = await runner.put('a', { ...hello, code: 'x'.repeat(limits.bodyBytes) });
    expect(answer.status).toBe(413);
    expect(await problemOf(answer)).toMatchObject({ code: 'body_too_large' });
  });

  test('[R1] names of Object.prototype members change no prototype', async () => {
    const text = `{"kind":"python","session":"s","code":"1","inputs":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}`;
    const answer = await fetch(await signed(runner.url, 'PUT', '/jobs/a', text));
    expect(answer.status).toBe(202);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('[H4] an unknown route gives a problem document', async () => {
    const answer = await runner.ask('POST', '/jobs');
    expect(answer.status).toBe(404);
    expect(await problemOf(answer)).toMatchObject({ code: 'not_found' });
  });
});

describe('[R8] places shared by tenants', () => {
  let other: TestRunner;
  let places: FakeSandbox;
  beforeEach(async () => {
    places = new FakeSandbox();
    other = await startRunner({
      sandboxes: [places],
      operatorLimits: { ...DEFAULT_OPERATOR_LIMITS, running: 4, queued: 8 },
    });
  });
  afterEach(async () => {
    await other.close();
  });

  /** Submits `count` jobs of a tenant; returns the status of each. */
  async function hand(tenant: string | null, count: number): Promise<number[]> {
    const statuses: number[] = [];
    const query = tenant === null ? '' : `?tenant=${encodeURIComponent(tenant)}`;
    for (let at = 0; at < count; at += 1) {
      const body = { ...hello, session: `ses_${tenant ?? 'none'}` };
      const id = encodeURIComponent(`${tenant ?? 'none'}-${at}`);
      statuses.push((await other.ask('PUT', `/jobs/${id}${query}`, body)).status);
    }
    return statuses;
  }

  const counts = async (): Promise<unknown> =>
    ((await (await other.ask('GET', '/health')).json()) as { jobs: unknown }).jobs;

  test('a tenant that fills its share leaves running and waiting places for the next one', async () => {
    const anns = await hand('ann', 20);
    // two of four run, four of eight wait
    expect(anns.filter((status) => status === 202)).toHaveLength(6);
    expect(anns.filter((status) => status === 429)).toHaveLength(14);
    expect(await counts()).toMatchObject({ running: 2, queued: 4 });
    expect(await hand('bob', 1)).toEqual([202]);
    expect(await counts()).toMatchObject({ running: 3, queued: 4 });
    expect(places.started).toHaveLength(3);
  });

  test('a free place goes to the tenant with the fewest running jobs', async () => {
    await hand('ann', 4);
    await hand('bob', 2);
    await hand('eve', 1);
    // ann 2, bob 1, eve 1
    expect(places.started).toHaveLength(4);
    places.started[2]?.end();
    // bob has no running job, so his is next, although two of ann's have waited longer
    await other.watch('ses_bob', 0, ({ job: id, type }) => type === 'started' && id === 'bob-1');
    expect(places.started).toHaveLength(5);
  });

  test('without tenant names all places are shared', async () => {
    expect((await hand(null, 13)).filter((status) => status === 202)).toHaveLength(12);
    expect(await counts()).toMatchObject({ running: 4, queued: 8 });
  });

  test('a session that fills the queue leaves places for first jobs of others, which start first', async () => {
    expect((await hand(null, 20)).filter((status) => status === 202)).toHaveLength(12);
    const statuses: number[] = [];
    // One after the other: they start in the order in which they arrive.
    for (const session of ['ses_x', 'ses_y', 'ses_z'])
      statuses.push((await other.put(`late-${session}`, { ...hello, session })).status);
    // a quarter of the eight places is reserved for them
    expect(statuses).toEqual([202, 202, 429]);
    places.started[0]?.end();
    await other.watch('ses_x', 0, ({ type }) => type === 'started');
    expect(places.started).toHaveLength(5);
  });

  test('[R7] answers to jobs tell the load, also a refusal', async () => {
    await hand('ann', 2);
    const answers: (string | null)[] = [];
    for (const at of [1, 2, 3, 4, 5]) {
      const answer = await other.ask('PUT', `/jobs/more-${at}?tenant=ann`, hello);
      answers.push(`${answer.status}: ${answer.headers.get('cortex-load') ?? ''}`);
    }
    expect(answers).toEqual([
      '202: running=2, queued=1, max_running=4',
      '202: running=2, queued=2, max_running=4',
      '202: running=2, queued=3, max_running=4',
      '202: running=2, queued=4, max_running=4',
      '429: running=2, queued=4, max_running=4',
    ]);
    expect(await counts()).toMatchObject({ running: 2, queued: 4, max_running: 4 });
  });

  test('the same job with another tenant name is the same job, and an invalid tenant name is refused', async () => {
    await hand('ann', 1);
    expect((await other.ask('PUT', '/jobs/ann-0', { ...hello, session: 'ses_ann' })).status).toBe(200);
    expect((await other.ask('PUT', '/jobs/x?tenant=%0a', hello)).status).toBe(400);
    expect((await other.ask('PUT', `/jobs/x?tenant=${'n'.repeat(201)}`, hello)).status).toBe(400);
  });
});
