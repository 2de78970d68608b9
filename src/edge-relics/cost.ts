/**
 * The work of a SQL statement before it runs (R6), computed from the program that SQLite compiled: the maximum number
 * of executions of each instruction, times its cost, and the bytes of the values that it reads. Pure.
 *
 * An upper bound: the effect of `LIMIT` or of a condition is unknown.
 */
import { Counts } from './counts.ts';
import type { TableSizes } from './counts.ts';
import { NotAdmitted } from './flow.ts';
import type { Instruction, Program, Routine } from './flow.ts';
import { functionNamed } from './functions.ts';
import type { SqlFunction } from './functions.ts';
import { ADDS, CALLS, LOOKUPS, OPCODES, OPENS_TABLE, POSITIONS } from './opcodes.ts';

/** Facts about values from the text of a statement and of the objects that it refers to. */
export interface Texts {
  /** Bytes of literals and bound values in total; below, of those that each row may read, and of the longest one. */
  readonly totalBytes: number;
  readonly repeatedBytes: number;
  readonly longestBytes: number;
  /** Maximum nesting of `SELECT`s: each level can build a value again. */
  readonly levels: number;
  /** Bytes of the longest pattern of `LIKE` and `GLOB`. */
  readonly patternBytes: number;
  /** Bytes of the longest text that `instr`, `replace` or `trim` search for; null if it is not in the text. */
  readonly needleBytes: number | null;
  /** How many times longer `replace` makes a text; null if it is not in the text. */
  readonly replaceTimes: number | null;
  /** Bytes that the formats of `printf` add; null if they are not in the text. */
  readonly formatBytes: number | null;
  /** Number of uses of `json_each` and `json_tree`. */
  readonly jsonTables: number;
  /** Whether `json_tree` is used, which repeats nested values. */
  readonly jsonTree: boolean;
  /** Number of values in their largest document; null if it is not in the text. */
  readonly jsonItems: number | null;
  readonly alters: boolean;
}

/** Content of the tables that a statement opens. */
export interface StoredBytes {
  readonly total: number;
  readonly longest: number;
}

/** Number of columns of `json_each` with parts of the document; the others contain all of it. */
const PARTS = 5;

export interface CostOptions {
  readonly program: Program;
  readonly routines: ReadonlyMap<string, Routine>;
  readonly sizes: TableSizes;
  readonly texts: Texts;
  /** Bytes that removing a table may have to read. */
  readonly databaseBytes: number;
  /** Maximum length of a value in SQLite. */
  readonly valueBytes: number;
  /** Content of the tables with these root pages. */
  readonly stored: (pages: readonly number[]) => StoredBytes;
}

interface Step {
  readonly instruction: Instruction;
  readonly at: number;
  readonly times: number;
  readonly called: SqlFunction | null;
}

/** Maximum growth of a value relative to its inputs. */
interface Growth {
  readonly times: number;
  /** Bytes added before the multiplication. */
  readonly more: number;
  readonly collects: boolean;
}

/** The bytes of a statement's values, after all possible growth. */
interface ValueBytes {
  readonly longest: number;
  /** All stored values of one pass over all tables; infinite if rows may be read repeatedly. */
  readonly pass: number;
  /** What the statement's own texts and formats add to each row of the pass. */
  readonly perRow: number;
  /** Rows that are collected into one value (`group_concat`). */
  readonly collected: number;
}

export class Cost {
  readonly #options: CostOptions;
  readonly #called: readonly (SqlFunction | null)[];
  readonly #growth: Growth;
  readonly #counts: Counts;
  readonly #steps: readonly Step[];

  /** @throws NotAdmitted for an instruction, a function or a loop that is not allowed */
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

  /** Root pages of the statement's tables and indexes. */
  get pages(): readonly number[] {
    const { program } = this.#options;
    return [...new Set(program.filter(({ opcode }) => OPENS_TABLE.has(opcode)).map(({ p2 }) => p2))];
  }

  /** Units of work, about ten nanoseconds each. @param stored the content of the tables, as far as it is known */
  work(stored: StoredBytes): number {
    const reach = this.#reach(stored);
    return this.#steps.reduce((sum, step) => sum + this.#workOf(step, reach), 0);
  }

