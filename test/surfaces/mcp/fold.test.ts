/** A run as the result of a call of the Model Context Protocol (E4). */
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { artifactsOf } from '../../../src/journal/artifacts.ts';
import { decisionOf, mcp } from '../../../src/surfaces/mcp/index.ts';
import type { McpFrame, McpOutcome } from '../../../src/surfaces/mcp/index.ts';
import type { FoldedRun, StreamEnd } from '../../../src/surfaces/surface.ts';

const SESSION = `ses_${'a'.repeat(32)}`;
const RUN = `run_${'a'.repeat(32)}_0123456789ab_1`;
const PNG = 'iVBORw0KGgo=';

type Given = readonly [type: string, data?: object, more?: object];

function eventsOf(given: readonly Given[]): SessionEvent[] {
  const live = new Set(['progress']);
  return given.map(([type, data = {}, more = {}], index) => {
    const head = { session_id: SESSION, run_id: RUN, iteration: 1, timestamp: 1_000 + index };
    return { seq: live.has(type) ? null : index + 1, type, ...head, ...more, data } as unknown as SessionEvent;
  });
}

function runWith(more: Partial<FoldedRun> = {}): FoldedRun {
  const options = { progress: true };
  const base = { sessionId: SESSION, runId: RUN, agent: 'assistant', startedAt: 1_000, after: 0, clientTools: [] };
  return { ...base, options, artifactsOf, ...more };
}

function folded(
  given: readonly Given[],
  how: StreamEnd | 'detached' = 'stopped',
  more?: Partial<FoldedRun>,
): McpFrame[] {
  const fold = mcp.fold(runWith(more));
  const text =
    eventsOf(given)
      .map((event) => fold.add(event))
      .join('') + (how === 'detached' ? (fold.detached?.() ?? '') : fold.end(how));
  return text
    .split('\n\n')
    .filter(Boolean)
    .map((frame) => JSON.parse(frame.replace('data: ', '')) as McpFrame);
}

function outcomeOf(given: readonly Given[], how?: StreamEnd | 'detached'): McpOutcome {
  const last = folded(given, how).at(-1) ?? ({} as McpFrame);
  if ('end' in last) return last.end;
  if ('task' in last) return last.task;
  throw new Error('no outcome');
}

const started = (source: string): Given => ['agent_started', { agent: 'assistant', version: '1', source }];
const completed = (response: string, more: object = {}): Given => [
  'agent_completed',
  { response, iterations: 1, ...more },
];
const tool = (output: unknown): Given[] => [
  started('text'),
  ['action_started', { attempt: 1 }, { action_id: 'tool', action_name: 'sum' }],
  ['action_completed', { output, ms: 1, attempt: 1 }, { action_id: 'tool', action_name: 'sum' }],
  completed(''),
];
const asked = (id: string): Given => [
  'approval_requested',
  { approval_id: id, type: 'tool', sha256: '', bytes: 1, complete: true, parameters: { to: 'Ann' } },
  { action_id: id, action_name: 'pay' },
];

describe('[E4] the result', () => {
  test('of an agent is its answer, and names the session', () => {
    const { status, result } = outcomeOf([started('model'), completed('It is 42.')]);
    expect([status, result.content, result.isError]).toEqual([
      'completed',
      [{ type: 'text', text: 'It is 42.' }],
      undefined,
    ]);
    expect(result.structuredContent).toEqual({
      session_id: SESSION,
      run_id: RUN,
      status: 'completed',
      response: 'It is 42.',
    });
  });

  test.each([
    ['an object', { sum: 3 }, [{ type: 'text', text: '{"sum":3}' }], { sum: 3 }],
    ['a text', 'three', [{ type: 'text', text: 'three' }], undefined],
    ['null', null, [{ type: 'text', text: 'null' }], undefined],
    [
      'content of the protocol',
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'resource', resource: { uri: 'x:y', text: 'b' } },
        ],
      },
      [
        { type: 'text', text: 'a' },
        { type: 'resource', resource: { uri: 'x:y', text: 'b' } },
      ],
      undefined,
    ],
    [
      'an image',
      { content: [{ type: 'image', data: PNG, mimeType: 'image/png' }] },
      [{ type: 'image', data: PNG, mimeType: 'image/png' }],
      undefined,
    ],
  ])('of a tool is its output: %s', (_, output, content, structured) => {
    const { result } = outcomeOf(tool(output));
    expect([result.content, result.structuredContent]).toEqual([content, structured]);
  });

  test('links to files', () => {
    const { result } = outcomeOf(tool({ ok: true, files: [{ name: 'a.csv', content_type: 'text/csv', text: 'a,b' }] }));
    expect(result.content).toEqual([
      { type: 'text', text: '{"ok":true}' },
      {
        type: 'resource_link',
        uri: `cortex://sessions/${SESSION}/artifacts/art_0123456789ab_3_1`,
        name: 'a.csv',
        mimeType: 'text/csv',
        size: 3,
      },
    ]);
  });

  test('of a workflow is its outputs', () => {
    const { result } = outcomeOf([started('workflow'), completed('', { outputs: { n: 42 } })]);
    expect([result.content, result.structuredContent]).toEqual([[{ type: 'text', text: '{"n":42}' }], { n: 42 }]);
  });

  test.each<[string, Given[], string]>([
    [
      'a failed run',
      [started('model'), ['agent_failed', { error: { code: 'model_timeout', message: 'Late' } }]],
      'model_timeout: Late',
    ],
    ['a cancelled run', [started('model'), ['agent_cancelled', {}]], 'cancelled: The run was cancelled'],
    [
      'a failed tool',
      [
        started('text'),
        ['action_failed', { error: { code: 'timeout', message: 'Late' } }, { action_id: 'tool' }],
        completed(''),
      ],
      'timeout: Late',
    ],
    [
      'a rejected call',
      [
        started('text'),
        ['action_rejected', { code: 'invalid_parameters', message: 'No' }, { action_id: 'tool' }],
        completed(''),
      ],
      'invalid_parameters: No',
    ],
  ])('of %s is an error with its code', (_, given, text) => {
    const { result } = outcomeOf(given);
    expect([result.isError, result.content]).toEqual([true, [{ type: 'text', text }]]);
  });

  test('is never a success if the stream ended before the run', () => {
    const { status, result } = outcomeOf([started('model')], 'connection_lost');
    expect([status, result.isError]).toEqual(['lost', true]);
  });
});

