/**
 * SQLite instructions allowed in an edge relic (R6), with their control flow and cost.
 *
 * `EXPLAIN` shows a statement as the program that SQLite runs. Instructions that are not listed here are rejected,
 * including recursion, triggers, pragmas and instructions of later versions. The unit of work is about ten nanoseconds.
 */

export interface Opcode {
  /** Work of one execution, without the bytes that it reads or writes. */
  readonly work: number;
  /** Bytes of values per unit of work; 0 if it accesses no values. */
  readonly bytesPerUnit: number;
  /** Whether a nonzero `p2` is the address of another instruction. */
  readonly jumps: boolean;
}

const COPIES = 64;
const READS = 16;
/** Approximate number of comparisons of each key in a sorter or a tree: a logarithm of the rows. */
const COMPARES = 8;

/** Work, bytes per unit, names. */
const PLAIN: readonly (readonly [number, number, string])[] = [
  [
    1,
    0,
    `Init Goto Gosub Return InitCoroutine EndCoroutine Jump Halt HaltIfNull Noop Explain Null SoftNull Integer Int64 Real
     Move SCopy IntCopy CollSeq AddImm RealAffinity Permutation IsTrue ZeroOrNull Offset ReadCookie SetCookie Close
     ColumnsUsed SeekHit SeekEnd ResetCount NullRow DeferredSeek FinishSeek FkCounter MemMax OffsetLimit FkCheck ClrSubtype
     GetSubtype SetSubtype Transaction TableLock CursorHint Trace Abortable ReleaseReg CursorLock CursorUnlock Sequence
     BeginSubrtn Expire VInitIn Rowid IdxRowid OpenPseudo`,
  ],
  [2, COPIES, 'String8 String Blob Variable Copy Compare And Or Not'],
  [2, READS, 'Add Subtract Multiply Divide Remainder BitAnd BitOr ShiftLeft ShiftRight BitNot Cast Affinity TypeCheck'],
  [4, COPIES, 'Column SorterData RowData RowCell'],
  [10, COPIES, 'VColumn'],
  [8, COPIES, 'MakeRecord Concat'],
  // Converts to a value of the host language.
  [100, 4, 'ResultRow'],
  [60, COMPARES, 'IdxInsert SorterInsert IdxDelete'],
  [60, COPIES, 'Insert Delete NewRowid RowSetAdd'],
  [10, COPIES, 'FilterAdd'],
  [50, 0, 'OpenRead OpenWrite ReopenIdx OpenDup Count Clear ResetSorter'],
  [300, 0, 'OpenAutoindex OpenEphemeral SorterOpen VOpen'],
  [5_000, 0, 'Destroy CreateBtree ParseSchema DropTable DropIndex SqlExec'],
];

/** Instructions whose `p2` is an address. */
const JUMPING: readonly (readonly [number, number, string])[] = [
  [2, 0, 'If IfNot IsNull NotNull IsType Once IfNullRow IfNotOpen IfNoHope IfEmpty IfSmaller IfSizeBetween FkIfZero'],
  [2, 0, 'IfPos IfNotZero DecrJumpZero Yield SequenceTest'],
  [20, COMPARES, 'Found NotFound NoConflict SorterCompare'],
  [2, COPIES, 'Eq Ne Lt Le Gt Ge ElseEq ElseNotEq'],
  [2, READS, 'MustBeInt'],
  [5, 0, 'Next Prev RowSetRead'],
  [10, COPIES, 'SorterNext Filter'],
  [80, COMPARES, 'SeekLT SeekLE SeekGE SeekGT SeekScan RowSetTest'],
  [30, 0, 'Last Rewind SorterSort Sort'],
  [80, 0, 'SeekRowid NotExists'],
  [4, COPIES, 'IdxLE IdxGT IdxLT IdxGE'],
  [200, READS, 'VFilter'],
  [20, 0, 'VNext'],
];

const listed = (rows: typeof PLAIN, jumps: boolean): [string, Opcode][] =>
  rows.flatMap(([work, bytesPerUnit, names]) =>
    names.split(/\s+/).map((name): [string, Opcode] => [name, { work, bytesPerUnit, jumps }]),
  );

/** By name. Instructions that call functions (`Function`, `PureFunc`, `AggStep`, …) are in functions.ts. */
export const OPCODES: ReadonlyMap<string, Opcode> = new Map([...listed(PLAIN, false), ...listed(JUMPING, true)]);

/** Instructions that call a function, whose name is in `p4`: `replace(3)`. */
export const CALLS: ReadonlySet<string> = new Set([
  'Function',
  'PureFunc',
  'AggStep',
  'AggStep1',
  'AggInverse',
  'AggValue',
  'AggFinal',
]);

/** Position a cursor on the first row of a loop. */
export const POSITIONS: ReadonlySet<string> = new Set(
  'Rewind Last SeekGE SeekGT SeekLE SeekLT SorterSort Sort VFilter'.split(' '),
);

/** Advance by one row: never more often than the cursor has rows, until it is positioned again. */
export const ADVANCES: ReadonlySet<string> = new Set(['Next', 'Prev', 'SorterNext', 'VNext']);

/** Open a cursor on a table of the database, whose root page is `p2`. */
export const OPENS_TABLE: ReadonlySet<string> = new Set(['OpenRead', 'OpenWrite', 'ReopenIdx']);

/** Open a cursor on a temporary table of the statement, which is empty then. */
export const OPENS_OWN: ReadonlySet<string> = new Set(['OpenEphemeral', 'OpenAutoindex', 'SorterOpen']);

/** Add a row to a cursor's table. */
export const ADDS: ReadonlySet<string> = new Set(['Insert', 'IdxInsert', 'SorterInsert']);

/** Look up a single row. */
export const LOOKUPS: ReadonlySet<string> = new Set(['SeekRowid', 'NotExists', 'Found', 'NotFound', 'NoConflict']);
