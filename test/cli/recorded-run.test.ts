/** Runs in exports: which one is replayed, and how it is shown (K4). */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters as plain } from 'node:util';
import { expect, test } from 'vitest';
import { eventLine } from '../../cli/terminal/event-lines.ts';
import { recordedRun } from '../../cli/terminal/recorded-run.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { dispatched } from './dispatched.ts';
import type { Dispatched } from './dispatched.ts';
import { folderOfFile } from './scene.ts';

const folder = folderOfFile();

const SESSION = `ses_${'2'.repeat(32)}`;
let seq = 0;
const event = (run: string, type: string, data: object = {}, more: object = {}): SessionEvent =>
  ({
    seq: (seq += 1),
    type,
    session_id: SESSION,
    run_id: run,
    iteration: 1,
    timestamp: 1_000 + seq * 10,
    ...more,
    data,
  }) as unknown as SessionEvent;
const action = { action_id: 'a', action_name: 'echo' };
const END = { iterations: 1, usage: {} };

/** Events of a background action of the first run come after the second one has begun. */
const EVENTS = [
  event('run_1', 'agent_started', { agent: 'clerk' }),
  event('run_1', 'agent_completed', { response: 'first', ...END }),
  event('run_2', 'agent_started', { agent: 'clerk' }),
  event('run_2', 'action_queued', {}, action),
  event('run_1', 'action_completed', { ms: 5 }, { action_id: 'background' }),
  event('run_2', 'action_started', {}, action),
  event('run_2', 'action_completed', { ms: 10, output: 1 }, action),
  event('run_2', 'agent_completed', { response: 'the answer\u001B[2K', ...END }),
];
const run = (id: string): object => ({
  run_id: id,
  status: 'completed',
  started_at: 1_000,
  ended_at: 1_080,
  input: {},
});
const LINES = [
  { session: { id: SESSION } },
  { run: run('run_1') },
  { run: run('run_2') },
  ...EVENTS,
  { variables: {} },
].map((line) => JSON.stringify(line));

async function* linesOf(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

function written(): string {
  const file = join(folder, 'session.jsonl');
  writeFileSync(file, `${LINES.join('\n')}\n`);
  return file;
}

const replay = async (...args: string[]): Promise<Dispatched> => await dispatched(['replay', written(), ...args]);

test.each([
  [undefined, 'run_2', [3, 4, 6, 7, 8]],
  ['run_1', 'run_1', [1, 2, 5]],
])('[K4] --run %s: the events of %s only', async (wanted, id, seqs) => {
  const found = await recordedRun(linesOf(LINES), wanted);
  expect([found.run_id, found.events.map(({ seq }) => seq)]).toEqual([id, seqs]);
});

test.each([
  [LINES, 'run_3', 'the export contains no run "run_3"; it has 2 runs, such as run_1'],
  [[], undefined, 'the export contains no run'],
  [['{', ...LINES], undefined, 'line 1 is not a JSON object'],
  [['[]'], undefined, 'line 1 is not a JSON object'],
])('[K4] a wrong export or run is named', async (lines, wanted, said) => {
  await expect(recordedRun(linesOf(lines), wanted)).rejects.toThrow(said);
});

test('[K4] replay of a file prints events, timeline and answer, without control characters', async () => {
  const { out, err, code } = await replay();
  expect([err, code]).toEqual(['', 0]);
  expect(plain(out)).toMatch(/^run_2 {2}completed {2}1970-01-01T/);
  expect(plain(out)).toMatch(/ {4}7 00:00:01\.070 action_completed a \(echo\) {2}10 ms/);
  expect(plain(out)).toMatch(/a \(echo\) │ *·*█+ *│ 10 ms/);
  expect(out.endsWith('\nthe answer\\u{1b}[2K\n')).toBe(true);
});

test('[K4] replay --json prints the recorded events, one per line, at any speed', async () => {
  const { out } = await replay('--json', '--run', 'run_1', '--speed', '1000');
  const recorded = EVENTS.filter(({ run_id: id }) => id === 'run_1').map((one) => JSON.stringify(one));
  expect(out).toBe(`${recorded.join('\n')}\n`);
});

test.each([
  [
    event('r', 'agent_failed', { error: { code: 'model_rejected', message: 'no\u001B[2K' } }),
    'model_rejected: no\\u{1b}[2K',
  ],
  [event('r', 'response_completed', { segment: 1, content: 'one\ntwo\u0007' }), 'one\n                    two\\u{7}'],
  [
    event('r', 'progress', { event: event('child', 'action_started', {}, action) }, { action_id: 'd' }),
    'action_started a (echo) in a sub-agent',
  ],
])('[K4] %j is one readable line', (one, said) => {
  expect(plain(eventLine(one) ?? '')).toContain(said);
});

test('[K4] a live piece of a text has no line: the whole text follows', () => {
  const piece = {
    ...event('r', 'response', { segment: 1, offset: 0, delta: 'x' }),
    seq: null,
  } as unknown as SessionEvent;
  expect(eventLine(piece)).toBeNull();
});
