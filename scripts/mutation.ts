/**
 * `npm run test:mutation [-- room … --mutants=150 --seed=1 --concurrency=2]`: measures how many small changes of a
 * room's code the tests of the same room detect. Takes a seeded sample of Stryker's mutants, runs the tests that cover
 * each of them, and prints the score of every room and the surviving mutants. Exits with 1 if a room scores below the
 * goal.
 *
 * Mutants that change only speed, or nothing that a test could observe, are listed with their reason in
 * test/mutation/equivalent.json and are not counted.
 */
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import pc from 'picocolors';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';

interface Position {
  readonly line: number;
  readonly column: number;
}

/** A change: `original` becomes `replacement`. Lines and columns start at 0. */
interface Mutant {
  readonly file: string;
  readonly start: Position;
  readonly end: Position;
  /** The first line of the source that holds it. */
  readonly line: string;
  readonly original: string;
  readonly replacement: string;
}

interface Equivalent {
  readonly file: string;
  /** The line of the source, where only the change of this line is equivalent. */
  readonly line?: string;
  readonly original: string;
  readonly replacement: string;
  readonly reason: string;
}

const ROOMS = ['scheduler', 'protocol', 'engine', 'journal'];
const GOAL_PERCENT = 85;
/** Changes of whole blocks are excluded: any test that runs the block detects them. */
const EXCLUDED = ['BlockStatement'];
/** Longer originals contain many smaller mutants. */
const MOST_ORIGINAL_CHARS = 80;

const ignore = (): void => undefined;
const no = (): boolean => false;
const SILENT: ConstructorParameters<typeof Instrumenter>[0] = {
  trace: ignore,
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  fatal: ignore,
  isTraceEnabled: no,
  isDebugEnabled: no,
  isInfoEnabled: no,
  isWarnEnabled: no,
  isErrorEnabled: no,
  isFatalEnabled: no,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    mutants: { type: 'string', default: '150' },
    seed: { type: 'string', default: '1' },
    concurrency: { type: 'string', default: '2' },
  },
});
const wanted = Number(values.mutants);
const concurrency = Number(values.concurrency);
const rooms = positionals.length === 0 ? ROOMS : positionals;
const unknown = rooms.filter((room) => !ROOMS.includes(room));
if (unknown.length > 0 || ![wanted, concurrency].every((count) => Number.isInteger(count) && count >= 1)) {
  console.error(`Usage: npm run test:mutation [-- ${ROOMS.join(' | ')} … --mutants=150 --seed=1 --concurrency=2]`);
  process.exit(1);
}

const equivalents = JSON.parse(
  readFileSync(join(PACKAGE_ROOT, 'test/mutation/equivalent.json'), 'utf8'),
) as readonly Equivalent[];
// Random cases are the same for every mutant, so a few of them are sufficient.
process.env['SCHEDULER_RUNS'] ??= '25';
process.env['CORTEX_FUZZ_RUNS'] ??= '15';
const instrument = Instrumenter.prototype.instrument;
let failed = false;
for (const room of rooms) failed = !(await testRoom(room)) || failed;
process.exit(failed ? 1 : 0);

async function testRoom(room: string): Promise<boolean> {
  const all = await mutantsOf(room);
  const sample = all
    .filter((mutant) => !isEquivalent(mutant))
    .map((mutant) => ({ mutant, rank: rankOf(mutant) }))
    .sort((a, b) => a.rank.localeCompare(b.rank))
    .slice(0, wanted)
    .map(({ mutant }) => mutant);
  console.log(pc.bold(`${room}: ${sample.length} of ${all.length} mutants`));
  process.env['MUTATION_ROOM'] = room;
  restrictTo(sample);
  const results = await new Stryker({
    mutate: sample.map(({ file, start, end }) => `${file}:${place(start)}-${place(end)}`),
    mutator: { plugins: null, excludedMutations: EXCLUDED },
    testRunner: 'vitest',
    plugins: ['@stryker-mutator/vitest-runner', './test/mutation/survivors.ts'],
    vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
    coverageAnalysis: 'perTest',
    disableTypeChecks: false,
    // Stryker reads tsconfig files through the JavaScript API of TypeScript, which TypeScript 7 does not have.
    tsconfigFile: 'none.json',
    reporters: ['progress', 'survivors'],
    concurrency,
    timeoutMS: 60_000,
    dryRunTimeoutMinutes: 20,
    ignorePatterns: ['.cortex', '.wrangler'],
  }).runMutationTest();
  rmSync(join(PACKAGE_ROOT, 'reports'), { recursive: true, force: true });

  let killed = 0;
  let timedOut = 0;
  const survived: string[] = [];
  for (const result of results) {
    const { status, replacement = '', fileName } = result;
    const start = fromOne(result.location.start);
    if (status === 'Ignored' || status === 'CompileError' || status === 'RuntimeError') continue;
    const file = sourceOf(fileName);
    const source = readFileSync(join(PACKAGE_ROOT, file), 'utf8');
    const original = cut(source, start, fromOne(result.location.end));
    if (isEquivalent({ file, line: lineOf(source, start), original, replacement })) continue;
    if (status === 'Timeout') timedOut += 1;
    if (status === 'Killed' || status === 'Timeout') killed += 1;
    else survived.push(`  ${file}:${start.line + 1}  ${oneLine(original)}  ${pc.dim('→')}  ${oneLine(replacement)}`);
  }
  const total = killed + survived.length;
  const percent = total === 0 ? 100 : (killed / total) * 100;
  if (survived.length > 0) console.log(`Survived:\n${survived.sort().join('\n')}`);
  const score = `${percent.toFixed(0)}%, goal ${GOAL_PERCENT}%, ${timedOut} by time-out`;
  const line = `${room}: ${killed} of ${total} killed (${score})`;
  console.log(percent >= GOAL_PERCENT ? pc.green(line) : pc.red(line));
  return percent >= GOAL_PERCENT;
}

