import { describe, expect, test } from 'vitest';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import { say, sessionKit } from '../../support/session-kit.ts';

const ACTION = '<action type="tool" mode="async" id="a">{"name":"echo","parameters":{"n":1}}</action>';
const reasoning = (text: string): ModelDelta => ({ type: 'reasoning', text });
const text = (words: string): ModelDelta => ({ type: 'text', text: words });
const finish: ModelDelta = { type: 'finish', reason: 'stop' };
const acting = (agent: AgentDefinition): AgentDefinition => ({
  ...agent,
  protocol: { ...agent.protocol, actInReasoning: true },
});
const thoughts = (events: readonly { type: string; data: object }[]): object[] =>
  events.filter(({ type }) => type === 'thought_completed').map(({ data }) => data);

/** In the provider's own field, cut anywhere, and in the text. */
const WAYS: readonly (readonly [string, ModelDelta[]])[] = [
  ['beside the text', [reasoning('First '), reasoning(ACTION.slice(0, 20)), reasoning(`${ACTION.slice(20)} then.`)]],
  ['in <think>', [text(`<think>First ${ACTION} then.</think>`)]],
];

describe.each(WAYS)('[P9] reasoning %s', (_, said) => {
  test('is a thought, and an action in it does not run', async () => {
    const kit = await sessionKit({ script: [[...said, text('<response final="true">done</response>'), finish]] });
    const result = await say(kit, 'go');
    expect(result).toMatchObject({ status: 'completed', response: 'done', actions: [] });
    expect(thoughts(kit.events)).toHaveLength(1);
  });

  test('with act_in_reasoning, an action in it runs, and its result is available for the answer', async () => {
    const kit = await sessionKit({
      agent: acting,
      script: [[...said, text('<response final="true">it is $a.n</response>'), finish]],
    });
    const result = await say(kit, 'go');
    expect(result).toMatchObject({ status: 'completed', response: 'it is 1', iterations: 1 });
    expect(result.actions).toMatchObject([{ id: 'a', status: 'completed' }]);
    expect(thoughts(kit.events)).toMatchObject([{ content: expect.stringContaining('then.') }]);
  });
});

test('[P9] a generation with only reasoning and an action continues with the result', async () => {
  const kit = await sessionKit({
    agent: acting,
    script: [[reasoning(ACTION), finish], '<response final="true">it was $a.n</response>'],
  });
  expect(await say(kit, 'go')).toMatchObject({ status: 'completed', response: 'it was 1', iterations: 2 });
});

describe('[P6] llm actions', () => {
  test('can name a model that the router knows, and their usage counts for the run', async () => {
    const models: (string | null)[] = [];
    const kit = await sessionKit({
      async *stream(request): AsyncGenerator<ModelDelta> {
        models.push(request.model);
        if (request.agent !== null)
          yield text(
            '<action type="llm" id="x">{"parameters":{"prompt":"p","model":"small"}}</action><response final="true">$x</response>',
          );
        else yield text('ok');
        yield {
          type: 'usage',
          usage: { promptTokens: 10, completionTokens: 1, cachedTokens: 0, estimated: false },
        };
        yield finish;
      },
    });
    expect((await say(kit, 'go')).usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 2, model_calls: 2 });
    expect(models).toEqual([null, 'small']);
  });
});

test('[L5] in a session every prompt begins with the previous one, except its last message', async () => {
  const kit = await sessionKit({
    script: [
      ACTION,
      '<action type="tool" id="b">{"name":"echo","parameters":{"t":"$a.n"}}</action>',
      '<response final="true">$b.t</response>',
      '<response final="true">again</response>',
      ACTION,
      '<response final="true">$a</response>',
    ],
  });
  for (const words of ['one', 'two', 'three']) await say(kit, words);
  expect(kit.requests.length).toBeGreaterThanOrEqual(6);
  for (let n = 1; n < kit.requests.length; n += 1) {
    const before = kit.requests[n - 1]?.messages.slice(0, -1) ?? [];
    expect(kit.requests[n]?.messages.slice(0, before.length)).toEqual(before);
  }
});
