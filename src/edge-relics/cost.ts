/**
 * The work of a SQL statement before it runs (R6), from the program that SQLite made of it: how often each
 * instruction runs at most, times what it costs, and the bytes of the values that it touches. Pure.
 *
 * An upper bound: what `LIMIT` or a condition would save is not known.
 */
import { Counts } from './counts.ts';
import type { TableSizes } from './counts.ts';
import { NotAdmitted } from './flow.ts';
import type { Instruction, Program, Routine } from './flow.ts';
import { functionNamed } from './functions.ts';
import type { SqlFunction } from './functions.ts';
import { ADDS, CALLS, LOOKUPS, OPCODES, OPENS_TABLE, POSITIONS } from './opcodes.ts';

/** What the text of a statement, and of what it refers to, says of its values. */
export interface Texts {
  /** Bytes of literals and bound values together, and of the longest of them. */
  readonly totalBytes: number;
  readonly longestBytes: number;
  /** `SELECT`s within each other at most: a value can be put together anew in each of them. */
  readonly levels: number;
  /** Bytes of the longest pattern of `LIKE` and `GLOB`. */
  readonly patternBytes: number;
  /** Bytes of the longest text that `instr`, `replace` or `trim` look for; null when the text does not say it. */
  readonly needleBytes: number | null;
  /** How many times longer `replace` makes a text; null when the text does not say it. */
  readonly replaceTimes: number | null;
  /** Bytes that the formats of `printf` add; null when the text does not say it. */
  readonly formatBytes: number | null;
  /** Places of `json_each` and `json_tree`. */
  readonly jsonTables: number;
  /** Whether `json_tree` is among them, which repeats what is nested. */
  readonly jsonTree: boolean;
  /** Values of the largest document that they get; null when the text does not say it. */
  readonly jsonItems: number | null;
  readonly alters: boolean;
}

/** What tables hold that a statement opens. */
export interface StoredBytes {
  readonly total: number;
  readonly longest: number;
}

/** Columns of `json_each` that hold parts of the document, not all of it. */
const PARTS = 5;

export interface CostOptions {
  readonly program: Program;
  readonly routines: ReadonlyMap<string, Routine>;
  readonly sizes: TableSizes;
  readonly texts: Texts;
  /** What removing a table may have to go through. */
  readonly databaseBytes: number;
  /** The longest value that SQLite makes. */
  readonly valueBytes: number;
  /** What the tables hold that begin at these pages. */
  readonly stored: (pages: readonly number[]) => StoredBytes;
}

interface Step {
  readonly instruction: Instruction;
  readonly at: number;
  readonly times: number;
  readonly called: SqlFunction | null;
}

/** How much longer than what goes in a value can become. */
interface Growth {
  readonly times: number;
  /** Bytes, before it is multiplied. */
  readonly more: number;
  readonly collects: boolean;
}

/** The bytes of a statement's values, after all that it can do to them. */
interface Reach {
  readonly longest: number;
  /** All values of one pass over everything; infinite when rows are come back to. */
  readonly pass: number;
  /** Rows that are collected into one value (`group_concat`). */
  readonly collected: number;
}

export class Cost {
  readonly #options: CostOptions;
  readonly #called: readonly (SqlFunction | null)[];
  readonly #growth: Growth;
  readonly #counts: Counts;
  readonly #steps: readonly Step[];

