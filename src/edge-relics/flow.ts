/**
 * The flow of a SQLite program (R6): its routines, and the loops of each. Pure.
 *
 * A routine contains the instructions that run from an entry, without the routines that it calls: the main program, a
 * subroutine (`Gosub`), a coroutine (`InitCoroutine`), and the second pass through the body of a `LEFT JOIN` for rows
 * without a match, which SQLite implements as a jump into the loop.
 */
import { OPCODES } from './opcodes.ts';

/** One row of `EXPLAIN`. */
export interface Instruction {
  readonly opcode: string;
  readonly p1: number;
  readonly p2: number;
  readonly p3: number;
  readonly p4: string;
  readonly p5: number;
}

export type Program = readonly Instruction[];

export interface Loop {
  /** Its entry; null if there are several, as in a merge of two sorted lists. */
  readonly header: number | null;
  readonly body: ReadonlySet<number>;
  readonly parent: Loop | null;
}

export interface Routine {
  readonly entry: number;
  /** The successors of each instruction, within the routine. */
  readonly next: ReadonlyMap<number, readonly number[]>;
  /** The innermost loop around an instruction. */
  readonly loops: ReadonlyMap<number, Loop>;
  /** The innermost `Once` whose block contains an instruction. */
  readonly once: ReadonlyMap<number, number>;
  /** Instructions that call another routine, with its key. */
  readonly calls: ReadonlyMap<number, string>;
}

/** The program contains something that is not understood and therefore not allowed. */
export class NotAdmitted extends Error {}

/** The routine called by an instruction. */
interface Callee {
  readonly key: string;
  readonly entry: number;
  /** The register with the return address; null if it ends by itself. */
  readonly register: number | null;
  /** First instruction that can be part of it. */
  readonly begin: number;
  /** The first instruction after it. */
  readonly end: number;
  /** Where its caller continues. */
  readonly resume: number;
}

export const MAIN = 'main';

/** @returns every routine by its key */
export function routinesOf(program: Program, mostInstructions: number): ReadonlyMap<string, Routine> {
  const reader = new RoutineReader(program, mostInstructions);
  reader.read({ key: MAIN, entry: 0, register: null, begin: 0, end: program.length, resume: 0 });
  return reader.routines;
}

class RoutineReader {
  readonly routines = new Map<string, Routine>();
  readonly #program: Program;
  readonly #escapes = new Map<string, readonly number[]>();
  readonly #reading = new Set<string>();
  readonly #lastReturn = new Map<number, number>();
  /** Coroutines that are started at another place than their declaration. */
  readonly #begun = new Set<number>();
  #left: number;

  constructor(program: Program, mostInstructions: number) {
    this.#program = program;
    this.#left = mostInstructions;
    for (const [at, { opcode, p1, p2, p3 }] of program.entries()) {
      if (opcode === 'Return') this.#lastReturn.set(p1, at);
      if (opcode === 'InitCoroutine' && p2 === 0) this.#begun.add(p3);
    }
  }

