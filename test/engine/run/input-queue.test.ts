import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { InputQueue } from '../../../src/engine/run/input-queue.ts';
import { runText, sessionKit, settle } from '../../support/session-kit.ts';

const signal = new AbortController().signal;

test('[J1] a turn ends when the next one takes its inputs', async () => {
  const inputQueue = new InputQueue();
  const seen: string[] = [];
  inputQueue.put({ type: 'save' });
  void inputQueue.turnEnd(signal).then(() => seen.push('over'));
  await inputQueue.arrival();
  inputQueue.take();
  await settle();
  expect(seen).toEqual([]);
  const next = inputQueue.arrival();
  await settle();
  expect(seen).toEqual(['over']);
  inputQueue.put({ type: 'save' });
  await next;
});

test('[J1] without inputs, or after the end of the run, nothing is waited for', async () => {
  const inputQueue = new InputQueue();
  await inputQueue.turnEnd(signal);
  inputQueue.put({ type: 'save' });
  const abort = new AbortController();
  const waiting = inputQueue.turnEnd(abort.signal);
  abort.abort();
  await waiting;
});

test('[P3] a posted text is parsed completely, in several turns', async () => {
  const kit = await sessionKit();
  const action = (at: number): string =>
    `<action type="tool" mode="async" id="a${at}">${JSON.stringify({ name: 'echo', parameters: { at, pad: 'x'.repeat(3_000) } })}</action>`;
  const count = 100;
  const text = `${Array.from({ length: count }, (_, at) => action(at)).join('')}<response final="true">$a99.at</response>`;
  const syncs = kit.sql.syncs;
  const result = await runText(kit, text);
  expect(result).toMatchObject({ status: 'completed', response: '99' });
  expect(result.actions.map(({ id }) => id)).toEqual(Array.from({ length: count }, (_, at) => `a${at}`));
  expect(kit.sql.syncs - syncs).toBeGreaterThan(text.length / limits.programSliceChars);
});