  /** @throws NotAdmitted for an instruction, a function or a loop that is not admitted */
  constructor(options: CostOptions) {
    this.#options = options;
    const { program, texts } = options;
    this.#called = program.map((instruction) => admitted(instruction, texts));
    const virtual = new Set(program.filter(({ opcode }) => opcode === 'VOpen').map(({ p1 }) => p1));
    if (virtual.size > texts.jsonTables) {
      throw new NotAdmitted('of table-valued functions only json_each and json_tree are allowed');
    }
    this.#growth = this.#growthOf();
    this.#counts = this.#counted();
    this.#steps = program.map((instruction, at) => {
      return { instruction, at, times: this.#counts.of(at), called: this.#called[at] ?? null };
    });
  }

  #counted(): Counts {
    const { program, routines, sizes, texts, stored } = this.#options;
    const each = texts.jsonItems ?? this.#longest(texts.jsonTables > 0 ? stored(this.pages) : null);
    const counts = new Counts({ program, routines, sizes, elements: { each, total: Infinity } });
    const filters = program.filter(({ opcode }) => opcode === 'VFilter');
    if (filters.length !== 1 || texts.jsonItems !== null || !this.#isOnePass(counts)) return counts;
    const total = Math.ceil((stored(this.pages).total + texts.totalBytes) * this.#growth.times);
    return new Counts({ program, routines, sizes, elements: { each, total } });
  }

  /** Pages that the statement's tables and indexes begin at. */
  get pages(): readonly number[] {
    const { program } = this.#options;
    return [...new Set(program.filter(({ opcode }) => OPENS_TABLE.has(opcode)).map(({ p2 }) => p2))];
  }

  /** Units of work, about ten nanoseconds each. @param stored what the tables hold, as far as it is known */
  work(stored: StoredBytes): number {
    const reach = this.#reach(stored);
    return this.#steps.reduce((sum, step) => sum + this.#workOf(step, reach), 0);
  }

  #workOf({ instruction, at, times, called }: Step, reach: Reach): number {
    if (times === 0) return 0;
    const { opcode, p1, p2 } = instruction;
    const { work, bytesPerUnit } = called ?? OPCODES.get(opcode) ?? { work: 1, bytesPerUnit: 0 };
    let units = times * work;
    if (opcode === 'Count') units += (times * this.#counts.rowsOf(p1, at)) / 20;
    if (opcode === 'Clear' || opcode === 'Destroy') units += this.#options.databaseBytes / 100;
    if (bytesPerUnit === 0) return units;
    // A virtual table's other columns hold the whole document, for each row.
    const whole = opcode === 'VColumn' && (p2 > PARTS || this.#options.texts.jsonTree);
    const bytes = whole
      ? times * reach.longest
      : Math.max(Math.min(times * reach.longest, reach.pass), reach.collected);
    const each = called === null ? 1 : valuesOf(instruction) * this.#against(called, reach);
    return units + (bytes / bytesPerUnit) * each;
  }

  /** How many others each byte of a text is compared with. */
  #against(called: SqlFunction | null, { longest }: Reach): number {
    const { patternBytes, needleBytes } = this.#options.texts;
    switch (called?.against) {
      case undefined:
        return 1;
      case 'pattern':
        return patternBytes;
      case 'needle':
        return Math.max(1, needleBytes ?? longest);
      case 'value':
        return longest;
    }
  }

  /** Bytes of the longest value of all; null for tables that are not read. */
  #longest(stored: StoredBytes | null): number {
    const { valueBytes, texts } = this.#options;
    const { times, more, collects } = this.#growth;
    if (collects && texts.levels > 1) return valueBytes;
    return Math.min(valueBytes, (Math.max(stored?.longest ?? 0, texts.longestBytes, 16) + more) * times);
  }

  #reach(stored: StoredBytes): Reach {
    const { valueBytes, texts } = this.#options;
    const { times, more, collects } = this.#growth;
    const base = Math.min(valueBytes, (Math.max(stored.longest, texts.longestBytes, 16) + more) * times);
    const isOnePass =
      this.#isOnePass(this.#counts) && !this.#options.program.some(({ opcode }) => opcode === 'VFilter');
    const pass = isOnePass || this.#isOneDocument() ? (stored.total + texts.totalBytes + more) * times : Infinity;
    if (!collects) return { longest: base, pass, collected: 0 };
    const rows = this.#steps.reduce(
      (sum, step) =>
        step.called?.growth === 'collects' && step.instruction.opcode.startsWith('AggStep') ? sum + step.times : sum,
      0,
    );
    // What is collected within another SELECT, or for each row of a window, is a value like any other there.
    const again = texts.levels > 1 || this.#hasWindows();
    return {
      longest: again ? Math.min(valueBytes, rows * base) : base,
      pass: again ? Infinity : pass,
      collected: Math.min(rows * base, pass),
    };
  }

  #growthOf(): Growth {
    const { texts, program } = this.#options;
    const { levels, replaceTimes, formatBytes } = texts;
    let added = 0;
    let factor = 1;
    let more = 0;
    let collects = false;
    for (const [at, instruction] of program.entries()) {
      if (instruction.opcode === 'Concat') added += 1;
      const growth = this.#called[at]?.growth ?? 'none';
      const values = valuesOf(instruction);
      if (typeof growth === 'number') added += growth * values;
      else if (growth === 'replace') factor *= replaceTimes ?? Infinity;
      else if (growth === 'date') added += 10;
      else if (growth === 'collects') collects = true;
      else if (growth === 'format') {
        added += 2 * values;
        more += formatBytes ?? Infinity;
      }
    }
    return { times: factor * (added / levels + 1) ** levels, more, collects };
  }

  #hasWindows(): boolean {
    return this.#options.program.some(({ opcode }) => opcode === 'AggValue' || opcode === 'AggInverse');
  }

  /** Whether one document is gone through once: its values together are as long as it is. */
  #isOneDocument(): boolean {
    const { program, texts } = this.#options;
    const filters = this.#steps.filter(({ instruction: { opcode } }) => opcode === 'VFilter');
    const reads = program.some(({ opcode }) => opcode === 'OpenRead');
    return (
      filters.length === 1 &&
      !reads &&
      (filters[0]?.times ?? 0) <= 1 &&
      !texts.jsonTree &&
      this.#isOnePass(this.#counts)
    );
  }

  /** Whether no row of a table is come to twice: then the bytes of one pass are those of the tables. */
  #isOnePass(counts: Counts): boolean {
    const { program } = this.#options;
    const backwards = new Set(program.filter(({ opcode }) => opcode === 'Prev').map(({ p1 }) => p1));
    const reads = new Set(program.filter(({ opcode }) => opcode === 'OpenRead').map(({ p1 }) => p1));
    return program.every(({ opcode, p1 }, at) => {
      if (opcode === 'Last' && !backwards.has(p1)) return true;
      if (LOOKUPS.has(opcode)) return !reads.has(p1) || counts.of(at) <= 1;
      return opcode === 'VFilter' || !(POSITIONS.has(opcode) || opcode === 'OpenDup') || counts.of(at) <= 1;
    });
  }
}

/** Arguments of a call: `replace(3)`; SQLite says -1 for any number, which is in `p5` then. */
function valuesOf({ p4, p5 }: Instruction): number {
  const said = Number(/\((-?\d+)\)$/.exec(p4)?.[1] ?? 1);
  return Math.max(1, said < 0 ? p5 : said);
}

/** @throws NotAdmitted for what is not on the list */
function admitted({ opcode, p4 }: Instruction, { alters }: Texts): SqlFunction | null {
  if (!CALLS.has(opcode)) {
    if (OPCODES.has(opcode) || ADDS.has(opcode)) return null;
    throw new NotAdmitted(OTHERS.get(opcode) ?? `SQLite would need "${opcode}" for it, which is not allowed here`);
  }
  const name = p4.replace(/\(-?\d+\)$/, '');
  const found = functionNamed(name, alters);
  if (found === null) throw new NotAdmitted(`the function ${name} is not allowed`);
  return found;
}

const OTHERS: ReadonlyMap<string, string> = new Map([
  ['Program', 'triggers and actions of foreign keys (CASCADE, RESTRICT, SET) are not allowed'],
]);
