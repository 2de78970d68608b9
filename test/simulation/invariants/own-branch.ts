import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Observation } from '../observation.ts';
import { placeOf, scriptOf } from '../script.ts';
import { factsOf, runOf } from './invariant.ts';
import type { FactOf, Invariant } from './invariant.ts';
import { receivedIn } from './received.ts';

export const ownBranch: Invariant = {
  name: 'own branch',
  holds:
    'A run follows the run that its message names, or the head; it shows the messages of its ancestors in order and then its own, and has their results and variables and no others.',
  *check(seen) {
    if (!seen.isWhole || seen.places.size === 0) return;
    const tree = new Tree(seen);
    yield* wrongPlaces(seen);
    yield* forgottenHeads(seen);
    for (const fact of factsOf(seen, 'model_called')) {
      const { of, marks = [] } = fact;
      if (of === undefined) continue;
      const where = `run ${of.run}, iteration ${of.iteration}`;
      const received = new Set(tree.receivedBy(of.run).map(({ message }) => message));
      const shown = messagesOf(marks).filter((message) => !received.has(message));
      const expected = tree.shownBy(of.run);
      if (shown.join() !== expected.join()) {
        yield `${where} shows the messages ${shown.join(', ')} (expected: ${expected.join(', ')})`;
      }
      yield* wrongVariables(seen, tree, of, where);
    }
    yield* wrongResults(seen, tree);
    yield* otherVariables(seen, tree);
  },
};

/** Numbers of the messages of clients in a request. */
export function messagesOf(marks: readonly string[]): number[] {
  return marks.flatMap((mark) => (mark.startsWith('m') ? [Number(mark.slice(1))] : []));
}

class Tree {
  readonly #seen: Observation;
  readonly #received: ReturnType<typeof receivedIn>;
  readonly #starts = new Map<number, number>();
  /** Runs that have set a variable, with the event. */
  readonly #changes: readonly { readonly run: number; readonly seq: number; readonly key: string }[];

  constructor(seen: Observation) {
    this.#seen = seen;
    this.#received = receivedIn(seen.events);
    for (const { type, seq, ...event } of seen.events) {
      if (type === 'agent_started') this.#starts.set(runOf(event), seq ?? 0);
    }
    this.#changes = seen.events.flatMap((event) =>
      event.type === 'variable_changed' ? [{ run: runOf(event), seq: event.seq ?? 0, key: event.data.key }] : [],
    );
  }

  /** A run and its ancestors, oldest first. */
  branch(run: number): number[] {
    const parent = this.#seen.places.get(run)?.parent ?? 0;
    return parent === 0 || parent >= run ? [run] : [...this.branch(parent), run];
  }

  receivedBy(run: number): ReturnType<typeof receivedIn> {
    return this.#received.filter((one) => one.run === run);
  }

  /** The messages that a run shows, without those that it has received. */
  shownBy(run: number): number[] {
    return this.branch(run).flatMap((one) => {
      const mark = this.#seen.places.get(one)?.mark ?? null;
      if (mark === null) return [];
      // After a failed write, a run may begin before the run that it follows.
      const taken = one === run ? [] : this.receivedBy(one).filter(({ shownAt }) => shownAt < this.startOf(run));
      return [mark, ...taken.map(({ message }) => message)];
    });
  }

  startOf(run: number): number {
    return this.#starts.get(run) ?? 0;
  }

  /** Names of the variables of a branch. @param before only what was set before this event */
  variablesOf(branch: readonly number[], before = Infinity): Set<string> {
    return new Set(this.#changes.flatMap(({ run, seq, key }) => (branch.includes(run) && seq < before ? [key] : [])));
  }
}

/** What the client has asked for. */
function* wrongPlaces(seen: Observation): Generator<string> {
  const named = new Map(factsOf(seen, 'branch_sent').map((fact) => [fact.message, fact]));
  const moved = new Set(factsOf(seen, 'head_sent').map(({ run }) => run));
  for (const [run, message] of seen.messageOf) {
    const { parent = 0, retryOf = null, mark = null } = seen.places.get(run) ?? {};
    const { of = null, action = null } = named.get(message) ?? {};
    const how = seen.history.messages[message]?.branch?.how ?? null;
    const isNewest = parent === run - 1 || moved.has(parent);
    const expected =
      how === null
        ? [null, isNewest]
        : how === 'rerun'
          ? [of, parent === of || isNewest]
          : how === 'retry' || how === 'edit'
            ? [of, parent === seen.places.get(of ?? 0)?.parent]
            : [null, parent === (of ?? 0)];
    if (retryOf !== expected[0] || expected[1] !== true) {
      yield `run ${run} (message ${message}) follows run ${parent} and repeats ${retryOf ?? 'none'} (asked: ${how ?? 'the head'} of ${of ?? 'none'})`;
    }
    const said = how === 'retry' ? (seen.places.get(of ?? 0)?.mark ?? null) : message;
    if (action === null && mark !== null && mark !== said) yield `run ${run} (message ${message}) says message ${mark}`;
  }
}

