/**
 * What people are asked in one run (J8): an action's call as it will be executed, to the letter.
 *
 * Owns the open questions and the sum of what they hold. Does not own the calls themselves: they stand in the
 * journal, with the question, and are read from there whenever an attempt starts.
 *
 * Invariants:
 *  1. What is executed is what the question holds: nothing is resolved again, by a retry or after a crash.
 *  2. A question shows its parameters whole or not at all; it always says how long they are, and their digest.
 *  3. A question is decided once, by the first decision that comes before it ends.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { ActionDeclaration, ActionError, ActionKey } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';

/** A question that can be put: what people see of it, and what only the execution reads. */
export interface Question {
  readonly data: JsonObject;
  readonly state: JsonObject;
  readonly bytes: number;
}

const encoder = new TextEncoder();

export class Approvals {
  readonly #journal: Journal;
  readonly #open = new Map<ActionKey, string>();
  /** The events that hold what was asked about. */
  readonly #asked = new Map<ActionKey, number>();
  #bytes = 0;
  /** Of all calls that were resolved, also of those that were too large. */
  #resolvedBytes = 0;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** The question about an action, or why there is none. */
  question(action: ActionDeclaration, call: ResolvedCall, approvalId: string): Question | { error: ActionError } {
    const { parameters, inputs } = call;
    const text = JSON.stringify({ parameters, inputs });
    const content = encoder.encode(text);
    const left = limits.approvalBytesPerRun - this.#bytes;
    this.#resolvedBytes += content.length;
    if (content.length > left) {
      const message = `Action "${action.id}" needs an approval, and its parameters have ${content.length} bytes with their references resolved; what this run asks about may have ${limits.approvalBytesPerRun} bytes together (left: ${left}). Pass less, or a path into the value`;
      return { error: { code: 'approval_too_large', message, retryable: false } };
    }
    const complete = text.length <= limits.approvalChars;
    return {
      data: {
        approval_id: approvalId,
        type: action.type,
        sha256: bytesToHex(sha256(content)),
        bytes: content.length,
        complete,
        ...(complete ? { parameters } : {}),
        ...(complete && Object.keys(inputs).length > 0 ? { inputs } : {}),
      },
      state: { call: { parameters, inputs } },
      bytes: content.length,
    };
  }

  /** Why nothing more is resolved for a question of this run; null as long as it is. */
  exhausted({ id }: ActionDeclaration): ActionError | null {
    if (this.#resolvedBytes <= limits.approvalBytesResolvedPerRun) return null;
    const message = `Action "${id}" needs an approval, and this run has asked for too many of large calls: ${limits.approvalBytesResolvedPerRun} bytes were resolved for them`;
    return { code: 'approval_too_large', message, retryable: false };
  }

  /** The question stands in the event `seq`. */
  put(key: ActionKey, approvalId: string, seq: number, bytes: number): void {
    this.#open.set(key, approvalId);
    this.#asked.set(key, seq);
    this.#bytes += bytes;
  }

  /** The call that was asked about, as the journal holds it; null for an action that nobody was asked about. */
  call(key: ActionKey): ResolvedCall | null {
    const seq = this.#asked.get(key);
    return seq === undefined ? null : callOf(this.#journal.stateAt(seq));
  }

  has(key: ActionKey): boolean {
    return this.#asked.has(key);
  }

  /** The id of an open question, which is open no longer; null when there is none. */
  close(key: ActionKey): string | null {
    const id = this.#open.get(key) ?? null;
    this.#open.delete(key);
    return id;
  }

  /** The action that an open question is about. */
  keyOf(approvalId: string): ActionKey | null {
    for (const [key, id] of this.#open) if (id === approvalId) return key;
    return null;
  }
}

/** What a question's event keeps for the execution; null in one of a version that kept nothing. */
export function callOf(state: JsonObject | null): ResolvedCall | null {
  const call = state?.['call'];
  if (!isJsonObject(call)) return null;
  const { parameters, inputs } = call;
  return isJsonObject(parameters) && isJsonObject(inputs) ? { parameters, inputs, warnings: [] } : null;
}
