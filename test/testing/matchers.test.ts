/** The matchers: each passes, and fails with a message that shows the run (K6). */
import { describe, expect, test } from 'vitest';
import { assertRun, openSession, scripted } from '../../testing/index.ts';
import type { TestRun } from '../../testing/index.ts';
import '../../testing/vitest.ts';
import { action, answer, shop } from './shop.ts';

const a = action('tool', 'weather', 'a', {});
const b = action('tool', 'orders', 'b', { customer: 'ada' });
const after = action('tool', 'calculator', 'c', { expression: '1 + $a' });

async function runOf(...replies: string[]): Promise<TestRun> {
  const session = await openSession(shop, {
    agent: 'clerk',
    model: scripted(...replies),
    tools: { weather: () => 20, orders: ({ customer }) => ({ customer, items: ['pen'] }) },
  });
  return await session.send('go');
}

const completed = await runOf(`${a}${b}${after}${answer('it is $c degrees')}`);
const failed = await runOf();
const waiting = await runOf(action('tool', 'refund', 'r', { amount: 5 }));

/** The message of the assertion that fails. */
function messageOf(assertion: () => void): string {
  try {
    assertion();
  } catch (fault) {
    return (fault as Error).message;
  }
  throw new Error('the assertion holds');
}

describe('[K6] matchers', () => {
  type Case = readonly [name: string, good: TestRun, bad: TestRun, assertion: (run: TestRun) => void, message: string];
  const cases: readonly Case[] = [
    ['toHaveCompleted', completed, failed, (run) => expect(run).toHaveCompleted(), 'to complete, but it is failed'],
    ['toHaveFailed', failed, completed, (run) => expect(run).toHaveFailed(), 'to fail, but it is completed'],
    ['toHaveFailed(code)', failed, waiting, (run) => expect(run).toHaveFailed('model_rejected'), 'but it is waiting'],
    ['toBeWaiting', waiting, completed, (run) => expect(run).toBeWaiting(), 'to wait, but it is completed'],
    ['toHaveAnswered', completed, failed, (run) => expect(run).toHaveAnswered('21 degrees'), 'its answer is ""'],
    ['toHaveAnswered', completed, failed, (run) => expect(run).toHaveAnswered(/\d+ deg/), 'answer with /\\d+ deg/'],
    ['toHaveCalled', completed, failed, (run) => expect(run).toHaveCalled('orders'), 'it called no "orders"'],
    ['toHaveCalledTimes', completed, failed, (run) => expect(run).toHaveCalledTimes('orders', 1), 'but it did 0 times'],
    ['toHaveRunInParallel', completed, failed, (run) => expect(run).toHaveRunInParallel('a', 'orders'), 'no "a"'],
    ['toHaveRunInOrder', completed, failed, (run) => expect(run).toHaveRunInOrder('a', 'calculator'), 'no "a"'],
    ['toHaveEmitted', completed, failed, (run) => expect(run).toHaveEmitted('agent_completed'), 'but it did not'],
  ];

  test.each(cases)('%s passes and fails', (_, good, bad, assertion, message) => {
    assertion(good);
    const text = messageOf(() => assertion(bad));
    expect(text).toContain(message);
    // the run is shown
    expect(text).toContain(`The run is ${bad.status}`);
  });

  test('parameters match in part, with asymmetric matchers', () => {
    expect(completed).toHaveCalled('orders', {});
    expect(completed).toHaveCalled('orders', { customer: expect.stringMatching(/^a/) });
    expect(completed).toHaveEmitted('action_completed', { output: { items: ['pen'] } });
    expect(messageOf(() => expect(completed).toHaveCalled('orders', { customer: 'bob' }))).toContain(
      'to call "orders" with {"customer":"bob"}, but it called it with {"customer":"ada"}',
    );
    expect(messageOf(() => expect(completed).toHaveCalled('order'))).toContain('did you mean "orders"?');
    expect(messageOf(() => expect(waiting).toHaveCalled('refund'))).toContain('"refund" did not start');
  });

  test('order and parallelism are those of the run', () => {
    expect(completed).not.toHaveRunInOrder('weather', 'orders');
    expect(messageOf(() => expect(completed).toHaveRunInParallel('weather', 'calculator'))).toContain(
      '"calculator" started after the end of "weather"',
    );
    expect(messageOf(() => expect(completed).toHaveRunInOrder('orders', 'weather'))).toContain(
      '"weather" started before the end of "orders"',
    );
  });

  test('a negated matcher fails with the run', () => {
    expect(messageOf(() => expect(completed).not.toHaveCompleted())).toContain(
      'Expected the run not to complete, but it did.',
    );
  });

  test('the message lists the actions with their parameters and results', () => {
    expect(messageOf(() => expect(completed).toBeWaiting())).toContain(
      'b orders({"customer":"ada"}) completed -> {"customer":"ada","items":["pen"]}',
    );
  });

  test('assertRun has the same matchers without expect', () => {
    assertRun(completed).toHaveCompleted();
    assertRun(completed).not.toHaveCalled('refund');
    expect(() => assertRun(completed).toHaveFailed()).toThrow('to fail, but it is completed');
    expect(() => assertRun(completed).not.toHaveCompleted()).toThrow('not to complete');
  });
});