/** The next message after an answered move of the head, without a place of its own, follows it, unless it is moved again. */
function* forgottenHeads(seen: Observation): Generator<string> {
  const moves = factsOf(seen, 'head_sent');
  for (const { run: head, runs, code } of factsOf(seen, 'head_answered')) {
    if (code !== 'accepted' || runs === null || moves.some(({ run }) => run !== head)) continue;
    const next = runs + 1;
    const message = seen.messageOf.get(next);
    const parent = seen.places.get(next)?.parent;
    if (message === undefined || seen.history.messages[message]?.branch != null) continue;
    if (parent !== head) yield `run ${next} follows run ${parent}, and the head was moved to run ${head}`;
  }
}

function* wrongVariables(
  seen: Observation,
  tree: Tree,
  { run, variables }: NonNullable<FactOf<'model_called'>['of']>,
  where: string,
): Generator<string> {
  const branch = tree.branch(run);
  const possible = tree.variablesOf(branch);
  // Its event may have been lost with the host that asks.
  const messages = new Set(branch.map((one) => seen.messageOf.get(one)));
  const other = variables.find((key) => !possible.has(key) && !messages.has(placeOf(key)?.message));
  if (other !== undefined) yield `${where} has the variable ${other} of another branch`;
  for (const key of tree.variablesOf(branch.slice(0, -1), tree.startOf(run))) {
    if (!variables.includes(key)) yield `${where} lacks the variable ${key} of its branch`;
  }
}

/**
 * At the end, the variables are those of the branch of the run that began last, unless the head was moved, or a failed write
 * ended a run as it began.
 */
function* otherVariables(seen: Observation, tree: Tree): Generator<string> {
  const last = seen.events.findLast(({ type }) => type === 'agent_started');
  const isOther =
    factsOf(seen, 'head_sent').length > 0 || seen.history.faults.some(({ type }) => FAILED_WRITES.has(type));
  if (seen.variables === null || last === undefined || isOther) return;
  const expected = [...tree.variablesOf(tree.branch(runOf(last)))].toSorted();
  if (seen.variables.join() !== expected.join()) {
    yield `the variables at the end are ${seen.variables.join(', ')} (expected: ${expected.join(', ')})`;
  }
}

const FAILED_WRITES: ReadonlySet<string> = new Set(['write', 'statement', 'full_disk']);

const VALUE = /(?:value|output|answer) of (m\d+g\d+a\d+)/g;
const OPEN = /\$(m\d+g0a0)\b/g;

/** Responses that refer to results of other messages. */
function* wrongResults(seen: Observation, tree: Tree): Generator<string> {
  const completed = Map.groupBy(
    seen.events.filter(({ type }) => type === 'action_completed'),
    ({ action_id: id }) => id ?? '',
  );
  const isBefore = (event: SessionEvent, branch: readonly number[], before: number): boolean =>
    branch.includes(runOf(event)) && (event.seq ?? 0) < before;
  for (const event of seen.events) {
    if (event.type !== 'response_completed') continue;
    const run = runOf(event);
    const branch = tree.branch(run);
    for (const [, token = ''] of event.data.content.matchAll(VALUE)) {
      // A client may have posted it as the result of another call.
      if (scriptOf(seen.history.messages, token)?.target === 'client') continue;
      const isOwn = completed.get(token)?.some((end) => isBefore(end, branch, event.seq ?? 0));
      if (isOwn !== true) yield `run ${run} has the result of ${token} of another branch`;
    }
    for (const [, token = ''] of event.data.content.matchAll(OPEN)) {
      const isKnown = completed.get(token)?.some((end) => isBefore(end, branch.slice(0, -1), tree.startOf(run)));
      if (isKnown === true && scriptOf(seen.history.messages, token)?.target !== 'variable')
        yield `run ${run} lacks the result of ${token} of its branch`;
    }
  }
}
