import { expect, test } from 'vitest';
import type * as z from 'zod';
import { EVENTS } from '../../src/domain/event-table.ts';

/** Members that hold strings and are not text: ids, names, paths of files, hashes and events of another session. */
const IDENTIFIERS = new Set(
  `agent_started.agent agent_started.version agent_started.model run_branched.parent_run run_branched.retry_of
   run_branched.action_id message_received.message_id plan_generated.waves plan_generated.critical_path
   plan_generated.edges usage.model warning.code budget_exceeded.budget response_completed.pending
   action_queued.depends_on action_queued.output_key action_rejected.code approval_requested.approval_id
   approval_requested.sha256 approval_resolved.approval_id policy_applied.source
   iteration_completed.failure client_tool_called.call_id client_tool_called.name client_tool_settled.call_id
   client_tool_settled.sha256 context_feed_updated.id file_changed.files file_changed.deleted skill_loaded.name
   memory_changed.until_run memory_changed.key variable_changed.key progress.stream progress.event`.split(/\s+/),
);

interface Definition {
  readonly type: string;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
}

/** Whether a value of this schema may contain a string that is not a member of an enumeration. */
function mayHoldText(schema: z.ZodType): boolean {
  const { type, innerType, element, shape = {} } = schema.def as unknown as Definition;
  if (type === 'record') return 'valueType' in schema.def && mayHoldText(schema.def.valueType as z.ZodType);
  const inner = innerType ?? element;
  if (inner !== undefined) return mayHoldText(inner);
  return ['string', 'unknown', 'any', 'union'].includes(type) || Object.values(shape).some(mayHoldText);
}

const typeOf = (member: string): string => member.split('.')[0] ?? '';
const listed = new Set([...IDENTIFIERS].map(typeOf));

/** The members that may hold text and are not redacted. The table does not compile with one that says nothing about it. */
const unchanged = Object.entries(EVENTS).flatMap(([type, { data, rules }]) =>
  rules
    .filter(([member, { text }]) => text === null && mayHoldText(data.shape[member] as z.ZodType))
    .map(([member]) => `${type}.${member}`),
);

test('[C9] no text is taken for an identifier: these are the identifiers of their events', () => {
  expect(listed.size).toBeGreaterThan(15);
  expect(unchanged.filter((member) => listed.has(typeOf(member))).toSorted()).toEqual([...IDENTIFIERS].toSorted());
});
