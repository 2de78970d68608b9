/**
 * Golden transcripts: the frames of one run in every protocol (E1 to E3), each in a line: its name, if it has one, and its
 * data. A change of them is a change for clients: look at the difference, then `npx vitest run --project node test/surfaces/golden.test.ts -u`.
 *
 * The run has a thought, bare text, a plan, actions that succeed, fail, are skipped and are rejected, an action in a
 * thought, an approval, a call of a client tool, a variable, and a response whose value is known only after the wait.
 */
import { expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { agUi } from '../../src/surfaces/ag-ui/index.ts';
import { aiSdk } from '../../src/surfaces/ai-sdk/index.ts';
import { openai } from '../../src/surfaces/openai/index.ts';
import type { FoldedRun, Surface } from '../../src/surfaces/surface.ts';
import { callsOf } from '../support/client-calls.ts';
import { toolOf } from '../support/definitions.ts';
import { say, sessionKit, settle } from '../support/session-kit.ts';

const action = (id: string, body: object, more = ''): string =>
  `<action type="tool" mode="async" id="${id}"${more}>${JSON.stringify(body)}</action>`;

const FIRST = [
  `<thought>I look. ${action('t', { name: 'echo', parameters: { text: 'in a thought' } })}</thought>`,
  'Some bare text, with an emoji: 🎈.',
  '<action type="internal" mode="sync" id="v">{"name": "set_variable", "parameters": {"key": "colour", "value": "red"}}</action>',
  action('e', { name: 'echo', parameters: { text: 'one' } }),
  action('d', { name: 'echo', parameters: { text: 'after $e.text' } }),
  action('f', { name: 'fail', parameters: {} }),
  action('s', { name: 'echo', parameters: { text: '$f.text' } }),
  action('p', { name: 'pay', parameters: { to: 'Ann' } }),
  action('l', { name: 'locate', parameters: {} }),
  action('e', { name: 'echo', parameters: { text: 'the id is used already' } }),
  '<response final="false">Ann is paid in $l.</response>',
].join('\n');
const SECOND = '<thought>So be it.</thought><response final="true">Over and out.</response>';

async function recorded(): Promise<readonly SessionEvent[]> {
  const kit = await sessionKit({
    script: [FIRST, SECOND],
    tools: [
      toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'pay', effects: 'idempotent', approval: 'always' }),
      toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'fail' }),
      toolOf({ type: 'client' }, { name: 'locate' }),
    ],
    approvalIds: () => `apr_${'1'.padStart(32, '0')}`,
    executors: {
      tool: async ({ action: { name }, parameters }) =>
        name === 'fail'
          ? { ok: false, error: { code: 'no_luck', message: 'No luck', retryable: false } }
          : { ok: true, output: { name, ...parameters } },
    },
  });
  kit.sql.onSync = settle;
  await say(kit, 'go');
  const [call = ''] = callsOf(kit);
  const [open = ''] = kit.session.openApprovalIds;
  await kit.session.resolveApproval(open, true, null);
  await kit.session.settleCall(call, { output: 'Bern' });
  await kit.session.ended(1);
  await settle();
  return kit.events;
}

const AG_UI: JsonObject = {
  threadId: 'thread',
  runId: 'run',
  answered: [],
  hasState: true,
  knowsCancelled: true,
  messages: null,
};
const PROTOCOLS: readonly (readonly [name: string, surface: Surface, options: JsonObject])[] = [
  ['ai-sdk', aiSdk, {}],
  ['openai-chat', openai, { api: 'chat', usage: true }],
  ['openai-responses', openai, { api: 'responses' }],
  ['ag-ui', agUi, AG_UI],
];

const events = await recorded();
const wait = events.find(({ type }) => type === 'agent_waiting')?.seq ?? 0;

/** @param after as in a request that continues the run */
function framesOf(surface: Surface, given: readonly SessionEvent[], options: JsonObject, after: number): string {
  const [{ session_id: sessionId, run_id: runId } = { session_id: '', run_id: '' }] = given;
  const run: FoldedRun = {
    sessionId,
    runId,
    agent: 'assistant',
    startedAt: 0,
    after,
    clientTools: ['locate'],
    options,
  };
  const fold = surface.fold(run);
  return given.map((event) => fold.add(event)).join('') + fold.end('stopped');
}

/** A line for each frame. */
const linesOf = (frames: string): string =>
  frames
    .split('\n\n')
    .map((frame) => {
      const [isFrame, name, data] = /^(?:event: (\S+)\n)?data: (.*)$/.exec(frame) ?? [];
      return isFrame === undefined ? JSON.stringify(frame) : name === undefined ? data : `${name} ${data}`;
    })
    .join('\n');

