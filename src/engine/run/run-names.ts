/**
 * The values of names in a run (P12), and each action's parameters, which are resolved once (P12, S7).
 *
 * Owns the meaning of every name as first resolved by an action. Does not own values: results, variables and feeds are
 * read from their owners.
 *
 * Invariants:
 *  1. Whatever an action is resolved for (a lookup, an attempt, a retry, an attempt after a crash), its names have the
 *     same meaning as the first time.
 *  2. Values from outside the run are journaled with the judgement or the start of the first attempt, each value once.
 *  3. No value is kept here that is in the journal or in the session's own store.
 */
import type { ActionDeclaration, ActionKey } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { CachedOutcome } from '../../journal/history.ts';
import { newSubstitutionQuota } from '../../protocol/references/substitution.ts';
import { action as declarationOf, bindings, dependenciesOf, statusOf } from '../../scheduler/step.ts';
import type { RunState } from '../../scheduler/step.ts';
import { contextVariables } from '../../domain/context-variables.ts';
import { NO_VALUE } from '../feeds/feeds.ts';
import { resolveCall } from './resolve-names.ts';
import type { ResolvedCall } from './resolve-names.ts';
import { turnCount, turnOfName, turnValue } from '../memory/turn-values.ts';
import { OutcomeReader } from './outcome-reader.ts';
import type { Replay } from '../replay/replay.ts';
import type { NameValue, Results } from './results.ts';
import type { RunContext } from './run-context.ts';

/**
 * The value of a name without a producer in the run: a variable or a feed; an earlier run's outcome by its event; one
 * that exceeds the run's limit; a feed that could not be read; an earlier turn by its position, because it never changes; or null.
 */
type Outside =
  | { readonly value: Json; readonly context?: true }
  | { readonly seq: number }
  | { readonly turn: number }
  | typeof LEFT_OUT
  | typeof FAILED
  | null;

const LEFT_OUT = { left_out: true } as const;
const FAILED = { failed: true } as const;

/** The meaning of an action's names when it was first resolved. */
interface Pins {
  /** Results of earlier iterations had already lost their names (I). */
  readonly clearedBefore: number;
  /** Dependencies that had not settled: only with `wait_for_all: false` (S3). */
  readonly open: ReadonlyMap<ActionKey, NameValue>;
  readonly outside: Map<string, Outside>;
  /** The event with the outside values, for an action that an earlier host has judged or started. */
  readonly recordedAt: number | null;
  /** Characters that its references have taken from the run's quota; null before it was resolved. */
  rendered: number | null;
}

const NONE_OPEN: ReadonlyMap<ActionKey, NameValue> = new Map();
const RUNNING: NameValue = { type: 'running' };
const PENDING: NameValue = { type: 'absent', why: 'pending' };

export class RunNames {
  readonly #context: Pick<
    RunContext,
    'journal' | 'variables' | 'feeds' | 'resolved' | 'parent' | 'record' | 'clock' | 'source'
  >;
  readonly #results: Results;
  readonly #state: () => RunState;
  readonly #replay: Replay | null;
  readonly #pins = new Map<ActionKey, Pins>();
  /** Position of outside values in the journal, by name: the latest one. */
  readonly #written = new Map<string, { readonly value: Json; readonly seq: number }>();
  readonly #outcomes: OutcomeReader;
  readonly #turns: OutcomeReader;
  /** Outcomes of earlier runs by name; read on first use. */
  #earlier: ReadonlyMap<string, CachedOutcome> | null = null;
  /** Those that this run refers to, and their bytes. */
  readonly #referred = new Set<number>();
  #referredBytes = 0;
  readonly #quota = newSubstitutionQuota();
  /** Results of iterations before this one have no names (I). */
  #clearedBefore = 1;

  constructor(options: {
    readonly context: Pick<
      RunContext,
      'journal' | 'variables' | 'feeds' | 'resolved' | 'parent' | 'record' | 'clock' | 'source'
    >;
    readonly results: Results;
    readonly outcomes: OutcomeReader;
    readonly state: () => RunState;
    readonly replay: Replay | null;
  }) {
    this.#context = options.context;
    this.#results = options.results;
    this.#outcomes = options.outcomes;
    this.#state = options.state;
    this.#replay = options.replay;
    const { journal, parent } = options.context;
    this.#turns = new OutcomeReader((turn) => turnValue(journal, parent, turn));
  }