  /** @returns where a routine may leave, other than by its end */
  read({ key, entry, register, begin, end }: Callee): readonly number[] {
    const known = this.#escapes.get(key);
    if (known !== undefined) return known;
    if (this.#reading.has(key)) throw new NotAdmitted('the number of loop iterations is unbounded');
    this.#reading.add(key);
    const next = new Map<number, readonly number[]>();
    const calls = new Map<number, string>();
    const escapes = new Set<number>();
    const waiting = [entry];
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      if (next.has(at)) continue;
      const instruction = this.#program[at];
      if (instruction === undefined) throw new NotAdmitted(`the program has no instruction ${at}`);
      this.#left -= 1;
      if (this.#left < 0) {
        throw new NotAdmitted('the statement is too complex; split it');
      }
      const callee = this.#calleeOf(at, instruction);
      if (callee !== null) calls.set(at, callee.key);
      const all =
        callee === null ? targetsOf(this.#program, at, instruction, register) : [callee.resume, ...this.read(callee)];
      for (const target of all) if (target > end) escapes.add(target);
      const targets = [...new Set(all)].filter((target) => target >= begin && target < end);
      next.set(at, targets);
      waiting.push(...targets);
    }
    this.#reading.delete(key);
    const order = postorder(entry, next);
    const dominators = dominatorsOf(order, next);
    const loops = loopsOf(order, next, dominators);
    this.routines.set(key, { entry, next, loops, once: guardsOf(this.#program, order, dominators), calls });
    this.#escapes.set(key, [...escapes]);
    return [...escapes];
  }

  #calleeOf(at: number, { opcode, p1, p2, p3 }: Instruction): Callee | null {
    const whole = this.#program.length;
    if (opcode === 'Gosub') {
      const end = (this.#lastReturn.get(p1) ?? whole) + 1;
      return { key: `sub ${p2} ${p1}`, entry: p2, register: p1, begin: 0, end, resume: at + 1 };
    }
    if (opcode === 'InitCoroutine') {
      // A coroutine that is only declared here runs where it is started.
      if (p2 !== 0 && this.#begun.has(p3)) return null;
      return { key: `co ${p3}`, entry: p3, register: null, begin: 0, end: whole, resume: p2 === 0 ? at + 1 : p2 };
    }
    if (opcode !== 'Goto' || p2 >= at) return null;
    const test = this.#unmatched(at, p2);
    // It does not return to the instruction that takes the next row, because there is none.
    return test === null
      ? null
      : { key: `left ${p2} ${test}`, entry: p2, register: null, begin: p2, end: test, resume: at + 1 };
  }

  /**
   * The test of a `LEFT JOIN` whether a row had no match, if this `Goto` sends such a row through the body:
   * `IfPos matched, over; NullRow …; Goto first`, with `Integer 1, matched` as the first instruction of the body.
   */
  #unmatched(at: number, first: number): number | null {
    for (let place = at - 1; place > first; place -= 1) {
      const { opcode, p1, p2 } = this.#program[place] ?? {};
      if (opcode === 'IfPos' && p2 === at + 1) {
        const mark = this.#program[first];
        return mark?.opcode === 'Integer' && mark.p1 === 1 && mark.p2 === p1 ? place : null;
      }
      if (opcode !== 'NullRow' && opcode !== 'ReopenIdx') return null;
    }
    return null;
  }
}

function targetsOf(program: Program, at: number, instruction: Instruction, register: number | null): number[] {
  const { opcode, p1, p2, p3 } = instruction;
  switch (opcode) {
    case 'Halt':
    case 'EndCoroutine':
      return [];
    case 'Init':
    case 'Goto':
      return [p2];
    case 'InitCoroutine':
      return [p2 === 0 ? at + 1 : p2];
    case 'Return': {
      if (p1 === register) return [];
      // Reached without a call: continues after it, or at an address that was set before.
      const set = program.flatMap((one) => (one.opcode === 'Integer' && one.p2 === p1 ? [one.p1 + 1] : []));
      return p3 === 0 ? set : [at + 1, ...set];
    }
    case 'Jump':
      return [p1, p2, p3];
    case 'SeekScan':
      return [at + 1, p2, program[at + 1]?.p2 ?? at + 1];
    case 'Rewind':
      // The first instruction as target means that the table cannot be empty.
      return p2 <= 1 ? [at + 1] : [at + 1, p2];
    default:
      return OPCODES.get(opcode)?.jumps === true && p2 !== 0 ? [at + 1, p2] : [at + 1];
  }
}

/** Every reachable instruction in postorder. */
function postorder(entry: number, next: ReadonlyMap<number, readonly number[]>): number[] {
  const order: number[] = [];
  const seen = new Set([entry]);
  const stack: { at: number; targets: readonly number[]; taken: number }[] = [
    { at: entry, targets: next.get(entry) ?? [], taken: 0 },
  ];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const target = top.targets[top.taken];
    top.taken += 1;
    if (target === undefined) {
      order.push(top.at);
      stack.pop();
    } else if (!seen.has(target)) {
      seen.add(target);
      stack.push({ at: target, targets: next.get(target) ?? [], taken: 0 });
    }
  }
  return order;
}

/** Immediate dominators of the instructions (Cooper, Harvey and Kennedy). */
function dominatorsOf(
  order: readonly number[],
  next: ReadonlyMap<number, readonly number[]>,
): ReadonlyMap<number, number> {
  const rank = new Map(order.map((at, place) => [at, place]));
  const rankOf = (at: number): number => rank.get(at) ?? -1;
  const before = new Map<number, number[]>();
  for (const at of order) for (const target of next.get(at) ?? []) add(before, target, at);
  const entry = order.at(-1) ?? 0;
  const found = new Map([[entry, entry]]);
  for (let changed = true; changed;) {
    changed = false;
    for (const at of order.toReversed()) {
      if (at === entry) continue;
      let nearest: number | null = null;
      for (const from of before.get(at) ?? []) {
        if (!found.has(from)) continue;
        let other = from;
        while (nearest !== null && nearest !== other) {
          if (rankOf(nearest) < rankOf(other)) nearest = found.get(nearest) ?? entry;
          else other = found.get(other) ?? entry;
        }
        nearest = other;
      }
      if (nearest === null || found.get(at) === nearest) continue;
      found.set(at, nearest);
      changed = true;
    }
  }
  return found;
}

function isDominated(at: number, by: number, dominators: ReadonlyMap<number, number>): boolean {
  for (let here = at; ;) {
    if (here === by) return true;
    const above = dominators.get(here);
    if (above === undefined || above === here) return false;
    here = above;
  }
}

/** The innermost loop of each instruction that is part of one. */
function loopsOf(
  order: readonly number[],
  next: ReadonlyMap<number, readonly number[]>,
  dominators: ReadonlyMap<number, number>,
): ReadonlyMap<number, Loop> {
  const rank = new Map(order.map((at, place) => [at, place]));
  const before = new Map<number, number[]>();
  const ends = new Map<number, number[]>();
  const intoTheMiddle: number[] = [];
  for (const at of order) {
    for (const target of next.get(at) ?? []) {
      add(before, target, at);
      if ((rank.get(target) ?? 0) < (rank.get(at) ?? 0)) continue;
      if (isDominated(at, target, dominators)) add(ends, target, at);
      else intoTheMiddle.push(target);
    }
  }
  const plain = [...ends].map(([header, from]) => {
    const body = reachable(from, before, (at) => at !== header);
    return { header, body: body.add(header) };
  });
  const merges: Set<number>[] = [];
  for (const target of intoTheMiddle) {
    if (merges.some((body) => body.has(target))) continue;
    const around = plain
      .filter(({ header, body }) => header !== target && body.has(target))
      .toSorted((a, b) => a.body.size - b.body.size)[0];
    const isWithin = (at: number): boolean => around === undefined || (at !== around.header && around.body.has(at));
    const after = reachable([target], next, isWithin);
    merges.push(reachable([target], before, (at) => isWithin(at) && after.has(at)));
  }
  const all: { header: number | null; body: ReadonlySet<number> }[] = [
    ...plain.filter(({ header, body }) => !merges.some((merge) => merge.has(header) && merge.size >= body.size)),
    ...merges.map((body) => ({ header: null, body })),
  ];
  // From the outermost inwards, so that the last entry of an instruction is its innermost loop.
  const loops = new Map<number, Loop>();
  for (const { header, body } of all.toSorted((a, b) => b.body.size - a.body.size)) {
    const [some] = body;
    const loop: Loop = { header, body, parent: loops.get(header ?? some ?? -1) ?? null };
    for (const at of body) loops.set(at, loop);
  }
  return loops;
}

/** The instructions reachable from some instructions without passing others; includes the start. */
function reachable(
  from: readonly number[],
  edges: ReadonlyMap<number, readonly number[]>,
  mayPass: (at: number) => boolean,
): Set<number> {
  const found = new Set<number>();
  const waiting = [...from];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    if (found.has(at) || !mayPass(at)) continue;
    found.add(at);
    waiting.push(...(edges.get(at) ?? []));
  }
  return found;
}

/** `Once` runs its block once, however often it is reached. */
function guardsOf(
  program: Program,
  order: readonly number[],
  dominators: ReadonlyMap<number, number>,
): ReadonlyMap<number, number> {
  const guards = new Map<number, number>();
  for (const at of order.toReversed()) {
    const above = dominators.get(at);
    if (above === undefined || above === at) continue;
    const guard = program[above]?.opcode === 'Once' && at === above + 1 ? above : guards.get(above);
    if (guard !== undefined) guards.set(at, guard);
  }
  return guards;
}

function add(lists: Map<number, number[]>, key: number, value: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