describe('[E4] a run that waits', () => {
  test('names its open approvals, and goes on with the decision', () => {
    const waits = [
      started('model'),
      asked('apr_1'),
      asked('apr_2'),
      ['agent_waiting', { reason: 'approvals' }],
    ] as const;
    const { status, approvals, result } = outcomeOf(waits);
    expect([status, approvals.map(({ approval_id: id, call }) => [id, call])]).toEqual([
      'waiting',
      [
        ['apr_1', 'pay {"to":"Ann"}'],
        ['apr_2', 'pay {"to":"Ann"}'],
      ],
    ]);
    expect(result.isError).toBeUndefined();
    expect(String(result.content[0]?.['text'])).toContain('apr_1');
    const decided = [...waits, ['approval_resolved', { approval_id: 'apr_1', approved: true }] as Given];
    expect(outcomeOf(decided, 'detached').status).toBe('running');
    expect(outcomeOf([...decided, ['agent_waiting', {}]]).approvals).toHaveLength(1);
  });

  test('for an answer to a question shows the question', () => {
    const question = { from: 'Shop', message: 'Which size?', schema: { type: 'object' }, url: 'https://shop.example' };
    const asks: Given = ['approval_requested', { approval_id: 'q', type: 'tool', question }, { action_name: 'buy' }];
    const { approvals } = outcomeOf([started('model'), asks, ['agent_waiting']]);
    expect(approvals[0]?.question).toEqual({
      message: 'Shop asks: Which size? (https://shop.example)',
      schema: { type: 'object' },
    });
    const values = { size: 'M' };
    expect(decisionOf({ action: 'accept', content: values }, true)).toEqual({
      approved: true,
      note: null,
      content: values,
    });
    expect(decisionOf({ action: 'decline', content: values }, true)).toEqual({ approved: false, note: null });
  });

  test('is given to a client that continues without the reports that it has', () => {
    const given = [
      started('model'),
      ['iteration_started', { iteration: 1 }],
      asked('a'),
      ['approval_resolved', { approval_id: 'a' }],
      ['iteration_started', { iteration: 2 }],
      completed('x'),
    ] as const;
    const frames = folded(given, 'stopped', { after: 3 });
    expect(frames.map((frame) => ('progress' in frame ? frame.progress : 'end'))).toEqual([
      { progress: 2, message: 'iteration 2' },
      'end',
    ]);
  });

  test.each([
    [
      { action: 'accept', content: { approved: true, note: 'ok' } },
      { approved: true, note: 'ok' },
    ],
    [
      { action: 'accept', content: { approved: 'true' } },
      { approved: false, note: undefined },
    ],
    [
      { action: 'accept', content: {} },
      { approved: false, note: undefined },
    ],
    [{ action: 'accept' }, { approved: false, note: undefined }],
    [
      { action: 'decline', content: { approved: true } },
      { approved: false, note: undefined },
    ],
    [{ action: 'cancel' }, { approved: false, note: undefined }],
    [{ approved: true }, null],
    ['accept', null],
    [null, null],
    [[], null],
  ])('is answered with %j', (response, expected) => {
    expect(decisionOf(response)).toEqual(expected);
  });
});

describe('[E4] reports of progress', () => {
  test('grow, and say what code says', () => {
    const say = (percent: number): Given => [
      'progress',
      { stream: 'tool', percent, text: `${percent}` },
      { action_id: 'tool' },
    ];
    const frames = folded([started('text'), say(0), say(50), say(40), say(50), say(100), completed('')]);
    expect(frames.flatMap((frame) => ('progress' in frame ? [frame.progress.progress] : []))).toEqual([0, 50, 100]);
  });

  test('are not sent if the client did not ask for them', () => {
    expect(folded(tool({}), 'stopped', { options: {} })).toHaveLength(1);
  });

  test('have no thought', () => {
    const given = [started('model'), ['thought_completed', { segment: 1, content: 'SECRET' }], completed('x')] as const;
    expect(JSON.stringify(folded(given))).not.toContain('SECRET');
  });
});

test('[E4] the document of a run that goes on needs none of its events', () => {
  const { document } = mcp;
  expect([document?.eventsAt?.('running'), document?.eventsAt?.('queued')]).toEqual([[], []]);
  const fold = document?.of(runWith());
  expect(fold?.end('running').body).toMatchObject({ status: 'running', run_id: RUN });
});
