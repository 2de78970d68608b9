/**
 * The results of the run's actions by key: the values of `$name` (P12, P13).
 *
 * Owns the outputs in memory and their total size. Does not own the journal: an output that is no longer in memory is
 * read from there on demand.
 *
 * Invariants (J6):
 *  1. At most `limits.outcomesInMemoryBytes` of outputs stay in memory; the newest one always does.
 *  2. The outputs of a run have at most `limits.runOutcomeBytes` in total; an output beyond that is rejected.
 */
import type { ActionError, ActionKey, TerminalStatus } from '../../domain/action.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { textBytes } from '../../domain/tokens.ts';

export interface ActionResult {
  readonly id: string;
  /** Its position in its generation's text; a rejected action may have the same id. */
  readonly ordinal: number;
  readonly name: string | null;
  /** Declared fire_and_forget and not awaited: not shown to the model (S4). */
  readonly silent: boolean;
  /** It loaded a skill, whose text the model is shown whole (C8). */
  readonly isSkill?: true;
  readonly status: TerminalStatus;
  /** The output of a completed action, else null. */
  readonly output: Json;
  /** Why there is no output, in one line; null for a completed action. */
  readonly note: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number;
  /** The event with the output. */
  readonly seq: number;
}

/** The current value of a name in the model's text. */
export type NameValue =
  /** `isContext`: a context variable, which commands and code in answers do not get. */
  | { readonly type: 'value'; readonly value: Json; readonly isContext?: true }
  /** The producer is still running: responses wait here (P13). */
  | { readonly type: 'running' }
  /** There is no value, and there will be none, or not soon: shown as `[name: reason]`. */
  | {
      readonly type: 'absent';
      readonly why: 'failed' | 'skipped' | 'rejected' | 'cancelled' | 'pending' | 'left_out';
    }
  | { readonly type: 'unknown' };

interface StagedOutput {
  readonly output: Json;
  readonly bytes: number;
}

interface Settled {
  readonly result: Omit<ActionResult, 'output' | 'seq'>;
  /** Undefined once it is no longer in memory. */
  output: Json | undefined;
  readonly bytes: number;
  /** The event with the output. */
  readonly seq: number;
}

export class Results {
  readonly #settled = new Map<ActionKey, Settled>();
  readonly #staged = new Map<ActionKey, StagedOutput>();
  readonly #startedAt = new Map<ActionKey, number>();
  readonly #keys = new Map<string, ActionKey>();
  readonly #awaited = new Map<string, PromiseWithResolvers<ActionResult>>();
  readonly #load: (seq: number) => Json;
  /** Keys of outputs in memory, oldest first. */
  #inMemory: ActionKey[] = [];
  #memoryBytes = 0;
  #totalBytes = 0;
  #failed = 0;

  /** @param load reads the output of an event */
  constructor(load: (seq: number) => Json) {
    this.#load = load;
  }

  started(key: ActionKey, at: number): void {
    if (!this.#startedAt.has(key)) this.#startedAt.set(key, at);
  }

  /** The started action has waited for a person: this time is no part of its duration. */
  waited(key: ActionKey, ms: number): void {
    const startedAt = this.#startedAt.get(key);
    if (startedAt !== undefined) this.#startedAt.set(key, startedAt + ms);
  }

  startedAt(key: ActionKey): number | null {
    return this.#startedAt.get(key) ?? null;
  }

  /**
   * Stores an attempt's output until the scheduler has decided whether it counts (S7). A large output is cut, with a
   * marker.
   *
   * @param isRecorded the output is in a replayed record, which says that it was stored
   * @returns why it cannot be stored, or null
   */
  stageOutput(key: ActionKey, output: Json, isRecorded = false): ActionError | null {
    const bounded = limitSize(output);
    const stagedBytes = this.#staged.get(key)?.bytes ?? 0;
    if (!isRecorded && this.#totalBytes - stagedBytes + bounded.bytes > limits.runOutcomeBytes) {
      const message = `The outputs of this run would exceed ${limits.runOutcomeBytes} bytes in total`;
      return { code: 'outcome_quota', message, retryable: false };
    }
    this.#totalBytes += bounded.bytes - stagedBytes;
    this.#staged.set(key, bounded);
    return null;
  }

  /** The staged output, which stays staged. */
  stagedOutput(key: ActionKey): Json {
    return this.#staged.get(key)?.output ?? null;
  }

  /** @param seq the event with the output */
  settle(key: ActionKey, result: Omit<ActionResult, 'startedAt' | 'output' | 'seq'>, seq: number): void {
    const staged = this.#staged.get(key);
    this.#staged.delete(key);
    const counts = result.status === 'completed' && staged !== undefined;
    if (staged !== undefined && !counts) this.#totalBytes -= staged.bytes;
    const { output, bytes }: StagedOutput = counts ? staged : { output: null, bytes: 0 };
    const settled: Settled = { result: { ...result, startedAt: this.startedAt(key) }, output, bytes, seq };
    this.#settled.set(key, settled);
    if (result.status === 'failed' || result.status === 'rejected') this.#failed += 1;
    this.#keys.set(result.id, key);
    this.#awaited.get(result.id)?.resolve(this.#read(settled));
    this.#awaited.delete(result.id);
    if (bytes === 0) return;
    this.#inMemory.push(key);
    this.#memoryBytes += bytes;
    while (this.#memoryBytes > limits.outcomesInMemoryBytes && this.#inMemory.length > 1) this.#forgetOldest();
  }

  /** The results of the iteration's actions, in order of settlement. */
  ofIteration(iteration: number): ActionResult[] {
    const prefix = `${iteration}/`;
    return [...this.#settled].filter(([key]) => key.startsWith(prefix)).map(([, settled]) => this.#read(settled));
  }

  /** Resolves when the action with this id has settled, even if it is declared later. */
  async settled(id: string): Promise<ActionResult> {
    const key = this.#keys.get(id);
    const known = key === undefined ? null : this.get(key);
    if (known !== null) return known;
    const waiting = this.#awaited.get(id) ?? Promise.withResolvers<ActionResult>();
    this.#awaited.set(id, waiting);
    return await waiting.promise;
  }

  /** Number of settled actions that failed or were rejected. */
  get failed(): number {
    return this.#failed;
  }

  has(key: ActionKey): boolean {
    return this.#settled.has(key);
  }

  get(key: ActionKey): ActionResult | null {
    const settled = this.#settled.get(key);
    return settled === undefined ? null : this.#read(settled);
  }

  #read({ result, output, seq }: Settled): ActionResult {
    return { ...result, output: output === undefined ? this.#load(seq) : output, seq };
  }

  #forgetOldest(): void {
    const key = this.#inMemory.shift();
    const settled = key === undefined ? undefined : this.#settled.get(key);
    if (settled === undefined) return;
    settled.output = undefined;
    this.#memoryBytes -= settled.bytes;
  }
}

/** The output with its size; past `limits.outcomeBytes` its beginning as text, with a marker (J6). */
function limitSize(output: Json): StagedOutput {
  const text = JSON.stringify(output);
  // A UTF-16 code unit has at most 3 bytes in UTF-8: most outputs need no exact count.
  const bytes = text.length * 3 <= limits.outcomeBytes ? text.length : textBytes(text);
  if (bytes <= limits.outcomeBytes) return { output, bytes };
  const kept = typeof output === 'string' ? output : text;
  const head = kept.slice(0, Math.floor(limits.outcomeBytes / 4)).toWellFormed();
  return {
    output: `${head}\n[cut: the output had ${bytes} bytes; the first ${head.length} characters are kept]`,
    bytes: head.length,
  };
}
