import { describe, expect, test } from 'vitest';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { TrainingMessage } from '../../../src/protocol/prompt/transcript.ts';
import { say, sessionKit, textOf } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { finish, text } from './deltas.ts';

const linesOf = async (kit: SessionKit): Promise<string[]> =>
  (await textOf(kit.session.transcript())).split('\n').slice(0, -1);

const examples = async (kit: SessionKit): Promise<(readonly TrainingMessage[])[]> =>
  (await linesOf(kit)).map((line) => {
    expect(line).not.toContain('\n');
    const { messages, ...rest } = JSON.parse(line) as { messages: TrainingMessage[] };
    expect(rest).toEqual({});
    return messages;
  });

describe('a session as training examples', () => {
  test('[L4] [P17] replaced parts are kept, but for what they say about calls of functions', async () => {
    const kit = await sessionKit({
      agent: (agent): AgentDefinition => ({
        ...agent,
        protocol: { ...agent.protocol, dialect: 'tool_calls' },
        prompt: { protocol: ['Call functions.'], response: false, identity: ['I am ', { value: 'name' }] },
      }),
      script: [[text('done'), finish('stop')]],
    });
    await say(kit, 'go');
    expect(kit.requests[0]?.messages[0]?.content).toMatch(
      /^I am assistant\n\nCall functions\.\n\nYou are called again/,
    );
    const [messages] = await examples(kit);
    expect(messages?.[0]?.content).toMatch(/^I am assistant\n\n# How you act\nYour text is executed/);
    expect(messages?.[0]?.content).toContain('Your response:\n- Each $id in it');
    expect(messages?.[0]?.content).not.toContain('Call functions.');
  });

  test('a run is one line with the model’s input and output, unchanged', async () => {
    const first = '<action id="a">{"name":"echo","parameters":{"n":1}}</action>';
    const second = '<response final="true">It is $a.n</response>';
    const kit = await sessionKit({ script: [first, second] });
    await say(kit, 'what is it?');
    const [messages] = await examples(kit);
    expect(messages?.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user', 'assistant']);
    expect(messages?.slice(0, 4)).toEqual(kit.requests[1]?.messages);
    expect(messages?.[2]).toEqual({ role: 'assistant', content: first });
    expect(messages?.[4]).toEqual({ role: 'assistant', content: second });
  });

  test('earlier runs are context of later ones, and are not trained twice', async () => {
    const kit = await sessionKit({
      script: ['<response final="true">one</response>', '<response final="true">two</response>'],
    });
    await say(kit, 'first');
    await say(kit, 'second');
    const [one, two] = await examples(kit);
    expect(one?.map(({ weight }) => weight)).toEqual([undefined, undefined, undefined]);
    expect(two?.map(({ role, weight }) => [role, weight])).toEqual([
      ['system', undefined],
      ['user', undefined],
      ['assistant', 0],
      ['user', undefined],
      ['assistant', undefined],
    ]);
  });

  test('runs that did not complete, and executions without a model, are omitted', async () => {
    const kit = await sessionKit({
      script: ['nothing <action>{', 'still <action>{', '<response final="true">ok</response>'],
    });
    expect((await say(kit, 'fail')).status).toBe('failed');
    expect((await say(kit, 'go')).status).toBe('completed');
    const all = await examples(kit);
    expect(all).toHaveLength(1);
    expect(all[0]?.at(-1)?.content).toContain('ok');
    expect(all[0]?.filter(({ role, weight }) => role === 'assistant' && weight === undefined)).toHaveLength(1);
  });

  test('[X3] secrets of the environment are redacted, whatever their source', async () => {
    const secret = 'sk-"quoted"\\-1234';
    const kit = await sessionKit({
      secrets: [secret, 'hunter2hunter2', 'abc'],
      executors: { shell: async () => ({ ok: true, output: { env: `KEY=${secret}`, words: 'abc hunter2hunter2' } }) },
      script: [
        '<action type="shell" id="e">{"command":"env"}</action>',
        `<response final="true">The key is ${secret}.</response>`,
      ],
    });
    await say(kit, 'print hunter2hunter2');
    const lines = await textOf(kit.session.transcript());
    expect(lines).not.toContain('sk-');
    expect(lines).not.toContain('hunter2');
    expect(lines.split('[secret]').length - 1).toBe(4);
    expect(lines).toContain('abc');
  });
});
