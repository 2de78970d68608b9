/** The share of earlier turns in the prompt of the next message (L5). */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import type { EventData, JournaledEventType } from '../../../src/domain/event.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import { readConversation } from '../../../src/engine/generation/conversation.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import type { ChatTurn } from '../../../src/protocol/prompt/chat-turn.ts';
import { newJournal } from '../../journal/journal-kit.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { say, sessionKit, settle } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';

const answer = '<response final="true">ok</response>';

function prompt(kit: Awaited<ReturnType<typeof sessionKit>>): string {
  return (kit.requests.at(-1)?.messages ?? [])
    .slice(1)
    .map(({ content }) => content)
    .join('\n');
}

test('[L5] a turn that does not fit is omitted together with all earlier ones', async () => {
  const kit = await sessionKit({ script: Array.from({ length: 5 }, () => answer) });
  await say(kit, 'first');
  for (let turn = 0; turn < 3; turn += 1) await say(kit, `turn ${turn} ${'x'.repeat(1_000_000)}`);
  await say(kit, 'now');
  expect(prompt(kit)).not.toContain('first');
});

test('[L5] the model sees the beginning of a large result of an earlier turn', async () => {
  const value = { list: Array.from({ length: 20_000 }, (_, at) => ({ at })) };
  const declared = JSON.stringify({ name: 'echo', parameters: value, output_key: 'a' });
  const kit = await sessionKit({
    script: [`<action type="tool" id="a">${declared}</action>${answer}`, answer, answer],
  });
  await say(kit, 'one');
  await say(kit, 'two');
  const shown = prompt(kit);
  expect(shown).toContain('<action_result id="a" name="echo" status="completed" ms=');
  expect(shown).toContain('characters; the whole value is in $a');
  expect(shown.length).toBeLessThan(JSON.stringify(value).length * 3);
});

type Event = {
  readonly [T in JournaledEventType]: readonly [
    type: T,
    data: EventData[T],
    more?: { readonly id?: string; readonly name?: string; readonly state?: JsonObject; readonly iteration?: number },
  ];
}[JournaledEventType];

const ERROR = { code: 'boom', message: 'it broke', retryable: false };
const USAGE = { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, model_calls: 0, estimated: false };
const COMPLETED: Event = ['agent_completed', { response: 'x', iterations: 1, usage: USAGE }];
const generation = (iteration: number, state: JsonObject): Event => [
  'iteration_completed',
  { iteration, final: false },
  { state, iteration },
];
const block = (type: 'thought' | 'text', content: string, iteration = 1): Event => [
  `${type}_completed`,
  { segment: 1, content },
  { iteration },
];
const response = (segment: number, content: string, iteration = 1, state: JsonObject = {}): Event => [
  'response_completed',
  { segment, content, final: true },
  { iteration, state },
];

function write(journal: Journal, input: JsonObject, events: readonly Event[]): void {
  const { run, runId } = journal.runs.create(input, 1, 'running');
  for (const [type, data, { id, name, state, iteration = 1 } = {}] of events) {
    journal.append({
      type,
      runId,
      iteration,
      at: 1,
      ...(id === undefined ? {} : { actionId: id }),
      ...(name === undefined ? {} : { actionName: name }),
      ...(state === undefined ? {} : { state }),
      data,
    });
  }
  journal.runs.end(run, 'completed', 1, false);
}

/** The turn that a run with these events leaves in the conversation. */
function turnOf(...events: readonly Event[]): ChatTurn | undefined {
  const journal = newJournal(openNodeSql());
  write(journal, { content: 'question' }, events);
  return readConversation(journal, 1)[0];
}