  /**
   * The current value of a name: of the producer that it was bound to, else a session variable, else an earlier run's
   * result, else a feed, else an earlier turn (P12, C10).
   */
  valueOf(name: string, producer: ActionKey | null): NameValue {
    if (producer === null || iterationOf(producer) < this.#clearedBefore) return this.#read(this.#outside(name));
    const result = this.#valueOfAction(producer);
    if (!this.#addsFeed(producer, name) || isOpen(result)) return result;
    return orElse(this.#read(this.#outside(name)), result);
  }

  /** Whether the producer adds the feed of this name: the name means the feed, not the action's result. */
  #addsFeed(producer: ActionKey, name: string): boolean {
    const { type, id, outputKey, parameters } = this.#declaration(producer);
    return type === 'internal' && id !== name && outputKey !== name && parameters['id'] === name;
  }

  /** Whether a name without a producer in the run is a variable or the result of an earlier run. */
  isBound(name: string): boolean {
    if (this.#given(name) != null) return true;
    return this.#context.variables.get(name) !== undefined || this.#earlierOutcome(name) !== null;
  }

  /** Removes the names of results of earlier iterations. */
  clear(iteration: number): void {
    this.#clearedBefore = iteration;
    this.#earlier = null;
  }

  /** Fixes the current meaning of the action's names. Its cost does not depend on values. */
  pin(key: ActionKey): void {
    this.#pinsOf(key);
  }

  /** The action's call; always the same one. */
  resolve(key: ActionKey): ResolvedCall {
    const pins = this.#pinsOf(key);
    const bound = bindings(this.#state(), key);
    // The run's quota is charged once for each action.
    const quota = pins.rendered === null ? this.#quota : { charsLeft: pins.rendered };
    const call = resolveCall(this.#declaration(key), {
      lookup: (name) => this.#pinned(pins, name, bound[name] ?? null),
      dependencies: () =>
        dependenciesOf(this.#state(), key).map((dependency) => ({
          action: this.#declaration(dependency),
          output: pins.open.has(dependency) ? null : (this.#results.get(dependency)?.output ?? null),
        })),
      quota,
    });
    pins.rendered ??= call.renderedChars ?? 0;
    return call;
  }

  /** Whether the action's call has values from outside of the run. */
  hasOutside(key: ActionKey): boolean {
    return (this.#pins.get(key)?.outside.size ?? 0) > 0;
  }

  /** The outside values, for the event of the judgement or of the first attempt. Empty for most actions. */
  record(key: ActionKey): JsonObject {
    const outside = this.#pins.get(key)?.outside;
    if (outside === undefined || outside.size === 0) return {};
    const names = [...outside].map(([name, meaning]): [string, Json] => {
      if (meaning === null || !('value' in meaning)) return [name, meaning];
      const written = this.#written.get(name);
      return [name, written?.value === meaning.value ? { at: written.seq } : meaning];
    });
    // fromEntries defines own properties, even for `__proto__`.
    return { names: Object.fromEntries(names) };
  }

  /** The result of `record` was written with the event `seq`. */
  recorded(key: ActionKey, seq: number): void {
    for (const [name, outside] of this.#pins.get(key)?.outside ?? []) {
      if (outside === null || !('value' in outside) || this.#written.get(name)?.value === outside.value) continue;
      this.#written.set(name, { value: outside.value, seq });
    }
  }

  /** The action has settled. */
  forget(key: ActionKey): void {
    this.#pins.delete(key);
  }

  #pinsOf(key: ActionKey): Pins {
    const known = this.#pins.get(key);
    if (known !== undefined) return known;
    const pins: Pins = {
      clearedBefore: this.#clearedBefore,
      open: this.#openOf(key),
      outside: new Map(),
      recordedAt: this.#replay?.namesAt(key) ?? null,
      rendered: null,
    };
    this.#pins.set(key, pins);
    return pins;
  }

  #openOf(key: ActionKey): ReadonlyMap<ActionKey, NameValue> {
    if (this.#declaration(key).waitForAll) return NONE_OPEN;
    const open = dependenciesOf(this.#state(), key).filter((dependency) => !this.#results.has(dependency));
    return new Map(open.map((dependency) => [dependency, this.#valueOfAction(dependency)]));
  }

  #pinned(pins: Pins, name: string, producer: ActionKey | null): NameValue {
    const isNamed = producer !== null && iterationOf(producer) >= pins.clearedBefore;
    const result = isNamed ? (pins.open.get(producer) ?? this.#valueOfAction(producer)) : null;
    if (result !== null && (isOpen(result) || !this.#addsFeed(producer ?? '', name))) return result;
    let outside = pins.outside.get(name);
    if (outside === undefined) {
      outside = pins.recordedAt === null ? undefined : this.#recordedName(pins.recordedAt, name);
      if (outside === undefined) outside = this.#outside(name);
      pins.outside.set(name, outside);
    }
    const value = this.#read(outside);
    return result === null ? value : orElse(value, result);
  }

  #outside(name: string): Outside {
    const given = this.#given(name);
    if (given !== undefined) return given;
    const variable = this.#context.variables.get(name);
    if (variable !== undefined) return { value: variable };
    const earlier = this.#earlierOutcome(name);
    if (earlier !== null) return earlier;
    const feed = this.#context.feeds.value(this.#context.resolved, name);
    if (feed === NO_VALUE) return FAILED;
    return feed === undefined ? (this.#contextVariable(name) ?? this.#earlierTurn(name)) : { value: feed };
  }

  /** `turn_3`: the third turn of the conversation before this run (C10). */
  #earlierTurn(name: string): Outside {
    const turn = turnOfName(name);
    const { journal, parent } = this.#context;
    return turn === null || turn > turnCount(journal, parent) ? null : { turn };
  }

  /** What the name meant when this action ran first, if the run repeats an action; undefined if it had no such name. */
  #given(name: string): Outside | undefined {
    const { source } = this.#context;
    if (source.type !== 'text' || source.rerun === undefined) return undefined;
    const { names, at } = source.rerun;
    const seq = names.get(name);
    if (seq !== undefined) return { seq };
    return at === null ? undefined : this.#recordedName(at, name);
  }

  #contextVariable(name: string): Outside {
    if (!/^[A-Z][A-Z_]*$/.test(name)) return null;
    const { resolved, record, clock } = this.#context;
    if (name === 'ITERATION_COUNT') return { value: this.#state().generation?.iteration ?? 1, context: true };
    const known = contextVariables(resolved.agent, record, clock.now());
    const value = Object.hasOwn(known, name) ? known[name] : undefined;
    return value === undefined ? null : { value, context: true };
  }

  #read(outside: Outside): NameValue {
    if (outside === null) return { type: 'unknown' };
    if ('left_out' in outside) return { type: 'absent', why: 'left_out' };
    if ('failed' in outside) return { type: 'absent', why: 'failed' };
    if ('seq' in outside) return { type: 'value', value: this.#outcomes.at(outside.seq) };
    if ('turn' in outside) return { type: 'value', value: this.#turns.at(outside.turn) };
    return { type: 'value', value: outside.value, ...(outside.context === true ? { isContext: true } : {}) };
  }

  /** The recorded value of a name in the event of a first attempt; undefined if it has none. */
  #recordedName(seq: number, name: string): Outside | undefined {
    const names = this.#context.journal.stateAt(seq)?.['names'];
    if (!isJsonObject(names) || !Object.hasOwn(names, name)) return undefined;
    const recorded = names[name] ?? null;
    if (!isJsonObject(recorded)) return null;
    const { value, seq: outcome, turn, at, left_out: leftOut, failed, context } = recorded;
    if (leftOut === true) return LEFT_OUT;
    if (failed === true) return FAILED;
    if (typeof outcome === 'number') return { seq: outcome };
    if (typeof turn === 'number') return { turn };
    // A pointer refers to the value itself, never to another pointer.
    if (typeof at === 'number') return at === seq ? undefined : this.#recordedName(at, name);
    return value === undefined ? undefined : { value, ...(context === true ? { context } : {}) };
  }

  /** An earlier run's outcome under a name, as of the first lookup of such a name. */
  #earlierOutcome(name: string): { readonly seq: number } | typeof LEFT_OUT | null {
    const { parent, journal } = this.#context;
    if (parent === 0) return null;
    this.#earlier ??= byName(journal.history.outcomeCache(parent));
    const found = this.#earlier.get(name);
    if (found === undefined) return null;
    const { seq, bytes } = found;
    if (!this.#referred.has(seq)) {
      if (this.#referredBytes + bytes > limits.outcomeCacheBytes) return LEFT_OUT;
      this.#referred.add(seq);
      this.#referredBytes += bytes;
    }
    return { seq };
  }

  #valueOfAction(key: ActionKey): NameValue {
    const result = this.#results.get(key);
    if (result === null) {
      const status = statusOf(this.#state(), key);
      return status === 'awaiting_approval' || status === 'awaiting_client' ? PENDING : RUNNING;
    }
    if (result.status === 'completed') return { type: 'value', value: result.output };
    return { type: 'absent', why: result.status };
  }

  #declaration(key: ActionKey): ActionDeclaration {
    const found = declarationOf(this.#state(), key);
    if (found === null) throw new Error(`the scheduler has no action ${key}`);
    return found;
  }
}

function isOpen({ type, ...value }: NameValue): boolean {
  return type === 'running' || ('why' in value && value.why === 'pending');
}

/** The value of a feed; if there is no such feed, what became of the action that should have added it. */
function orElse(feed: NameValue, result: NameValue): NameValue {
  if (feed.type !== 'unknown') return feed;
  return result.type === 'absent' ? result : { type: 'absent', why: 'failed' };
}

/** The newest outcome for each name: an output key, or an id. */
function byName(newestFirst: readonly CachedOutcome[]): Map<string, CachedOutcome> {
  const named = new Map<string, CachedOutcome>();
  for (const outcome of newestFirst) {
    for (const name of [outcome.outputKey, outcome.id]) {
      if (name !== null && !named.has(name)) named.set(name, outcome);
    }
  }
  return named;
}

export function iterationOf(key: ActionKey): number {
  return Number(key.split('/')[0]);
}

export function ordinalOf(key: ActionKey): number {
  return Number(key.split('/')[1]);
}
