/**
 * The maximum number of executions of each instruction of a SQLite program (R6). Pure.
 *
 * Invariants:
 *  1. An instruction runs at most once per iteration of its innermost loop.
 *  2. A loop iterates at most as often as it is entered, plus as often as an instruction runs that is part of every
 *     iteration and is bounded by itself: advancing to the next row, or taking a coroutine's next row.
 *  3. A cursor advances at most as often as it has rows, each time it is positioned.
 *  4. A temporary table has at most as many rows as are inserted into it.
 */
import type { Instruction, Loop, Program, Routine } from './flow.ts';
import { MAIN, NotAdmitted } from './flow.ts';
import { ADDS, ADVANCES, OPENS_OWN, OPENS_TABLE, POSITIONS } from './opcodes.ts';

/** Sizes of the database's tables, by their root pages. */
export interface TableSizes {
  /** Rows of a table or of an index's table. */
  readonly rows: (rootPage: number) => number;
  /** Maximum number of rows of an index that agree in its first columns; null if unknown. */
  readonly rowsPerKey: (rootPage: number, columns: number) => number | null;
}

/** Rows of `json_each`: of one call, and of all calls if no document is read twice. */
export interface Elements {
  readonly each: number;
  readonly total: number;
}

interface CountOptions {
  readonly program: Program;
  readonly sizes: TableSizes;
  readonly elements: Elements;
  /** Routines of the program. */
  readonly routines: ReadonlyMap<string, Routine>;
}

/** Instructions between the beginning and the end of a search for one key that do not move the cursor. */
const BETWEEN_KEYS: ReadonlySet<string> = new Set(['SeekHit', 'SeekScan', 'IfNoHope', 'CursorHint', 'Noop']);

const ENDLESS = 'the number of loop iterations is unbounded: recursion is not allowed';

/** Maximum number of circular bounds before the analysis stops. */
const MOST_FAILED = 10_000;

/** Instructions that may set the register of a `LIMIT`, as `p2`. */
const SETS_COUNTER: ReadonlySet<string> = new Set(
  'Integer Int64 Copy SCopy IntCopy Move Variable Null String8 Real'.split(' '),
);

interface Place {
  readonly key: string;
  readonly routine: Routine;
}

export class Counts {
  readonly #program: Program;
  readonly #sizes: TableSizes;
  readonly #elements: Elements;
  readonly #places = new Map<number, Place[]>();
  readonly #callers = new Map<string, number[]>();
  /** Instructions by their first operand: a cursor, a coroutine or a set of rows. */
  readonly #users = new Map<number, number[]>();
  /** Instructions that may set a counter, by its register. */
  readonly #setters = new Map<number, number[]>();
  readonly #opened = new Map<number, readonly number[]>();
  readonly #families = new Map<number, ReadonlySet<number>>();
  readonly #known = new Map<string, number>();
  readonly #working = new Set<string>();
  #failed = 0;

  constructor({ program, sizes, elements, routines }: CountOptions) {
    this.#program = program;
    this.#sizes = sizes;
    this.#elements = elements;
    for (const [at, { opcode, p1, p2 }] of program.entries()) {
      addTo(this.#users, p1, at);
      if (SETS_COUNTER.has(opcode)) addTo(this.#setters, p2, at);
    }
    for (const [key, routine] of routines) {
      for (const at of routine.next.keys()) addTo(this.#places, at, { key, routine });
      for (const [at, called] of routine.calls) {
        if (this.#callers.get(called)?.includes(at) !== true) addTo(this.#callers, called, at);
      }
    }
  }

  /** Maximum number of executions of an instruction. @throws NotAdmitted if it is unbounded */
  of(at: number): number {
    return this.#once(`i${at}`, () => {
      let sum = 0;
      for (const { key, routine } of this.#places.get(at) ?? []) sum += this.#within(key, routine, at);
      return sum;
    });
  }

  /** The instructions with this first operand. */
  #usersOf(operand: number): readonly (readonly [number, Instruction])[] {
    return (this.#users.get(operand) ?? []).map((at) => [at, this.#program[at] as Instruction] as const);
  }

  /** Total number of executions of the matching instructions. */
  #uses(operand: number, matches: (instruction: Instruction) => boolean): number {
    return this.#usersOf(operand).reduce((sum, [at, one]) => (matches(one) ? sum + this.of(at) : sum), 0);
  }

  /** Computes each value once; a value that depends on itself is unbounded. */
  #once(key: string, work: () => number): number {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#working.has(key)) throw new NotAdmitted(ENDLESS);
    this.#working.add(key);
    try {
      const value = work();
      this.#known.set(key, value);
      return value;
    } finally {
      this.#working.delete(key);
    }
  }

  #within(key: string, routine: Routine, at: number): number {
    const loop = routine.loops.get(at) ?? null;
    return this.#isGuarded(routine, at, loop) ? 1 : this.#iterations(key, routine, loop);
  }

