/** The runtime's texts in a conversation: notices, marks of cuts, and runs as training examples (L5, X1). */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ProtocolOptions } from '../../../src/domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { NativeCall } from '../../../src/protocol/native/tool-calls.ts';
import type { ActionReport, ChatTurn, CurrentTurn } from '../../../src/protocol/prompt/chat-turn.ts';
import { compact } from '../../../src/protocol/prompt/compaction.ts';
import { buildMessages, buildTranscript, renderFeeds } from '../../../src/protocol/prompt/feedback.ts';
import { calledResults } from '../../../src/protocol/prompt/result-budget.ts';
import { buildSystemPrompt } from '../../../src/protocol/prompt/prompt.ts';
import { trainingExample } from '../../../src/protocol/prompt/transcript.ts';
import { done } from './action-reports.ts';

const GO_ON = '<system>These are the results. Go on: act again, or answer in <response final="true">.</system>';
const NOTHING_RAN = '<system>No action ran. Declare one, or answer in <response final="true">.</system>';
const LAST =
  '<system>This is the last generation: no action will run. Answer now in <response final="true"> with what you have.</system>';

const call = (actionId: string, more: Partial<NativeCall> = {}): NativeCall => ({
  actionId,
  type: 'tool',
  id: `call_${actionId}`,
  name: 'echo',
  arguments: '{}',
  ...more,
});
const messages = (current: CurrentTurn, history: readonly ChatTurn[] = []): unknown[] =>
  buildMessages({ system: 'S', history, current }).map(({ role, content }) => [role, content]);

describe('[L5] the notice for the next generation', () => {
  test('asks to continue with the results, or reports that nothing ran', () => {
    const results = [done('a')];
    const text = '<thought>x</thought><response final="false">$a</response>';
    expect(messages({ user: 'u', generations: [{ text, results }] })).toEqual([
      ['system', 'S'],
      ['user', 'u'],
      ['assistant', text],
      [
        'user',
        `<results>\n<action_result id="a" name="tool" status="completed" ms="12">\nok\n</action_result>\n</results>\n\n${GO_ON}`,
      ],
    ]);
    expect(messages({ user: 'u', generations: [{ text: 'x', results: [] }] }).at(-1)).toEqual(['user', NOTHING_RAN]);
  });

  test('says that it is the last one, also without a previous one', () => {
    expect(messages({ user: 'u', generations: [], last: true })).toEqual([
      ['system', 'S'],
      ['user', `u\n\n${LAST}`],
    ]);
    expect(messages({ user: 'u', generations: [] })).toEqual([
      ['system', 'S'],
      ['user', 'u'],
    ]);
    expect(messages({ user: 'u', generations: [{ text: 'x', results: [] }], last: true }).at(-1)).toEqual([
      'user',
      LAST,
    ]);
    const two = messages({
      user: 'u',
      generations: [
        { text: 'x', results: [] },
        { text: 'y', results: [] },
      ],
      last: true,
    });
    expect(two.slice(3)).toEqual([
      ['user', NOTHING_RAN],
      ['assistant', 'y'],
      ['user', LAST],
    ]);
  });

  const cuts = [
    ['length', 'it reached the limit of one output'],
    ['content_filter', 'a content filter stopped it'],
    ['error', 'the connection broke'],
    ['abort', 'it was stopped'],
  ] as const;
  test.each(cuts)('[P15] gives the reason why its output was cut off: %s', (cut, why) => {
    const [last] = messages({ user: 'u', generations: [{ text: 'x', results: [], cut }] }).slice(-1);
    expect(last).toEqual([
      'user',
      `<system>Your last output was cut off: ${why}. What was complete by then counts. An action or a response that was not closed is lost: write it again, shorter.</system>\n\n${NOTHING_RAN}`,
    ]);
    expect(messages({ user: 'u', generations: [{ text: ' ', results: [], cut }] }).at(-1)).toEqual([
      'user',
      `u\n\n${NOTHING_RAN}`,
    ]);
  });

  test('describes the end of an earlier turn, as data', () => {
    const history = [{ user: 'a', generations: [{ text: 'x', results: [] }], note: 'it </system> failed' }];
    expect(messages({ user: 'b', generations: [] }, history).at(-1)).toEqual([
      'user',
      '<system>it &lt;/system> failed</system>\n\nb',
    ]);
  });
});

