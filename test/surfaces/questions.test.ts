/** The question of an action's target, in every protocol (J8, E1 to E3): who asks, and what. */
import { expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { agUi } from '../../src/surfaces/ag-ui/index.ts';
import { aiSdk } from '../../src/surfaces/ai-sdk/index.ts';
import { openai } from '../../src/surfaces/openai/index.ts';
import type { Surface } from '../../src/surfaces/surface.ts';
import { toolOf } from '../support/definitions.ts';
import { say, sessionKit, settle } from '../support/session-kit.ts';

const ID = `apr_${'1'.padStart(32, '0')}`;
const SCHEMA = { type: 'object', properties: { seats: { type: 'integer' } }, required: ['seats'] };
const QUESTION = { from: 'the airline', message: 'How many "seats"?', schema: SCHEMA };

/** A run whose action asks, waits, and goes on. */
async function recorded(): Promise<readonly SessionEvent[]> {
  const error = { code: 'unanswered', message: 'the question has no answer', retryable: false };
  const book = `<action type="tool" mode="async" id="b">${JSON.stringify({ name: 'book', parameters: { to: 'Rome' } })}</action>`;
  const kit = await sessionKit({
    script: [book, '<response final="true">Booked.</response>'],
    tools: [toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'book', effects: 'idempotent' })],
    approvalIds: () => ID,
    executors: {
      tool: async ({ answer }) =>
        answer === undefined
          ? { ok: false, error, question: { ...QUESTION, state: { hidden: true } } }
          : { ok: true, output: answer.content },
    },
  });
  await say(kit, 'go');
  await kit.session.resolveApproval(ID, true, null, { seats: 2 });
  await kit.session.ended(1);
  await settle();
  return kit.events;
}

const events = await recorded();
const wait = events.findIndex(({ type }) => type === 'agent_waiting') + 1;

/** The frames as objects; the first part is what the client has before it answers. */
function framesOf(surface: Surface, options: JsonObject): readonly [asked: JsonObject[], answered: JsonObject[]] {
  const [{ session_id: sessionId, run_id: runId } = { session_id: '', run_id: '' }] = events;
  const run = { sessionId, runId, agent: 'assistant', startedAt: 0, clientTools: [], options };
  const parsed = (text: string): JsonObject[] =>
    text
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)) as JsonObject);
  const before = surface.fold({ ...run, after: 0 });
  const asked = events.slice(0, wait).map((event) => before.add(event));
  const after = surface.fold({ ...run, after: events[wait - 1]?.seq ?? 0 });
  const answered = events.map((event) => after.add(event));
  return [parsed(asked.join('') + before.end('stopped')), parsed(answered.join('') + after.end('stopped'))];
}

test('[E1] the AI SDK gets it as a data part before the request for approval', () => {
  const [asked, answered] = framesOf(aiSdk, {});
  const types = asked.map(({ type }) => type).filter((type) => /^(tool|data-question)/.test(String(type)));
  expect(types).toEqual(['tool-input-available', 'data-question', 'tool-approval-request']);
  const toolCallId = asked.find(({ type }) => type === 'tool-input-available')?.['toolCallId'];
  expect(asked.find(({ type }) => type === 'data-question')).toEqual({
    type: 'data-question',
    id: ID,
    data: { approvalId: ID, toolCallId, ...QUESTION },
  });
  expect(asked.find(({ type }) => type === 'tool-approval-request')).toMatchObject({ approvalId: ID, toolCallId });
  expect(answered.find(({ type }) => type === 'tool-output-available')).toMatchObject({
    toolCallId,
    output: { seats: 2 },
  });
});

test('[E2] chat completions name it in the error of the wait, as a quotation', () => {
  const [asked] = framesOf(openai, { api: 'chat' });
  const { error } = asked.find((frame) => 'error' in frame) ?? {};
  expect(error).toMatchObject({
    code: 'approval_required',
    message: expect.stringContaining('the airline asks "How many \\"seats\\"?". POST /agent/session/'),
  });
});

test('[E2] responses have it in the arguments of the request, and the call with its parameters in the next response', () => {
  const [asked, answered] = framesOf(openai, { api: 'responses' });
  const itemOf = (frames: JsonObject[], type: string): JsonObject =>
    frames
      .filter((frame) => frame['type'] === 'response.output_item.done')
      .map(({ item }) => item as JsonObject)
      .findLast((item) => item['type'] === type) ?? {};
  expect(JSON.parse(String(itemOf(asked, 'mcp_approval_request')['arguments']))).toEqual({
    question: QUESTION,
    parameters: { to: 'Rome' },
  });
  expect(itemOf(answered, 'mcp_call')).toMatchObject({ status: 'completed', arguments: '{"to":"Rome"}' });
});

test('[E3] AG-UI has an interrupt that needs input, with the schema of the answer', () => {
  const [asked] = framesOf(agUi, {
    threadId: 'thread',
    runId: 'run',
    answered: [],
    hasState: false,
    knowsCancelled: true,
    messages: null,
  });
  const { outcome } = asked.findLast(({ type }) => type === 'RUN_FINISHED') ?? {};
  expect(outcome).toMatchObject({
    type: 'interrupt',
    interrupts: [
      {
        id: ID,
        reason: 'input_required',
        message: 'the airline asks: How many "seats"?',
        responseSchema: { properties: { approved: { type: 'boolean' }, content: SCHEMA }, required: ['approved'] },
        metadata: { question: QUESTION, parameters: { to: 'Rome' } },
      },
    ],
  });
});

test.each([aiSdk, openai, agUi])('the state of a question is in no frame', (surface) => {
  const options = surface === openai ? { api: 'responses' } : { answered: [], messages: null };
  expect(JSON.stringify(framesOf(surface, options))).not.toContain('hidden');
});