  #isGuarded(routine: Routine, at: number, loop: Loop | null): boolean {
    const guard = routine.once.get(at);
    return guard !== undefined && (loop === null || loop.body.has(guard));
  }

  /** Number of executions of a routine, or iterations of one of its loops. */
  #iterations(key: string, routine: Routine, loop: Loop | null): number {
    if (loop === null) {
      return this.#once(`r${key}`, () => {
        const callers = this.#callers.get(key) ?? [];
        return key === MAIN ? 1 : callers.reduce((sum, at) => sum + this.of(at), 0);
      });
    }
    const [some = -1] = loop.body;
    return this.#once(`l${key}:${loop.header ?? `m${some}`}`, () => {
      const guarded = this.#isGuarded(routine, loop.header ?? some, loop.parent);
      const entered = guarded ? 1 : this.#iterations(key, routine, loop.parent);
      return entered + this.#repeats(routine, loop);
    });
  }

  #repeats(routine: Routine, loop: Loop): number {
    const bounded = [...loop.body].filter((at) => this.#isBounded(at));
    const { header } = loop;
    if (header === null) {
      if (isAcyclic(routine, loop, new Set(bounded))) return this.#sum(bounded);
      throw new NotAdmitted(ENDLESS);
    }
    const own = bounded.filter((at) => routine.loops.get(at) === loop);
    const alone = this.#least(own.filter((at) => isCut(routine, loop.body, header, new Set([at]))));
    if (alone !== null) return alone;
    if (isCut(routine, loop.body, header, new Set(own))) return this.#sum(own);
    // An inner loop may be part of every iteration: the last rows of a window.
    const inner = this.#least(bounded.filter((at) => isCut(routine, loop.body, header, new Set([at]))));
    if (inner !== null) return inner;
    throw new NotAdmitted(ENDLESS);
  }

  #sum(places: readonly number[]): number {
    return places.reduce((all, at) => all + this.#bound(at), 0);
  }

  /** The least of several valid bounds. A bound that depends on the value to be bounded is ignored. */
  #least(places: readonly number[]): number | null {
    for (const opcode of ['Next', 'Yield']) {
      const bounds = places
        .filter((at) => (this.#program[at]?.opcode === 'Yield') === (opcode === 'Yield'))
        .flatMap((at) => this.#boundOrNone(at));
      if (bounds.length > 0) return Math.min(...bounds);
    }
    return null;
  }

  #boundOrNone(at: number): number[] {
    try {
      return [this.#bound(at)];
    } catch (fault) {
      this.#failed += 1;
      if (!(fault instanceof NotAdmitted) || this.#failed > MOST_FAILED) throw fault;
      return [];
    }
  }

  #isBounded(at: number): boolean {
    const { opcode = '', p2 = 0 } = this.#program[at] ?? {};
    if (opcode === 'DecrJumpZero') return this.#limits(at).length > 0;
    return ADVANCES.has(opcode) || opcode === 'RowSetRead' || (opcode === 'Yield' && p2 !== 0);
  }

  /** How many iterations of its loop an instruction allows, whatever the loop does. */
  #bound(at: number): number {
    const { opcode = '', p1 = 0 } = this.#program[at] ?? {};
    return this.#once(`b${at}`, () => {
      if (opcode === 'DecrJumpZero') {
        return this.#limits(at).reduce((sum, { place, rows }) => sum + this.of(place) * rows, 0);
      }
      if (opcode === 'RowSetRead') return this.#uses(p1, (other) => /^RowSet(?:Add|Test)$/.test(other.opcode));
      if (opcode === 'Yield') return this.#uses(p1, (other) => other.opcode === 'Yield' && other.p2 === 0);
      const sum = this.#passes(p1, opcode === 'Prev');
      return opcode === 'VNext' ? Math.min(sum, this.#elements.total) : sum;
    });
  }

  /** Total number of steps of a cursor. */
  #passes(cursor: number, isBackwards: boolean): number {
    return this.#once(`p${cursor}${isBackwards ? 'b' : ''}`, () => {
      let sum = 0;
      let fresh = false;
      for (const [place, other] of this.#usersOf(cursor)) {
        if (!POSITIONS.has(other.opcode)) continue;
        if (this.#isFresh(place, cursor)) {
          fresh = true;
          continue;
        }
        const times = this.of(place);
        const isAtEnd = other.opcode === (isBackwards ? 'Rewind' : 'Last');
        if (times > 0) sum += times * (isAtEnd ? 1 : this.#rowsFrom(place, other));
      }
      return fresh ? sum + this.#added(cursor) : sum;
    });
  }

  /**
   * Whether a cursor is positioned when its table has just received its first row, so that each row ever inserted is
   * read once: `Integer 1, one; NewRowid row; Ne one, row; Rewind` (windows).
   */
  #isFresh(place: number, cursor: number): boolean {
    for (let at = place - 1; at >= 0 && at > place - 12; at -= 1) {
      const { opcode = '', p1, p2 = 0, p3 } = this.#program[at] ?? {};
      if (opcode === 'Ne' && p2 > place) {
        const same = this.#family(cursor);
        const counted = this.#program.some(
          (other) => other.opcode === 'NewRowid' && same.has(other.p1) && other.p2 === p3,
        );
        return counted && this.#program.some((one) => one.opcode === 'Integer' && one.p1 === 1 && one.p2 === p1);
      }
      if (!['Null', 'Rewind', 'Integer', 'Copy', 'SCopy'].includes(opcode)) return false;
    }
    return false;
  }

  /** Where the counter of a `LIMIT` is set to a number; empty for other counters. */
  #limits(at: number): { readonly place: number; readonly rows: number }[] {
    const sets = (this.#setters.get(this.#program[at]?.p1 ?? -1) ?? []).map((place) => {
      const { opcode = '', p1 = 0 } = this.#program[place] ?? {};
      return { place, rows: opcode === 'Integer' ? p1 : 0 };
    });
    return sets.some(({ rows }) => rows <= 0) ? [] : sets;
  }

  /** Number of rows that a cursor reads from its position. */
  #rowsFrom(at: number, { opcode, p1, p3, p4 }: Instruction): number {
    const columns = Number(p4);
    if (/^Seek[GL]E$/.test(opcode) && columns > 0 && this.#isOneKey(at, p1, p3, columns)) {
      const keyed = this.#opens(p1).map((page) => this.#sizes.rowsPerKey(page, columns));
      if (keyed.length > 0 && keyed.every((rows) => rows !== null)) return Math.max(...keyed);
    }
    return this.rowsOf(p1, at);
  }

  /** Whether a search ends when the key differs from its first key. */
  #isOneKey(at: number, cursor: number, register: number, columns: number): boolean {
    for (let place = at + 1; place < this.#program.length; place += 1) {
      const { opcode = '', p1, p3, p4 } = this.#program[place] ?? {};
      if (BETWEEN_KEYS.has(opcode)) continue;
      return /^Idx[GL]T$/.test(opcode) && p1 === cursor && p3 === register && Number(p4) === columns;
    }
    return false;
  }

  #opens(cursor: number): readonly number[] {
    const known = this.#opened.get(cursor);
    if (known !== undefined) return known;
    const pages = this.#usersOf(cursor).flatMap(([, { opcode, p2, p5 }]) =>
      OPENS_TABLE.has(opcode) && !isRegister(p5) ? [p2] : [],
    );
    const once = [...new Set(pages)];
    this.#opened.set(cursor, once);
    return once;
  }

  /** Number of rows that a cursor is open on. @param at the instruction that reads them */
  rowsOf(cursor: number, at: number): number {
    return this.#once(`c${cursor}:${at}`, () => {
      let most = 0;
      for (const [place, { opcode, p2, p5 }] of this.#usersOf(cursor)) {
        if (OPENS_TABLE.has(opcode)) most = Math.max(most, isRegister(p5) ? this.#added(cursor) : this.#sizes.rows(p2));
        else if (OPENS_OWN.has(opcode)) most = Math.max(most, this.#addedEach(cursor, place, at));
        else if (opcode === 'OpenDup') most = Math.max(most, this.rowsOf(p2, at));
        else if (opcode === 'OpenPseudo') most = Math.max(most, 1);
        else if (opcode === 'VOpen') most = Math.max(most, this.#elements.each);
      }
      return most;
    });
  }

  /** Number of rows inserted into a temporary table, through any of its cursors. */
  #added(cursor: number): number {
    return this.#once(`a${cursor}`, () =>
      [...this.#family(cursor)].reduce((sum, one) => sum + this.#uses(one, ({ opcode }) => ADDS.has(opcode)), 0),
    );
  }

  /** The cursors on the same temporary table: SQLite only copies the first one. */
  #family(cursor: number): ReadonlySet<number> {
    const known = this.#families.get(cursor);
    if (known !== undefined) return known;
    const copies = this.#program.filter(({ opcode }) => opcode === 'OpenDup');
    const root = copies.find(({ p1 }) => p1 === cursor)?.p2 ?? cursor;
    const same = new Set([root, cursor, ...copies.flatMap(({ p1, p2 }) => (p2 === root ? [p1] : []))]);
    this.#families.set(cursor, same);
    return same;
  }

  /** The same since the table was last opened, which empties it: per iteration of the loop that opens it. */
  #addedEach(cursor: number, open: number, at: number): number {
    const places = this.#places.get(open) ?? [];
    const [place] = places;
    const loop = place?.routine.loops.get(open);
    const users = [...this.#family(cursor)].flatMap((one) => this.#usersOf(one));
    const adds = users.flatMap(([add, { opcode }]) => (ADDS.has(opcode) ? [add] : []));
    const inside = [at, ...adds].every((one) => {
      const found = this.#places.get(one) ?? [];
      return found.length === 1 && found[0]?.routine === place?.routine && loop?.body.has(one) === true;
    });
    const opens = this.#usersOf(cursor).filter(([, { opcode }]) => OPENS_OWN.has(opcode)).length;
    if (place === undefined || loop === undefined || places.length !== 1 || opens !== 1 || !inside) {
      return this.#added(cursor);
    }
    const { header, body } = loop;
    const isEachTurn = header !== null && isCut(place.routine, body, header, new Set([open]));
    if (!isEachTurn || place.routine.once.has(open)) return this.#added(cursor);
    return Math.ceil(this.#added(cursor) / Math.max(1, this.of(open)));
  }
}

/** Whether a table's page is in a register: a table that the statement creates. */
function isRegister(p5: number): boolean {
  return (p5 & 0x10) !== 0;
}

/** Whether every iteration of a loop executes one of these instructions. */
function isCut(routine: Routine, body: ReadonlySet<number>, header: number, cut: ReadonlySet<number>): boolean {
  if (cut.has(header)) return true;
  const seen = new Set<number>();
  const waiting = [header];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    for (const target of routine.next.get(at) ?? []) {
      if (target === header) return false;
      if (!body.has(target) || cut.has(target) || seen.has(target)) continue;
      seen.add(target);
      waiting.push(target);
    }
  }
  return true;
}

/** Whether a loop has no cycle without these instructions. */
function isAcyclic(routine: Routine, { body }: Loop, without: ReadonlySet<number>): boolean {
  const rest = new Set([...body].filter((at) => !without.has(at)));
  return [...rest].every((at) => isCut(routine, rest, at, new Set()));
}

function addTo<K, T>(lists: Map<K, T[]>, key: K, value: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