/** Stryker accepts ranges of lines, which contain other mutants too: these are ignored and cost no time. */
function restrictTo(sample: readonly Mutant[]): void {
  const chosen = new Set(sample.map(({ file, start, end, replacement }) => nameOf(file, start, end, replacement)));
  Instrumenter.prototype.instrument = async function (...given) {
    const result = await instrument.apply(this, given);
    for (const mutant of result.mutants) {
      const { fileName, location, replacement = '' } = mutant;
      if (chosen.has(nameOf(sourceOf(fileName), location.start, location.end, replacement))) continue;
      mutant.status = 'Ignored';
      mutant.statusReason = 'Not in the sample';
    }
    return result;
  };
}

function nameOf(file: string, start: Position, end: Position, replacement: string): string {
  return JSON.stringify([file, start.line, start.column, end.line, end.column, replacement]);
}

function sourceOf(path: string): string {
  return path.slice(path.lastIndexOf('src/'));
}

async function mutantsOf(room: string): Promise<readonly Mutant[]> {
  const files = readdirSync(join(PACKAGE_ROOT, 'src', room), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `src/${room}/${name}`)
    .sort();
  const sources = new Map(files.map((file) => [file, readFileSync(join(PACKAGE_ROOT, file), 'utf8')]));
  const instrumenter = new Instrumenter(SILENT);
  const { mutants } = await instrument.call(
    instrumenter,
    files.map((name) => ({ name, content: sources.get(name) ?? '', mutate: true })),
    { plugins: null, ignorers: [], excludedMutations: EXCLUDED },
  );
  return mutants.flatMap(({ fileName, location: { start, end }, replacement = '' }) => {
    const source = sources.get(fileName) ?? '';
    const original = cut(source, start, end);
    const line = lineOf(source, start);
    return original.length > MOST_ORIGINAL_CHARS ? [] : [{ file: fileName, start, end, line, original, replacement }];
  });
}

function rankOf({ file, start, original, replacement }: Mutant): string {
  return createHash('sha256')
    .update(JSON.stringify([values.seed, file, start.line, start.column, original, replacement]))
    .digest('hex');
}

function isEquivalent(mutant: Omit<Mutant, 'start' | 'end'>): boolean {
  return equivalents.some(
    ({ file, line = mutant.line, original, replacement }) =>
      file === mutant.file &&
      line === mutant.line &&
      oneLine(original) === oneLine(mutant.original) &&
      replacement === mutant.replacement,
  );
}

function lineOf(source: string, { line }: Position): string {
  return (source.split('\n')[line] ?? '').trim();
}

function cut(source: string, start: Position, end: Position): string {
  const lines = source.split('\n').slice(start.line, end.line + 1);
  lines[lines.length - 1] = (lines.at(-1) ?? '').slice(0, end.column);
  lines[0] = (lines[0] ?? '').slice(start.column);
  return lines.join('\n');
}

/** Stryker's results start lines and columns at 1. */
function fromOne({ line, column }: Position): Position {
  return { line: line - 1, column: column - 1 };
}

/** In Stryker's ranges, lines start at 1 and columns at 0. */
function place({ line, column }: Position): string {
  return `${line + 1}:${column}`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
