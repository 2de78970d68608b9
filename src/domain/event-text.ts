/**
 * Which members of an event's data are text for people and models (C9). The other strings are identifiers: ids, names,
 * codes, hashes, paths of files and members of enumerations. They are never changed, because clients use them.
 */
import type { EventData, EventType } from './event.ts';

/**
 * `true`: every string in the value, names of members included. `message`, `excerpt`: a text that may have been cut
 * (TextKind in bounded/redaction.ts). `schema`: a JSON Schema, of which only the texts are redacted. A map: only these members of the value, or of its items.
 */
export type TextIn = true | 'message' | 'excerpt' | 'schema' | { readonly [member: string]: TextIn };

type TextOf<T extends EventType> = { readonly [M in keyof EventData[T]]?: TextIn };

const block = { content: true } as const;
const question = { from: true, message: true, schema: 'schema', url: true } as const;
const failure = { error: { message: 'message' } } as const;

export const EVENT_TEXT: { readonly [T in EventType]: TextOf<T> } = {
  agent_started: {},
  run_branched: {},
  message_received: { content: true, parts: { text: true } },
  iteration_started: {},
  plan_generated: {},
  iteration_completed: {},
  usage: {},
  warning: { message: 'message' },
  budget_exceeded: {},
  agent_waiting: {},
  agent_completed: { response: true, outputs: true },
  agent_failed: failure,
  agent_cancelled: { reason: true },
  thought_started: {},
  thought_completed: block,
  text_started: {},
  text_completed: block,
  response_started: {},
  response_completed: { ...block, missing: true },
  action_queued: { parameters: true },
  action_started: { parameters: true },
  action_retrying: failure,
  action_completed: { output: true },
  action_failed: failure,
  action_skipped: { because: 'message' },
  action_cancelled: { reason: true },
  action_rejected: { message: 'message', excerpt: 'excerpt', parameters: true },
  approval_requested: { parameters: true, inputs: true, reason: true, question },
  approval_resolved: { note: true, content: true },
  policy_applied: { message: true, parameters: true },
  client_tool_called: { parameters: true },
  client_tool_settled: {},
  context_feed_updated: { value: true, error: 'message' },
  file_changed: {},
  skill_loaded: {},
  memory_changed: { summary: true, value: true },
  variable_changed: { value: true },
  // Live text arrives in pieces: its writer redacts it as a stream. The events of a child were redacted by the child.
  thought: { delta: true },
  text: { delta: true },
  response: { delta: true },
  llm_token: { token: true },
  progress: { text: true },
};