describe('[L5] a turn, from the journal', () => {
  test('has the text, the calls and the results of each generation', () => {
    const call = { id: 'c', name: 'echo', arguments: '{}', actionId: 'c', ordinal: 1, type: 'tool' };
    const turn = turnOf(
      [
        'action_completed',
        { output: { n: 1 }, ms: 7, attempt: 1 },
        { id: 'a', name: 'echo', state: { key: '1/2', output_key: 'out' } },
      ],
      ['action_completed', { output: 2, ms: 0, attempt: 0 }, { id: 'b' }],
      generation(1, { text: 'first', calls: [call], cut: 'length' }),
      ['action_failed', { error: ERROR, ms: 9 }, { id: 'c', name: 'echo', state: { key: '2/0' } }],
      ['action_failed', { error: ERROR }, { id: 'd' }],
      ['action_skipped', { reason: 'dependency', because: 'c' }, { id: 'e' }],
      ['action_skipped', { reason: 'condition', because: null }, { id: 'f' }],
      ['action_cancelled', { reason: 'enough' }, { id: 'g' }],
      ['action_rejected', { code: 'unknown_name', message: 'no', type: null, mode: null }, { id: 'h' }],
      generation(2, { text: 'second' }),
      COMPLETED,
    );
    const ended = { name: null, ms: null };
    expect(turn).toEqual({
      user: 'question',
      generations: [
        {
          text: 'first',
          calls: [call],
          cut: 'length',
          results: [
            { id: 'a', name: 'echo', status: 'completed', ms: 7, output: { n: 1 }, outputKey: 'out', ordinal: 2 },
            { id: 'b', name: null, status: 'completed', ms: 0, output: 2 },
          ],
        },
        {
          text: 'second',
          calls: [],
          results: [
            { id: 'c', name: 'echo', status: 'failed', ms: 9, note: 'boom: it broke', ordinal: 0 },
            { ...ended, id: 'd', status: 'failed', note: 'boom: it broke' },
            { ...ended, id: 'e', status: 'skipped', note: 'dependency: c' },
            { ...ended, id: 'f', status: 'skipped', note: 'condition' },
            { ...ended, id: 'g', status: 'cancelled', note: 'enough' },
            { ...ended, id: 'h', status: 'rejected', note: 'unknown_name: no' },
          ],
        },
      ],
      answer: '',
    });
  });

  test.each<[string, Event[], string]>([
    [
      'that was cancelled',
      [['agent_cancelled', {}]],
      'This run was cancelled before it was done. Do not resume it unless you are asked to.',
    ],
    [
      'that failed',
      [['agent_failed', { error: ERROR }]],
      'This run failed (boom: it broke). Do not resume it unless you are asked to.',
    ],
    ['that has no end', [], 'This run did not end.'],
  ])('%s says so, and shows what remains of its last generation', (_name, end, note) => {
    const cut = turnOf(
      block('text', 'lost'),
      generation(1, { text: 'whole' }),
      block('thought', 'hm', 2),
      response(3, 'half', 2),
      block('text', 'words', 2),
      ['action_cancelled', { reason: 'enough' }, { id: 'a', iteration: 2 }],
      ...end,
    );
    expect(cut).toEqual({
      user: 'question',
      generations: [
        { text: 'whole', calls: [], results: [] },
        {
          text: '<thought>hm</thought>\nwords\n<response final="true">half</response>',
          calls: [],
          results: [{ id: 'a', name: null, status: 'cancelled', ms: null, note: 'enough' }],
        },
      ],
      note,
    });
    expect(turnOf(...end)).toEqual({
      user: 'question',
      generations: [{ text: '[no answer]', calls: [], results: [] }],
      note,
    });
    expect(turnOf(generation(1, { text: 'whole' }), ...end)?.generations).toHaveLength(1);
    expect(turnOf(generation(1, { text: 'whole' }), block('text', 'more', 2), ...end)?.generations).toHaveLength(2);
    const action: Event = ['action_cancelled', { reason: 'enough' }, { id: 'a' }];
    expect(turnOf(generation(1, {}), action, ...end)?.generations).toMatchObject([
      { text: '', results: [] },
      { text: '[no answer]', results: [{ id: 'a' }] },
    ]);
  });

  test.each<[string, Event[], string]>([
    ['its last response', [response(1, 'one'), response(2, 'two')], 'two'],
    [
      'the response that is last in the text, whenever it was complete',
      [response(5, 'last'), response(2, 'waited')],
      'last',
    ],
    ['a response, not the bare text beside it', [response(1, 'said'), block('text', 'bare')], 'said'],
    ['its bare text', [block('text', 'one'), block('thought', 'hm'), block('text', 'two')], 'one two'],
    ['a response as written', [response(1, 'It is 7', 1, { written: 'It is $a' })], 'It is $a'],
    ['nothing of an earlier generation', [response(1, 'early'), block('text', 'late', 2)], 'late'],
    ['no response of an earlier generation that waited', [block('text', 'late', 2), response(1, 'waited')], 'late'],
    ['no bare text of an earlier generation', [block('text', 'early'), response(9, 'late', 2)], 'late'],
    ['a response of a later generation, wherever it is', [response(9, 'early'), response(3, 'late', 2)], 'late'],
    ['nothing, if its last generation said nothing', [response(1, 'early'), generation(1, {}), generation(2, {})], ''],
    ['what it said before it ended', [response(1, 'said'), generation(1, {})], 'said'],
  ])('[M8] answers with %s', (_name, events, answer) => {
    expect(turnOf(...events, COMPLETED)).toMatchObject({ answer });
  });
});

