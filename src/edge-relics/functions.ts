/**
 * SQLite functions allowed in an edge relic (R6), with their cost and the maximum length of their results.
 * Others are rejected: `zeroblob` and `randomblob`, for example, create any number of bytes.
 */

/**
 * Maximum length of a result:
 *  - `none`: a few bytes, whatever the arguments.
 *  - `same`: as long as the longest argument.
 *  - a number: this many times all arguments together.
 *  - `replace`: the text, times the replacement.
 *  - `date`: ten times the format.
 *  - `format`: depends on the format, if it is a literal in the statement.
 *  - `collects`: all rows together.
 */
export type Growth = 'none' | 'same' | 'date' | 'replace' | 'format' | 'collects' | number;

export interface SqlFunction {
  readonly work: number;
  readonly bytesPerUnit: number;
  readonly growth: Growth;
  /** Each byte is compared with each byte of a `LIKE` pattern, of the second argument, or of the longest value. */
  readonly against?: 'pattern' | 'needle' | 'value';
}

const TABLE: readonly (readonly [number, number, Growth, string])[] = [
  [
    5,
    16,
    'none',
    `abs sign round typeof unicode length octet_length random changes total_changes last_insert_rowid soundex
     acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power
     radians sin sinh sqrt tan tanh trunc`,
  ],
  [5, 64, 'same', 'coalesce ifnull nullif iif likely unlikely likelihood max min'],
  [10, 8, 'same', 'lower upper substr substring unhex'],
  [10, 8, 2, 'concat concat_ws'],
  [10, 8, 4, 'char hex quote'],
  [50, 8, 'none', 'date time datetime julianday unixepoch timediff current_date current_time current_timestamp'],
  [50, 8, 'date', 'strftime'],
  [80, 4, 'format', 'printf format'],
  [5, 16, 'none', 'count sum total avg'],
  [5, 16, 'none', 'row_number rank dense_rank percent_rank cume_dist ntile'],
  [5, 64, 'same', 'lag lead first_value last_value nth_value'],
  [20, 16, 'collects', 'group_concat string_agg'],
  [60, 4, 'collects', 'json_group_array json_group_object jsonb_group_array jsonb_group_object'],
  [100, 2, 'none', 'json_valid json_type json_array_length'],
  [100, 2, 'same', '->>'],
  [100, 2, 6, '-> json_extract jsonb_extract json_remove jsonb_remove'],
  [100, 2, 2, 'json jsonb'],
  [100, 2, 6, 'json_quote json_array json_object jsonb_array jsonb_object'],
  [200, 1, 6, 'json_insert json_replace json_set jsonb_insert jsonb_replace jsonb_set'],
];

/** Called only by SQLite itself, to change a table's definition. */
const ALTERS: readonly (readonly [number, number, Growth, string])[] = [
  [5_000, 1, 'same', 'sqlite_rename_column sqlite_rename_test sqlite_drop_column sqlite_rename_quotefix sqlite_fail'],
];

const listed = (rows: typeof TABLE): [string, SqlFunction][] =>
  rows.flatMap(([work, bytesPerUnit, growth, names]) =>
    names.split(/\s+/).map((name): [string, SqlFunction] => [name, { work, bytesPerUnit, growth }]),
  );

const FUNCTIONS: ReadonlyMap<string, SqlFunction> = new Map([
  ...listed(TABLE),
  ['like', { work: 20, bytesPerUnit: 16, growth: 'none', against: 'pattern' }],
  ['glob', { work: 20, bytesPerUnit: 16, growth: 'none', against: 'pattern' }],
  ['instr', { work: 10, bytesPerUnit: 16, growth: 'none', against: 'needle' }],
  ['trim', { work: 10, bytesPerUnit: 8, growth: 'same', against: 'needle' }],
  ['ltrim', { work: 10, bytesPerUnit: 8, growth: 'same', against: 'needle' }],
  ['rtrim', { work: 10, bytesPerUnit: 8, growth: 'same', against: 'needle' }],
  ['replace', { work: 50, bytesPerUnit: 8, growth: 'replace', against: 'needle' }],
  // Each member name of one object is searched in the other.
  ['json_patch', { work: 200, bytesPerUnit: 8, growth: 6, against: 'value' }],
  ['jsonb_patch', { work: 200, bytesPerUnit: 8, growth: 6, against: 'value' }],
]);

const FOR_ALTER: ReadonlyMap<string, SqlFunction> = new Map(listed(ALTERS));

/** @param alters whether the statement is an `ALTER TABLE` */
export function functionNamed(name: string, alters: boolean): SqlFunction | null {
  return FUNCTIONS.get(name) ?? (alters ? FOR_ALTER.get(name) : undefined) ?? null;
}