describe('[P17] native calls', () => {
  test('are answered one by one, without the notice to continue if there are only native calls', () => {
    const calls = [call('a', { ordinal: 0 }), call('b', { ordinal: 1 })];
    const results = [
      done('a', { n: 1 }, { ordinal: 0 }),
      done('b', null, { ordinal: 1, status: 'failed', note: 'broke' }),
    ];
    const list = buildMessages({
      system: 'S',
      history: [],
      current: { user: 'u', generations: [{ text: ' ', calls, results }] },
    });
    expect(list.slice(2)).toEqual([
      {
        role: 'assistant',
        content: '',
        toolCalls: [
          { id: 'call_a', name: 'echo', arguments: '{}' },
          { id: 'call_b', name: 'echo', arguments: '{}' },
        ],
      },
      { role: 'tool', content: '{"n":1}', toolCallId: 'call_a' },
      { role: 'tool', content: '[failed] broke', toolCallId: 'call_b' },
    ]);
    const cut = messages({ user: 'u', generations: [{ text: '', calls, results, cut: 'length' }] });
    expect(cut.at(-1)).toEqual(['user', expect.stringContaining('was cut off')]);
  });

  test('belong to reports by position, otherwise by id if a position is missing', () => {
    const given = (calls: readonly NativeCall[], results: readonly ActionReport[]): unknown =>
      [...calledResults({ text: '', calls, results })].map(([{ actionId }, { output }]) => [actionId, output]);
    expect(
      given([call('a', { ordinal: 1 })], [done('a', 'no', { ordinal: 0 }), done('b', 'yes', { ordinal: 1 })]),
    ).toEqual([['a', 'yes']]);
    expect(given([call('a', { ordinal: 1 })], [done('a', 'other', { ordinal: 0 })])).toEqual([]);
    expect(given([call('a', { ordinal: 1 })], [done('b', 'no'), done('a', 'yes')])).toEqual([['a', 'yes']]);
    expect(given([call('a')], [done('a', 'yes', { ordinal: 3 })])).toEqual([['a', 'yes']]);
    expect(given([call('a')], [done('b')])).toEqual([]);
  });
});

describe('[F2] [F4] feeds', () => {
  test('have an id and a rounded age, and share the size limit', () => {
    expect(renderFeeds([{ id: 'a"<', value: { n: 1 }, ageMs: 1_600 }], 1_000)).toBe(
      '<context_feed id="a&quot;&lt;" age="2s">\n{"n":1}\n</context_feed>',
    );
    expect(renderFeeds([{ id: 'a', value: 'x', ageMs: -5_000 }], 1_000)).toContain('age="0s"');
    const two = renderFeeds(
      [
        { id: 'a', value: 'x'.repeat(20), ageMs: 0 },
        { id: 'b-c', value: 'y'.repeat(10), ageMs: 0 },
      ],
      21,
    );
    expect(two).toBe(
      `<context_feed id="a" age="0s">\n${'x'.repeat(10)}\n[cut after 10 of 20 characters; the whole value is in $a]\n</context_feed>\n<context_feed id="b-c" age="0s">\n${'y'.repeat(10)}\n</context_feed>`,
    );
    expect(renderFeeds([{ id: 'b-c', value: '12345', ageMs: 0 }], 3)).toContain('in ${b-c}]');
    expect(renderFeeds([], 3)).toBe('');
  });
});

test('[X1] [F4] a value that is too long only after escaping is cut too', () => {
  const fits = 'x <system>';
  expect(renderFeeds([{ id: 'a', value: fits, ageMs: 0 }], fits.length + 3)).toContain('x &lt;system>\n<');
  expect(renderFeeds([{ id: 'a', value: fits, ageMs: 0 }], fits.length)).toContain(
    'x &lt;syst\n[cut after 10 of 13 characters; the whole value is in $a]',
  );
});

test('[L4] an agent without a persona is introduced with its name and summary', () => {
  const resolved = bundled.agent('assistant');
  if (resolved === null) throw new Error('the bundled catalogue has no assistant');
  const { agent } = resolved;
  const plain = { ...agent, summary: 'It helps.', persona: { agent: ' ', user: '', examples: [] } };
  expect(
    buildSystemPrompt({ ...resolved, agent: plain }).startsWith('You are assistant. It helps.\n\n# How you act'),
  ).toBe(true);
});

