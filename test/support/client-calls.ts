/** Calls of client tools in a test's session (C3). */
import type { RunResult } from '../../src/view/result.ts';
import { eventsOf } from './events.ts';
import { resultOf, settle } from './session-kit.ts';
import type { SessionKit } from './session-kit.ts';

/** Ids of all calls so far, in order. */
export const callsOf = (kit: SessionKit): string[] =>
  eventsOf(kit.events, 'client_tool_called').map(({ data }) => data.call_id);

/** The document of the newest run. */
export async function documentOf(kit: SessionKit): Promise<RunResult> {
  await settle();
  const [run] = kit.session.runs(1);
  if (run === undefined) throw new Error('the session has no run');
  return await resultOf(kit.session, run);
}
