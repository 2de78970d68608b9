import { expect, test } from 'vitest';
import type { ModelDelta } from '../../../src/domain/ports.ts';
import { say, sessionKit } from '../../support/session-kit.ts';

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

test('[P15] an empty generation is not a cut output', async () => {
  const kit = await sessionKit({ script: [ended('', 'error'), ANSWER] });
  expect(await say(kit, 'go')).toMatchObject({ status: 'completed', response: 'done' });
  expect(JSON.stringify(kit.requests[1]?.messages)).not.toContain('cut off');
});

test('[P15] the next message still contains the notice, at the position of the cut', async () => {
  const kit = await sessionKit({ script: [ended(act('a'), 'length'), ANSWER, ANSWER] });
  await say(kit, 'one');
  await say(kit, 'two');
  const before = kit.requests[1]?.messages.at(-1)?.content;
  expect(kit.requests[2]?.messages.map(({ content }) => content)).toContain(before);
});

test('[L5] every outcome of an action is reported in the next iteration', async () => {
  const script = [
    [
      act('fine'),
      act('bad', { parameters: { fail_times: 9 }, retry: 1 }),
      act('after_bad', { depends_on: ['bad'] }),
      act('not_now', { when: 'false' }),
      act('lost', { depends_on: ['nobody'] }),
      '<action type="tool" mode="fire_and_forget" id="aside">{"name":"echo"}</action>',
    ].join(''),
    ANSWER,
  ];
  const kit = await sessionKit({ script });
  await say(kit, 'go');
  const told = kit.requests[1]?.messages.at(-1)?.content ?? '';
  const statuses = Object.fromEntries(
    [...told.matchAll(/<action_result id="(\w+)"[^>]* status="(\w+)"/g)].map(([, id, status]) => [id, status]),
  );
  expect(statuses).toEqual({
    fine: 'completed',
    bad: 'failed',
    after_bad: 'skipped',
    not_now: 'skipped',
    lost: 'rejected',
  });
});

test('[L5] actions cancelled by fail_fast are reported too', async () => {
  const kit = await sessionKit({
    agent: (agent) => ({ ...agent, loop: { ...agent.loop, failFast: true } }),
    executors: {
      tool: async ({ action }) =>
        action.id === 'bad'
          ? { ok: false, error: { code: 'boom', message: 'broke', retryable: false } }
          : await new Promise(() => undefined),
    },
    script: [`${act('slow')}${act('bad')}`, ANSWER],
  });
  await say(kit, 'go');
  const told = kit.requests[1]?.messages.at(-1)?.content ?? '';
  expect(told).toMatch(/<action_result id="slow"[^>]*status="cancelled"/);
  expect(told).toContain('boom: broke');
});