  #workOf({ instruction, at, times, called }: Step, reach: ValueBytes): number {
    if (times === 0) return 0;
    const { opcode, p1, p2 } = instruction;
    const { work, bytesPerUnit } = called ?? OPCODES.get(opcode) ?? { work: 1, bytesPerUnit: 0 };
    let units = times * work;
    if (opcode === 'Count') units += (times * this.#counts.rowsOf(p1, at)) / 20;
    if (opcode === 'Clear' || opcode === 'Destroy') units += this.#options.databaseBytes / 100;
    if (bytesPerUnit === 0) return units;
    // The other columns of a virtual table contain the whole document, for each row.
    const whole = opcode === 'VColumn' && (p2 > PARTS || this.#options.texts.jsonTree);
    const bytes = whole
      ? times * reach.longest
      : Math.max(Math.min(times * reach.longest, reach.pass + times * reach.perRow), reach.collected);
    const each = called === null ? 1 : valuesOf(instruction) * this.#against(called, reach);
    return units + (bytes / bytesPerUnit) * each;
  }

  /** Number of comparisons for each byte of a text. */
  #against(called: SqlFunction | null, { longest }: ValueBytes): number {
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

  /** Bytes of the longest value; null for tables that are not read. */
  #longest(stored: StoredBytes | null): number {
    const { valueBytes, texts } = this.#options;
    const { times, more, collects } = this.#growth;
    if (collects && texts.levels > 1) return valueBytes;
    return Math.min(valueBytes, (Math.max(stored?.longest ?? 0, texts.longestBytes, 16) + more) * times);
  }

  #reach(stored: StoredBytes): ValueBytes {
    const { valueBytes, texts } = this.#options;
    const { times, more, collects } = this.#growth;
    const base = Math.min(valueBytes, (Math.max(stored.longest, texts.longestBytes, 16) + more) * times);
    const isOnePass =
      this.#isOnePass(this.#counts) && !this.#options.program.some(({ opcode }) => opcode === 'VFilter');
    const pass = isOnePass || this.#isOneDocument() ? (stored.total + texts.totalBytes + more) * times : Infinity;
    const perRow = (texts.repeatedBytes + more) * times;
    if (!collects) return { longest: base, pass, perRow, collected: 0 };
    const rows = this.#steps.reduce(
      (sum, step) =>
        step.called?.growth === 'collects' && step.instruction.opcode.startsWith('AggStep') ? sum + step.times : sum,
      0,
    );
    // A value collected in an inner SELECT, or for each row of a window, can be collected again.
    const again = texts.levels > 1 || this.#hasWindows();
    return {
      longest: again ? Math.min(valueBytes, rows * base) : base,
      pass: again ? Infinity : pass,
      perRow,
      collected: Math.min(rows * base, pass + rows * perRow),
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

  /** Whether a single document is read once: then its values are together as long as the document. */
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

  /** Whether no table row is read twice: then one pass reads the bytes of the tables. */
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

/** Number of arguments of a call: `replace(3)`; -1 means that `p5` contains the number. */
function valuesOf({ p4, p5 }: Instruction): number {
  const written = Number(/\((-?\d+)\)$/.exec(p4)?.[1] ?? 1);
  return Math.max(1, written < 0 ? p5 : written);
}

/** @throws NotAdmitted for an instruction or a function that is not listed */
function admitted({ opcode, p4 }: Instruction, { alters }: Texts): SqlFunction | null {
  if (!CALLS.has(opcode)) {
    if (OPCODES.has(opcode) || ADDS.has(opcode)) return null;
    throw new NotAdmitted(OTHERS.get(opcode) ?? `it requires the SQLite instruction "${opcode}", which is not allowed`);
  }
  const name = p4.replace(/\(-?\d+\)$/, '');
  const found = functionNamed(name, alters);
  if (found === null) throw new NotAdmitted(`the function ${name} is not allowed`);
  return found;
}

const OTHERS: ReadonlyMap<string, string> = new Map([
  ['Program', 'triggers and actions of foreign keys (CASCADE, RESTRICT, SET) are not allowed'],
]);
