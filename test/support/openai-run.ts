/** A run that calls a client tool, and answers with its result: what OpenAI's two APIs show in their own forms (E2). */
import type { SessionEvent } from '../../src/domain/event.ts';
import { sessionKit, settle } from './session-kit.ts';

const TOOL = { name: 'pick', description: 'Asks for a color.', parameters: { type: 'object' } };
const SCRIPT = [
  '<thought>I ask.</thought>One moment.<action type="tool" mode="async" id="c">{"name": "pick", "parameters": {"a": 1}}</action>',
  '<response final="true">It is $c.</response>',
];

/** @returns all events, live */
export async function clientToolRun(): Promise<readonly SessionEvent[]> {
  const kit = await sessionKit({ script: SCRIPT, agent: (one) => ({ ...one, clientTools: 'allow' }) });
  kit.sql.onSync = settle;
  await kit.session.message({ content: 'go', tokens: false, ifBusy: 'queue', idempotencyKey: null, tools: [TOOL] });
  await kit.session.ended(1);
  await settle();
  const call = kit.events.find(({ type }) => type === 'client_tool_called');
  if (call?.type !== 'client_tool_called') throw new Error('expected a call');
  await kit.session.settleCall(call.data.call_id, { output: 'teal' });
  await kit.session.ended(1);
  await settle();
  return kit.events;
}

export const seqOfWait = (events: readonly SessionEvent[]): number =>
  events.find(({ type }) => type === 'agent_waiting')?.seq ?? 0;

export const journaledOnly = (events: readonly SessionEvent[]): SessionEvent[] =>
  events.filter(({ seq }) => seq !== null);
