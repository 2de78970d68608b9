/** Documents of runs are folded from some types of events only, and say the same as the stream of all events (E2, E4). */
import { expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import { McpDocument } from '../../src/surfaces/mcp/fold.ts';
import { McpRunState } from '../../src/surfaces/mcp/run-state.ts';
import { ChatDocument } from '../../src/surfaces/openai/chat-fold.ts';
import { ChatState } from '../../src/surfaces/openai/chat-state.ts';
import { ResponseDocument } from '../../src/surfaces/openai/responses/response-fold.ts';
import { ResponseState } from '../../src/surfaces/openai/responses/response-state.ts';
import type { DocumentFold, FoldedRun } from '../../src/surfaces/surface.ts';

const RUN: FoldedRun = {
  sessionId: 'ses_a',
  runId: 'run_a',
  agent: 'assistant',
  startedAt: 0,
  after: 0,
  clientTools: [],
  options: {},
};

const CHAT = { events: ChatState.EVENTS, of: () => new ChatDocument(RUN) };
const RESPONSE = { events: ResponseState.EVENTS, of: () => new ResponseDocument(RUN) };
const MCP = { events: McpRunState.WAITING_EVENTS, of: () => new McpDocument(RUN) };

type Draft = readonly [type: SessionEvent['type'], iteration: number, data: object, actionId?: string];

function eventsOf(...drafts: readonly Draft[]): SessionEvent[] {
  return drafts.map(([type, iteration, data, actionId], index) => {
    const action = actionId === undefined ? {} : { action_id: actionId, action_name: 'pay' };
    const head = { seq: index + 1, type, session_id: 'ses_a', run_id: 'run_a', iteration, timestamp: index };
    return { ...head, ...action, data } as unknown as SessionEvent;
  });
}

function bodyOf({ events, of }: typeof CHAT | typeof RESPONSE | typeof MCP, all: readonly SessionEvent[]): unknown {
  const fold: DocumentFold = of();
  for (const event of all) if (events.includes(event.type)) fold.add(event);
  return fold.end('completed').body;
}

const AGAIN = eventsOf(
  ['agent_started', 0, { agent: 'assistant', version: '1', source: 'model' }],
  ['iteration_started', 1, { iteration: 1 }],
  ['warning', 1, { code: 'generation_cut', message: 'm' }],
  ['iteration_completed', 1, { iteration: 1, final: false }],
  ['iteration_started', 2, { iteration: 2 }],
  ['response_started', 2, { final: true }],
  ['response_completed', 2, { segment: 6, content: 'whole', final: true }],
  ['agent_completed', 2, { response: 'whole', iterations: 2, usage: {} }],
);

test('[P15] [E2] an answer is whole if only an earlier generation was cut', () => {
  expect(bodyOf(CHAT, AGAIN)).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
  expect(bodyOf(RESPONSE, AGAIN)).toMatchObject({ status: 'completed' });
});

test('[P15] [E2] an answer of the generation that was cut is not whole', () => {
  const cut = AGAIN.filter(({ seq }) => seq !== 5);
  expect(bodyOf(CHAT, cut)).toMatchObject({ choices: [{ finish_reason: 'length' }] });
  expect(bodyOf(RESPONSE, cut)).toMatchObject({ status: 'incomplete' });
});

const ask = (id: string): Draft => [
  'approval_requested',
  1,
  { approval_id: `approval_${id}`, type: 'tool', sha256: '', bytes: 1, complete: true, parameters: {} },
  id,
];

test('[J8] [E2] [E4] a request that nobody has answered in time is no longer asked', () => {
  const events = eventsOf(
    ['agent_started', 0, { agent: 'assistant', version: '1', source: 'model' }],
    ask('a'),
    ask('b'),
    ['agent_waiting', 1, { reason: 'approvals', iterations: 1 }],
    ['action_failed', 1, { error: { code: 'approval_expired', message: 'm' } }, 'a'],
    ['agent_waiting', 1, { reason: 'approvals', iterations: 1 }],
  );
  expect(JSON.stringify(bodyOf(CHAT, events))).toContain('approval_b');
  expect(JSON.stringify(bodyOf(MCP, events))).not.toContain('approval_a');
});
