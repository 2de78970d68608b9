/**
 * Calls as Cortex-MK1 and agent-lib write them (P6): `{"tool": "NAME"}`, `delegate_to_agent`, and `type="feed"`. Each is
 * converted to the form of this protocol, with a note for the warning.
 */
import type { InternalAction } from '../../../domain/internal-actions.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { referenceNames } from '../../references/references.ts';
import type { DeclaredFields, KnownTargets } from './action-fields.ts';
import type { ActionHead } from './action-head.ts';

/** `tool` is the name if nothing else names the action. */
export function toolAsName(head: ActionHead, body: JsonObject, notes: string[]): JsonObject {
  const { tool, ...rest } = body;
  const named = head.name !== null || Object.hasOwn(body, 'name') || Object.hasOwn(body, 'type');
  if (head.type !== 'tool' || named || typeof tool !== 'string') return body;
  notes.push('"tool" is its name');
  return { name: tool, ...rest };
}

/** `delegate_to_agent` with an `agent` is a call of that agent, unless there is a tool with this name. */
export function delegated(fields: DeclaredFields, targets: KnownTargets | null, notes: string[]): DeclaredFields {
  const { type, name, parameters } = fields;
  if (type !== 'tool' || name !== DELEGATE || targets?.isTool(DELEGATE) === true) return fields;
  const { agent, ...rest } = parameters;
  if (typeof agent !== 'string' || agent.trim() === '') return fields;
  notes.push(`${DELEGATE} calls the agent "${agent.trim()}"`);
  return { ...fields, type: 'agent', name: agent.trim(), parameters: rest };
}

const DELEGATE = 'delegate_to_agent';

/** `type="feed"` reads a feed. The reference to it makes the runtime fetch its current value. */
export function feedReading(head: ActionHead, fields: DeclaredFields, notes: string[]): DeclaredFields {
  if (!head.readsFeed) return fields;
  const { name: id, parameters, references } = fields;
  const ignored = Object.keys(parameters).length > 0 ? ', without its parameters: they are in its definition' : '';
  notes.push(`it reads the feed "${id}"${ignored}`);
  const own = new Set(referenceNames(parameters));
  return {
    ...fields,
    name: READ,
    parameters: { id },
    references: [...references.filter((name) => !own.has(name)), id],
  };
}

const READ: InternalAction = 'list_context_feeds';
