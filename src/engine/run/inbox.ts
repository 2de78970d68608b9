/** Everything that happens to a run arrives here, in order, and is taken one turn at a time. */
import type { ActionKey, ActionOutcome } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { FinishReason, Usage } from '../../domain/ports.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import type { NativeCall } from '../../protocol/native/tool-calls.ts';
import type { TimerId } from '../../scheduler/types.ts';
import type { Recalled } from '../actions/outcome-cache.ts';
import type { ToolCallDelta } from './recorded-input.ts';

/** What the generation said, as it came: text to the letter, or a piece of a native call. */
export type StreamPiece = { readonly text: string } | { readonly delta: ToolCallDelta };

export type RunInput =
  /** `said`: what the events came of. */
  | { readonly type: 'protocol'; readonly said: readonly StreamPiece[]; readonly events: readonly ProtocolEvent[] }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'token'; readonly text: string }
  | { readonly type: 'usage'; readonly usage: Usage }
  | {
      readonly type: 'generation_ended';
      /** Text that gave no event before its end, and what the end of the text itself gave. */
      readonly said: readonly StreamPiece[];
      readonly events: readonly ProtocolEvent[];
      readonly finish: FinishReason;
      /** The model's text to the letter (L5). */
      readonly text: string;
      /** Its native calls, in the order in which they began (P17). */
      readonly calls: readonly NativeCall[];
      readonly error: { readonly code: string; readonly message: string } | null;
    }
  | { readonly type: 'progress'; readonly key: ActionKey; readonly attempt: number; readonly data: JsonObject }
  | { readonly type: 'outcome'; readonly key: ActionKey; readonly attempt: number; readonly outcome: ActionOutcome }
  | { readonly type: 'recalled'; readonly key: ActionKey; readonly found: Recalled }
  | { readonly type: 'timer'; readonly timer: TimerId }
  | {
      readonly type: 'approval';
      readonly key: ActionKey;
      readonly approved: boolean;
      readonly note: string | null;
      /** Told whether this decision counts: once it is on disk, or at once where another came first. */
      readonly told?: (counts: boolean) => void;
    }
  | { readonly type: 'cancel'; readonly reason: string }
  /** A workflow has nothing to write before a person has said yes or no (J8). */
  | { readonly type: 'idle' }
  /** Something about a feed that readers are told (F2). */
  | { readonly type: 'feed'; readonly data: JsonObject }
  /** Time to write what stands in memory only (J6). */
  | { readonly type: 'save' };

/** A queue with one taker. What it holds is bounded by the generation's and the actions' own limits. */
export class Inbox {
  #inputs: RunInput[] = [];
  #wake: (() => void) | null = null;
  /** Told when the turn is over that takes what was there when they asked: before it is taken, and while it is worked on. */
  #waiting: (() => void)[] = [];
  #taken: (() => void)[] = [];

  put(input: RunInput): void {
    this.#inputs.push(input);
    this.#wake?.();
    this.#wake = null;
  }

  /**
   * Everything that is there; waits for the first input when there is none.
   *
   * @param turn is waited for once there is one: more may gather meanwhile
   */
  async take(turn: () => Promise<void> | null): Promise<readonly RunInput[]> {
    for (const resolve of this.#taken) resolve();
    this.#taken = [];
    if (this.#inputs.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    const waited = turn();
    if (waited !== null) await waited;
    const taken = this.#inputs;
    this.#inputs = [];
    this.#taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  /** Resolves when the turn is over that takes what is there now. */
  async turnOver(signal: AbortSignal): Promise<void> {
    if (this.#inputs.length === 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}
