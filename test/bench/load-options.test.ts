import { expect, test } from 'vitest';
import { loadOptions } from '../../bench/load/options.ts';
import { CALL, CHAT, FIRST, HOLD, LAST, scriptFor, SHORT } from '../../bench/load/script.ts';

test('[Z3] bench:load doubles its sessions up to a bound, and has a run of seconds', () => {
  expect(loadOptions([])).toMatchObject({ first: 128, most: 2_048, p99Ms: 250, histories: [1, 50, 500], smoke: false });
  expect(loadOptions(['--smoke'])).toMatchObject({ first: 8, most: 8, evictSeconds: 0, histories: [1], smoke: true });
  expect(loadOptions(['--smoke', '--most', '16'])).toMatchObject({ first: 8, most: 16, stageSeconds: 3 });
});

test.each([
  [['--most', '0'], '--most must be a whole number from 1 to 16384, not "0"'],
  [['--most', '1e3'], '--most must be a whole number from 1 to 16384, not "1e3"'],
  [['--evict-seconds', '301'], '--evict-seconds must be a whole number from 0 to 300, not "301"'],
  [['--first', '64', '--most', '32'], '--first (64) must not exceed --most (32)'],
  [['--sessions', '3'], "Unknown option '--sessions'"],
])('[Z3] bench:load refuses %j', (args, message) => {
  expect(() => loadOptions(args)).toThrow(message);
});

test.each([
  [CHAT, 100, true],
  [SHORT, 1, true],
  [HOLD, 10, false],
  [`${CALL}7`, 104, true],
])('[Z3] the last message of a request selects the script: %s', (content, steps, ends) => {
  const body = JSON.stringify({ messages: [{ content: `${CALL}1` }, { content: HOLD }, { content }] });
  const script = scriptFor(body, 'http://tool');
  expect(script.steps).toHaveLength(steps);
  expect(script.ends).toBe(ends);
  const text = script.steps.map((step) => step.text).join('');
  expect(text.split(FIRST)).toHaveLength(2);
  expect(text.split(LAST)).toHaveLength(ends ? 2 : 1);
  expect(script.steps.flatMap(({ closes }) => closes ?? [])).toEqual(content.startsWith(CALL) ? ['7'] : []);
});