const asked = events.slice(0, events.findIndex(({ seq }) => seq === wait) + 1);

test.each(PROTOCOLS)(
  '%s: a background action that ends while the run waits changes nothing about the wait',
  (...each) => {
    const [, surface, options] = each;
    const head = { session_id: 's', run_id: 'r', iteration: 1, timestamp: 0, action_id: 'b', action_name: 'echo' };
    const data = { output: 1, ms: 1, attempt: 1 };
    const ended = { seq: wait + 1, type: 'action_completed', ...head, data } as SessionEvent;
    const lastOf = (frames: string): unknown => {
      const last = frames.split('\n\n').findLast((frame) => frame.includes('{')) ?? '';
      return { ...(JSON.parse(last.slice(last.indexOf('{'))) as object), response: null, sequence_number: 0 };
    };
    expect(lastOf(framesOf(surface, [...asked, ended], options, 0))).toEqual(
      lastOf(framesOf(surface, asked, options, 0)),
    );
  },
);

test.each(PROTOCOLS)('%s: the frames up to the wait, and those of the rest', async (name, surface, options) => {
  await expect(linesOf(framesOf(surface, asked, options, 0))).toMatchFileSnapshot(`golden/${name}.asked.txt`);
  await expect(linesOf(framesOf(surface, events, options, wait))).toMatchFileSnapshot(`golden/${name}.answered.txt`);
});

const journaled = events.filter(({ seq }) => seq !== null);

/** The texts by their id, and all other frames but those of the ends of requests and steps, in any order. */
function contentOf(frames: string): {
  readonly texts: ReadonlyMap<string, string>;
  readonly others: readonly string[];
} {
  const texts = new Map<string, string>();
  const others = frames.split('\n\n').filter((frame) => {
    if (/^$|DONE|"type":"(?:start|finish|start-step|finish-step|RUN_\w+|STEP_\w+)"/.test(frame)) return false;
    const { delta, messageId, toolCallId, id = messageId ?? toolCallId } = JSON.parse(frame.slice(6)) as JsonObject;
    if (typeof delta === 'string') texts.set(String(id), (texts.get(String(id)) ?? '') + delta);
    return typeof delta !== 'string';
  });
  return { texts, others: others.toSorted() };
}

test.each(PROTOCOLS.filter(([name]) => name === 'ai-sdk' || name === 'ag-ui'))(
  '%s: a replay has the texts and frames of the two requests',
  (_name, surface, options) => {
    const replayed = contentOf(framesOf(surface, journaled, options, 0));
    const [first, second] = [framesOf(surface, asked, options, 0), framesOf(surface, events, options, wait)];
    expect(replayed.others.length).toBeGreaterThan(20);
    expect(replayed).toEqual(contentOf(first + second));
  },
);

test('openai-responses: a replay is the first response, frame by frame', () => {
  const [, surface, options] = PROTOCOLS[2] as (typeof PROTOCOLS)[number];
  expect(framesOf(surface, journaled, options, 0)).toBe(framesOf(surface, asked, options, 0));
});

test('openai-chat: the frames of a replay', async () => {
  const [, surface, options] = PROTOCOLS[1] as (typeof PROTOCOLS)[number];
  await expect(linesOf(framesOf(surface, journaled, options, 0))).toMatchFileSnapshot(
    'golden/openai-chat.replayed.txt',
  );
});

test.each(PROTOCOLS)('%s: an answer whose generation ended early is no success', (name, surface, options) => {
  const head = { session_id: 's', run_id: 'r', iteration: 1, timestamp: 0 };
  const event = (seq: number, type: string, data: object): SessionEvent =>
    ({ seq, type, ...head, data }) as unknown as SessionEvent;
  const run = (code: string): readonly SessionEvent[] => [
    event(1, 'iteration_started', { iteration: 1 }),
    event(2, 'response_started', { final: true }),
    event(3, 'response_completed', { segment: 2, content: 'Hello th', final: true, unclosed: true }),
    event(4, 'warning', { code, message: 'm' }),
    event(5, 'agent_completed', { response: 'Hello th', iterations: 1, usage: {} }),
  ];
  const expected =
    {
      'ai-sdk': '"finishReason":"length"',
      'openai-chat': '"finish_reason":"length"',
      'openai-responses': '"type":"response.incomplete"',
      'ag-ui': '"type":"RUN_ERROR","code":"generation_cut"',
    }[name] ?? '';
  expect(framesOf(surface, run('generation_cut'), options, 0)).toContain(expected);
  expect(framesOf(surface, run('another_code'), options, 0)).not.toContain(expected);
});
