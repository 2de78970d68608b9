import { describe, expect, test } from 'vitest';
import { EngineError } from '../../../src/domain/errors.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import { say, sessionKit, settle } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';

const act = (id: string, more: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters: { id }, ...more })}</action>`;
const ANSWER = '<response final="true">done</response>';
const ended = (text: string, reason: Extract<ModelDelta, { type: 'finish' }>['reason']): ModelDelta[] => [
  { type: 'text', text },
  { type: 'finish', reason },
];

test.each([
  ['length', 'limit of one output'],
  ['content_filter', 'content filter'],
  ['error', 'connection broke'],
] as const)(
  '[P15] a model whose output ended with %s is informed, including the outcomes of its actions',
  async (reason, words) => {
    const cut = `${act('whole')}<action type="tool" id="half">{"name":"echo","param`;
    const kit = await sessionKit({ script: [ended(cut, reason), ANSWER] });
    expect(await say(kit, 'go')).toMatchObject({ status: 'completed', response: 'done', iterations: 2 });
    const messages = kit.requests[1]?.messages ?? [];
    expect(messages.at(-2)).toMatchObject({ role: 'assistant', content: cut });
    const told = messages.at(-1)?.content ?? '';
    expect(told).toContain(`Your last output was cut off`);
    expect(told).toContain(words);
    expect(told).toContain('<action_result id="whole"');
    expect(told).toContain('<action_result id="half" name="echo" status="rejected"'.replace(' name="echo"', ''));
  },
);

test('[P15] a model whose output ended normally gets no such notice', async () => {
  const kit = await sessionKit({ script: [act('a'), ANSWER] });
  await say(kit, 'go');
  expect(kit.requests[1]?.messages.at(-1)?.content).not.toContain('cut off');
});

const WRITTEN = '<thought>t</thought><action id="a">{"name":"echo"}</action>';

test.each([
  ['error', 'Sure, I will'],
  ['content_filter', '<response final="true">The total is'],
] as const)('[P11] [P15] a generation that ended with %s inside %j is not the answer', async (reason, text) => {
  const kit = await sessionKit({ script: [ended(text, reason), ANSWER] });
  expect(await say(kit, 'go')).toMatchObject({ status: 'completed', response: 'done', iterations: 2 });
  expect(cuts(kit)).toHaveLength(1);
});

test('[P11] [P15] a generation that broke off at any character is not the answer', async () => {
  for (let at = 1; at < WRITTEN.length; at += 1) {
    const kit = await sessionKit({ script: [ended(WRITTEN.slice(0, at), 'error'), ANSWER] });
    expect(await say(kit, 'go'), WRITTEN.slice(0, at)).toMatchObject({ status: 'completed', response: 'done' });
    const shown = kit.events.filter(({ type }) => type === 'text_completed');
    expect(shown, WRITTEN.slice(0, at)).toEqual([]);
  }
});

test('[P10] [P15] after a complete final response, a broken part of another one is not the answer', async () => {
  for (const part of ['<response final="true">The total is', '<response>The total is $a.output and $nothing']) {
    const kit = await sessionKit({ script: [ended(`${ANSWER}${part}`, 'error')] });
    expect(await say(kit, 'go'), part).toMatchObject({ status: 'completed', response: 'done', iterations: 1 });
    expect(cuts(kit)).toHaveLength(1);
  }
});

