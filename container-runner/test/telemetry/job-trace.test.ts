/** The trace of a job is a function of its record (O1). */
import { readFileSync } from 'node:fs';

import { describe, expect, test } from 'vitest';

import type { JobRecord } from '../../ledger/ledger.ts';
import { spansOf, traceparentOfProgram } from '../../telemetry/job-trace.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const SAMPLED = `00-${TRACE}-${PARENT}-01`;
const UNSAMPLED = `00-${TRACE}-${PARENT}-00`;

function record(more: Partial<JobRecord> = {}): JobRecord {
  return {
    id: 'ses_1/run_2/1/0/1',
    session: 'ses_1',
    kind: 'python',
    state: 'ended',
    sandbox: 'wasm',
    requestHash: 'h',
    createdAt: 1_000,
    startedAt: 1_010,
    endedAt: 1_500,
    end: 'exited',
    exitCode: 0,
    truncated: false,
    traceparent: SAMPLED,
    preparedAt: 1_200,
    ...more,
  };
}
/** Name, parent's name (or id), start and end of each span. */
function shape(job: JobRecord): unknown[] {
  const spans = spansOf(job);
  const names = new Map(spans.map(({ name, context }) => [context.spanId, name]));
  return spans.map(({ name, parent, startedAt, endedAt }) => {
    return [name, parent === null ? null : (names.get(parent.spanId) ?? parent.spanId), startedAt, endedAt];
  });
}

describe('spans of a job', () => {
  test('[O1] one for the job, and one for each phase', () => {
    expect(shape(record())).toEqual([
      ['job python', PARENT, 1_000, 1_500],
      ['queued', 'job python', 1_000, 1_010],
      ['prepare', 'job python', 1_010, 1_200],
      ['run', 'job python', 1_200, 1_500],
    ]);
    expect(new Set(spansOf(record()).map(({ context }) => context.traceId))).toEqual(new Set([TRACE]));
    expect(spansOf(record())[0]).toMatchObject({ kind: 'server', isError: false, parent: { isRemote: true } });
  });

  test('[O1] the same record has the same ids; another job, or the job on another runner, has other ones', () => {
    const ids = (job: JobRecord): string[] => spansOf(job).map(({ context }) => context.spanId);
    expect(ids(record())).toEqual(ids(record()));
    const all = [record(), record({ id: 'other' }), record({ createdAt: 999 })].flatMap(ids);
    expect(new Set(all).size).toBe(12);
    for (const id of all) expect(id).toMatch(/^[0-9a-f]{16}$/);
  });

  test('[O1] without a parent, the job is the root of a sampled trace of its own', () => {
    const [root, ...phases] = spansOf(record({ traceparent: null }));
    expect(root).toMatchObject({
      parent: null,
      context: { flags: 1, traceId: expect.stringMatching(/^[0-9a-f]{32}$/) },
    });
    expect(phases.map(({ context }) => context.traceId)).toEqual(phases.map(() => root?.context.traceId));
    expect(spansOf(record({ traceparent: null, id: 'b' }))[0]?.context.traceId).not.toBe(root?.context.traceId);
  });

  test('[O1] no spans if the trace is not sampled, or the job has not ended', () => {
    expect(spansOf(record({ traceparent: UNSAMPLED }))).toEqual([]);
    expect(spansOf(record({ endedAt: null, end: null, state: 'running' }))).toEqual([]);
  });

  test.each([
    ['exited', 0, undefined],
    ['exited', 3, 'nonzero_exit'],
    ['timeout', null, 'timeout'],
    ['killed', null, 'killed'],
    ['oom', 137, 'oom'],
    ['output_limit', null, 'output_limit'],
    ['build_failed', null, 'build_failed'],
    ['lost', null, 'lost'],
  ] as const)('[O1] the end %s with code %s has the error type %s', (end, exitCode, errorType) => {
    const [span] = spansOf(record({ end, exitCode }));
    expect(span?.isError).toBe(errorType !== undefined);
    expect(span?.attributes['error.type']).toBe(errorType);
    expect(span?.attributes['cortex.job.end']).toBe(end);
    expect(span?.attributes['process.exit.code']).toBe(exitCode ?? undefined);
  });

  test('[O1] a job that never started has only waited', () => {
    const killed = record({ startedAt: null, preparedAt: null, sandbox: null, end: 'killed', exitCode: null });
    expect(shape(killed)).toEqual([
      ['job python', PARENT, 1_000, 1_500],
      ['queued', 'job python', 1_000, 1_500],
    ]);
  });

  test('[O1] a job whose sandbox did not start has no span "run"', () => {
    expect(shape(record({ preparedAt: null, end: 'build_failed', exitCode: null }))).toEqual([
      ['job python', PARENT, 1_000, 1_500],
      ['queued', 'job python', 1_000, 1_010],
      ['prepare', 'job python', 1_010, 1_500],
    ]);
  });

  test('[O1] a job that was lost with its runner has no phase whose end is unknown', () => {
    expect(shape(record({ preparedAt: null, end: 'lost', exitCode: null }))).toEqual([
      ['job python', PARENT, 1_000, 1_500],
      ['queued', 'job python', 1_000, 1_010],
    ]);
  });
});

test('[O1] the documentation has every span and every attribute, and no others', () => {
  const page = readFileSync(new URL('../../../docs/runner.md', import.meta.url), 'utf8');
  const section = page.slice(page.indexOf('\n## Spans of jobs\n'), page.indexOf('\n## Metrics\n'));
  const rows = [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = '']) =>
    cell.replaceAll('`', '').split(', '),
  );
  const [job, ...phases] = spansOf(record({ exitCode: 3 }));
  const names = ['job KIND', ...phases.map(({ name }) => name)];
  expect(rows.toSorted()).toEqual([...names, ...Object.keys(job?.attributes ?? {})].toSorted());
});

describe('TRACEPARENT of the program', () => {
  const run = spansOf(record()).at(-1)?.context;

  test('[O1] names the span "run" if the runner exports spans', () => {
    expect(traceparentOfProgram(record(), true)).toBe(`00-${TRACE}-${run?.spanId}-01`);
  });

  test('[O1] is passed on unchanged otherwise, and if the trace is not sampled', () => {
    expect(traceparentOfProgram(record(), false)).toBe(SAMPLED);
    expect(traceparentOfProgram(record({ traceparent: UNSAMPLED }), true)).toBe(UNSAMPLED);
    expect(traceparentOfProgram(record({ traceparent: UNSAMPLED }), false)).toBe(UNSAMPLED);
  });

  test('[O1] is the trace of the job if the request has none and the runner exports spans; absent otherwise', () => {
    const [root] = spansOf(record({ traceparent: null }));
    expect(traceparentOfProgram(record({ traceparent: null }), true)).toMatch(`00-${root?.context.traceId}-`);
    expect(traceparentOfProgram(record({ traceparent: null }), false)).toBeNull();
  });
});