describe('[L5] the generation that the end of a run interrupts', () => {
  const queued = (id: string, parameters: JsonObject, more: Partial<EventData['action_queued']> = {}): Event => [
    'action_queued',
    { type: 'tool', mode: 'async', depends_on: [], output_key: null, parameters, ...more },
    { id, name: 'echo' },
  ];
  test('is the text of the model only: a response that was closed by the end is not shown again', () => {
    const text = '<response final="true">It is $a and th';
    const turn = turnOf(generation(1, { text, cut: 'abort' }), response(4, 'It is 7 and th'), ['agent_cancelled', {}]);
    expect(turn?.generations).toEqual([{ text, calls: [], results: [], cut: 'abort' }]);
  });

  test('of a run that its host lost is put together from its events: with tags, in document order', () => {
    const turn = turnOf(
      // seq 1 and 2: the response is opened before the thought that was closed first
      ['response_started', { final: true }],
      ['thought_started', {}],
      queued('a', { text: 'x' }, { output_key: 'out' }),
      queued('b', { text: '$out' }, { depends_on: ['a'] }),
      ['thought_completed', { segment: 2, content: 'hm' }],
      ['response_completed', { segment: 1, content: 'Now', final: true }],
      ['action_cancelled', { reason: 'enough' }, { id: 'b' }],
      ['agent_failed', { error: ERROR }],
    );
    expect(turn?.generations).toMatchObject([
      {
        text: `<response final="true">Now</response>
<thought>hm</thought>
<action type="tool" id="a" mode="async">
{"name":"echo","parameters":{"text":"x"},"output_key":"out"}
</action>
<action type="tool" id="b" mode="async">
{"name":"echo","parameters":{"text":"$out"},"depends_on":["a"]}
</action>`,
        results: [{ id: 'b', status: 'cancelled' }],
      },
    ]);
    const earlier = turnOf(queued('old', {}), generation(1, { text: 'one' }), ['agent_cancelled', {}]);
    expect(earlier?.generations).toMatchObject([{ text: 'one' }]);
  });

  test('reads a limited amount of declarations', () => {
    const most = Math.floor(limits.historyResultChars / 2);
    const turn = turnOf(
      ...['a', 'b', 'c'].map((id) => queued(id, { text: id.repeat(most - 200) })),
      queued('huge', { text: 'x'.repeat(limits.historyResultChars) }),
      ['agent_cancelled', {}],
    );
    const [shown] = turn?.generations ?? [];
    expect(shown?.text.match(/<action /g)).toHaveLength(2);
  });

  test.each(['while the model writes', 'while an action runs'])('[J5] %s: the next message sees it', async (moment) => {
    const isWriting = moment === 'while the model writes';
    const written =
      '<thought>first</thought>\n<action type="tool" id="a">{"name":"echo","parameters":{"n":1}}</action>\n';
    const rest = isWriting
      ? '<response final="true">Half of'
      : '<action type="tool" id="slow">{"name":"slow"}</action>';
    const { promise: never } = Promise.withResolvers<never>();
    let calls = 0;
    const kit = await sessionKit({
      async *stream({ signal }) {
        calls += 1;
        if (calls > 1) {
          yield { type: 'text', text: answer };
        } else {
          yield { type: 'text', text: written + rest };
          if (isWriting) await Promise.race([never, new Promise((_, fail) => signal.addEventListener('abort', fail))]);
        }
        yield { type: 'finish', reason: 'stop' };
      },
      executors: {
        tool: async ({ action }, { signal }) => {
          if (action.name === 'echo') return { ok: true, output: 'echoed' };
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          return { ok: false, error: { code: 'cancelled', message: 'cancelled', retryable: false } };
        },
      },
      tools: isWriting ? [] : [slowTool()],
    });
    const run = await send(kit, 'one');
    await settle();
    await kit.session.cancel('enough');
    await kit.session.ended(run.run);
    await say(kit, 'two');
    const shown = kit.requests.at(-1)?.messages ?? [];
    expect(shown.find(({ role }) => role === 'assistant')?.content).toBe(written + rest);
    expect(prompt(kit)).toMatch(/<action_result id="a" name="echo" status="completed"[^>]*>\nechoed\n/);
    expect(prompt(kit)).toContain('This run was cancelled before it was done.');
  });
});

function slowTool(): ToolDefinition {
  const echo = bundled.tool('echo');
  if (echo === null) throw new Error('no echo');
  return { ...echo, name: 'slow' };
}

describe('[L5] the turns before a run', () => {
  test('are those of messages, in order; an execution without a message is not a turn', () => {
    const journal = newJournal(openNodeSql());
    const inputs = [{ content: 'a' }, { content: null }, { text: 'x' }, { content: 'b' }, { content: 'c' }];
    for (const input of inputs) write(journal, input, [COMPLETED]);
    const users = (last: number): string[] => readConversation(journal, last).map(({ user }) => user);
    expect(users(5)).toEqual(['a', 'b', 'c']);
    expect(users(4)).toEqual(['a', 'b']);
    expect(users(0)).toEqual([]);
  });

  test.each([
    ['just as many events', limits.historyEvents, ['a', 'b']],
    ['an event more', limits.historyEvents + 1, ['b']],
  ])('are left out beyond the limit: %s', (_name, events, shown) => {
    const sql = openNodeSql();
    const journal = newJournal(sql);
    for (const content of ['a', 'b']) write(journal, { content }, [COMPLETED]);
    sql.exec(`UPDATE runs SET first_seq = 1, last_seq = 5000 WHERE run = 1`);
    sql.exec(`UPDATE runs SET first_seq = 2, last_seq = ? WHERE run = 2`, events - 5_000 + 1);
    expect(readConversation(journal, 2).map(({ user }) => user)).toEqual(shown);
  });
});