test('[P11] [S12] what the time budget has cut off is not the answer', async () => {
  let asked = 0;
  const kit = await sessionKit({
    agent: (agent) => ({ ...agent, budgets: { ...agent.budgets, seconds: 60 } }),
    async *stream({ signal }): AsyncGenerator<ModelDelta> {
      asked += 1;
      if (asked === 2) return yield* ended(ANSWER, 'stop');
      yield { type: 'text', text: '<response final="true">The total is' };
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  });
  const result = say(kit, 'go');
  await settle();
  kit.clock.advance(60_000);
  expect(await result).toMatchObject({ status: 'completed', response: 'done', iterations: 2 });
});

test('[P15] the last generation that breaks off inside its answer fails the run', async () => {
  const half = '<response final="true">The total is';
  const kit = await sessionKit({
    agent: (agent) => ({ ...agent, budgets: { ...agent.budgets, modelCalls: 2 } }),
    script: [act('a'), ended(half, 'error'), ANSWER],
  });
  expect(await say(kit, 'go')).toMatchObject({ status: 'failed', error: { code: 'generation_error' } });
});

test('[P15] the next message still contains the notice, at the position of the cut', async () => {
  const kit = await sessionKit({ script: [ended(act('a'), 'length'), ANSWER, ANSWER] });
  await say(kit, 'one');
  await say(kit, 'two');
  const before = kit.requests[1]?.messages.at(-1)?.content;
  expect(kit.requests[2]?.messages.map(({ content }) => content)).toContain(before);
});

const cuts = (kit: Awaited<ReturnType<typeof sessionKit>>): unknown[] =>
  kit.events.filter(({ type, data }) => type === 'warning' && 'code' in data && data.code === 'generation_cut');
const codes = (kit: Awaited<ReturnType<typeof sessionKit>>): string[] =>
  kit.events.flatMap((event) => (event.type === 'warning' ? [event.data.code] : []));
const failing = (...texts: string[]): Parameters<typeof sessionKit>[0] => ({
  async *stream(): AsyncGenerator<ModelDelta> {
    for (const text of texts) yield { type: 'text', text };
    throw new EngineError('model_rejected', 'wrong key');
  },
});

describe('[P15] one failure is reported once', () => {
  test('a call that fails before its first text is reported by agent_failed only', async () => {
    const kit = await sessionKit(failing());
    expect(await say(kit, 'go')).toMatchObject({ status: 'failed', error: { code: 'model_rejected' }, warnings: [] });
  });

  test('nor is it reported twice after complete blocks', async () => {
    const kit = await sessionKit(failing('<thought>I look</thought>', act('a')));
    expect(await say(kit, 'go')).toMatchObject({ status: 'failed', error: { code: 'model_rejected' }, warnings: [] });
  });

  test.each([
    ['a response', '<response final="true">I am'],
    ['an action', '<action id="a">{"name":'],
    ['bare text', 'I am'],
  ])('%s that was cut off is reported, without a second warning about its tag', async (_what, text) => {
    const kit = await sessionKit(failing(text));
    await say(kit, 'go');
    expect(codes(kit)).toEqual(['generation_cut']);
  });

  test('separate reasoning that was cut off is reported', async () => {
    const script: ModelDelta[] = [
      { type: 'reasoning', text: 'let me' },
      { type: 'finish', reason: 'content_filter' },
    ];
    const kit = await sessionKit({ script: [script, ANSWER] });
    await say(kit, 'go');
    expect(codes(kit)).toEqual(['generation_cut']);
  });

  test('an error that the run survives is reported once, although nothing was cut off', async () => {
    const kit = await sessionKit({ script: [ended('', 'error'), ANSWER] });
    expect(await say(kit, 'go')).toMatchObject({ status: 'completed' });
    expect(cuts(kit)).toHaveLength(1);
    expect(JSON.stringify(kit.requests[1]?.messages)).not.toContain('cut off');
    const types = kit.events.map(({ type }) => type);
    expect(types.indexOf('warning')).toBeLessThan(types.lastIndexOf('iteration_started'));
  });

  test('an error after a complete final response is reported, because nothing else says it', async () => {
    const kit = await sessionKit(failing(ANSWER));
    expect(await say(kit, 'go')).toMatchObject({ status: 'completed', response: 'done' });
    expect(cuts(kit)).toHaveLength(1);
  });

  test('an output at its limit is always reported', async () => {
    const kit = await sessionKit({ script: [ended(act('a'), 'length'), ANSWER] });
    await say(kit, 'go');
    expect(codes(kit)).toEqual(['generation_cut']);
  });

  test('after a cancel nothing more is reported', async () => {
    const kit = await sessionKit({
      async *stream({ signal }): AsyncGenerator<ModelDelta> {
        yield {
          type: 'text',
          text: '<action mode="fire_and_forget" id="a">{"name":"echo","parameters":{"delay_ms":9}}</action>',
        };
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    });
    const run = await send(kit, 'go');
    await settle();
    await kit.session.cancel('enough');
    await kit.session.ended(run.run);
    await settle();
    expect(kit.events.at(-1)?.type).toBe('agent_cancelled');
    expect(cuts(kit)).toEqual([]);
  });
});