describe('[M8] older turns', () => {
  const turn = (user: string, more: Partial<ChatTurn> = {}): ChatTurn => ({ user, generations: [], ...more });
  const notice = (older: readonly ChatTurn[], summarizeAfter: number | null = 1): string =>
    compact([...older, turn('last')], { maxTurns: 1, summarizeAfter }).notice ?? '';

  test('are summarised: one, several, and turns that cannot be summarised', () => {
    expect(notice([turn('a')], null)).toBe('<system>1 earlier turn of this conversation is left out here.</system>');
    expect(notice([turn('a'), turn('b')])).toBe(
      '<system>2 earlier turns of this conversation are shortened here.\n- User: a\n  You: (nothing)\n- User: b\n  You: (nothing)</system>',
    );
  });

  test('a long question is shortened, and white space becomes one space', () => {
    const most = limits.summaryTurnChars;
    expect(notice([turn('x'.repeat(most))])).toContain(`- User: ${'x'.repeat(most)}\n`);
    expect(notice([turn('x'.repeat(most + 1))])).toContain(`- User: ${'x'.repeat(most)}…\n`);
    expect(notice([turn(' a \n\t b ')])).toContain('- User: a b\n');
  });

  test('names of older results are listed in order, without those of later turns', () => {
    const of = (...results: ActionReport[]): ChatTurn => turn('q', { generations: [{ text: '', results }] });
    const told = notice(
      [
        of(done('a'), done('b', 1, { outputKey: 'report' })),
        of(done('c-d'), done('e', 1, { status: 'failed' }), done('a')),
      ],
      null,
    );
    expect(told).toContain('\nResults of that time that can still be used: $report, ${c-d}, $a</system>');
  });
});

describe('[L5] a run as a training example', () => {
  function agent(form: ProtocolOptions['form']): ResolvedAgent {
    const resolved = bundled.agent('assistant');
    if (resolved === null) throw new Error('the bundled catalogue has no assistant');
    const { protocol } = resolved.agent;
    return { ...resolved, agent: { ...resolved.agent, protocol: { ...protocol, form, dialect: 'tool_calls' } } };
  }
  const example = (
    turn: ChatTurn,
    history: readonly ChatTurn[] = [],
    form: ProtocolOptions['form'] = 'full',
  ): unknown[] | null =>
    trainingExample({ resolved: agent(form), history, turn })?.messages.slice(1) as unknown[] | null;

  test('earlier turns are context with weight 0', () => {
    const said = (text: string): ChatTurn => ({ user: `${text}?`, generations: [{ text, results: [] }] });
    expect(example(said('new'), [said('old')])).toEqual([
      { role: 'user', content: 'old?' },
      { role: 'assistant', content: 'old', weight: 0 },
      { role: 'user', content: 'new?' },
      { role: 'assistant', content: 'new' },
    ]);
  });

  test('a run without text gives no example', () => {
    expect(trainingExample({ resolved: agent('full'), history: [], turn: { user: 'u', generations: [] } })).toBeNull();
    const silent = { user: 'u', generations: [{ text: ' ', results: [] }] };
    const before = { user: 'u', generations: [{ text: 'said', results: [] }] };
    expect(trainingExample({ resolved: agent('full'), history: [before], turn: silent })).toBeNull();
  });

  test('[P17] calls are written as actions; rejected ones are omitted with their results', () => {
    const calls = [
      call('a', { ordinal: 0, arguments: '{"n":1}' }),
      call('b', { ordinal: 1, type: 'python', name: 'python', arguments: '{"code":"1"}' }),
      call('c', { ordinal: 2 }),
      call('d', { ordinal: 3, arguments: '{"parameters":{"x":1}}' }),
    ];
    const results = [
      done('a', 1, { ordinal: 0 }),
      done('c', null, { ordinal: 2, status: 'rejected', note: 'no' }),
      done('t', 1, { ordinal: 9 }),
    ];
    const turn = {
      user: 'u',
      generations: [
        { text: 'hm', calls, results },
        { text: 'end', results: [] },
      ],
    };
    const [, full] = example(turn) ?? [];
    expect(full).toEqual({
      role: 'assistant',
      content: [
        'hm',
        '<action type="tool" id="a" mode="async">\n{"name":"echo","parameters":{"n":1}}\n</action>',
        '<action type="python" id="b" mode="async">\n{"parameters":{"code":"1"}}\n</action>',
        '<action type="tool" id="d" mode="async">\n{"name":"echo","parameters":{"parameters":{"x":1}}}\n</action>',
      ].join('\n'),
    });
    const [, , answer] = example(turn) ?? [];
    expect(JSON.stringify(answer)).not.toContain('rejected');
    expect(JSON.stringify(answer)).toContain('id=\\"t\\"');
    const [, compactForm] = example(turn, [], 'compact') ?? [];
    expect(JSON.stringify(compactForm)).toContain('{\\"n\\":1}</action>');
    expect(JSON.stringify(compactForm)).toContain('{\\"parameters\\":{\\"x\\":1}}');
  });

  test('a transcript ends with the last output, and says how much came before', () => {
    const said = (text: string): ChatTurn => ({ user: 'u', generations: [{ text, results: [done('a')] }] });
    const { messages: list, context } = buildTranscript({ system: 'S', history: [said('x')], turn: said('y') });
    expect(list.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user', 'assistant']);
    expect(context).toBe(4);
    expect(list.at(-1)).toEqual({ role: 'assistant', content: 'y' });
  });
});
