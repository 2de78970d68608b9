/** `cortex eval <dataset>`: runs the dataset, prints the report, and compares it (O3). */
import { randomBytes } from 'node:crypto';
import { isatty } from 'node:tty';
import pc from 'picocolors';
import { Client } from '../../src/client/client.ts';
import { messageOf } from '../../src/domain/errors.ts';
import { UsageError } from '../command.ts';
import type { CommandCall, ExitCode } from '../command.ts';
import { readInput } from '../input-file.ts';
import { numberOption, textOption, wordOption } from '../option-values.ts';
import { requireWritable } from '../output-file.ts';
import { writeNamed } from '../project/real-path.ts';
import { connectionOf, request } from '../terminal/connection.ts';
import type { Connection } from '../terminal/connection.ts';
import { visible } from '../terminal/visible.ts';
import { compareReports, requireComparable } from './compare.ts';
import { readDataset } from './dataset.ts';
import type { Dataset } from './dataset.ts';
import { evaluate } from './evaluate.ts';
import type { EvaluateOptions } from './evaluate.ts';
import { Interruption } from './interruption.ts';
import { chosenJudge } from './judge-options.ts';
import { EvalProgress } from './progress.ts';
import { renderReport } from './render.ts';
import { readReport, reportOf } from './report.ts';
import type { EarlierReport } from './report.ts';
import { systemRuns } from './system-runs.ts';
import { needsTemporarySystem, startTemporarySystem } from './temporary-system.ts';
import { FAIL_ON, verdictOf } from './verdict.ts';

const MOST_REPEATS = 100;
const MOST_AT_ONCE = 50;
export const AT_ONCE = 4;
const DEFAULT_AGENT = 'assistant';

/** Everything that can be wrong is checked before the first run. */
export async function runEvaluation(call: CommandCall, file: string): Promise<ExitCode> {
  const dataset = datasetOf(file);
  const repeat = numberOption(call, 'repeat', { least: 1, most: MOST_REPEATS }) ?? 1;
  const concurrency = numberOption(call, 'concurrency', { least: 1, most: MOST_AT_ONCE }) ?? AT_ONCE;
  const failOn = wordOption(call, 'fail-on', FAIL_ON) ?? 'failure';
  const earlier = earlierOf(call, dataset);
  if (earlier === null && failOn !== 'failure') throw new UsageError(`--fail-on ${failOn} needs --compare <report>`);
  const agent = textOption(call, 'agent') ?? dataset.agent ?? DEFAULT_AGENT;
  const judge = chosenJudge(call);
  const usesJudge = dataset.cases.some(({ expect }) => expect.some((one) => one.judge !== undefined));
  const isTemporary = needsTemporarySystem(call);
  const out = textOption(call, 'out');
  if (out !== undefined) requireWritable('--out', out);

  const needsSystem = dataset.cases.some(({ answer }) => answer === undefined) || (usesJudge && judge.isAgent);
  const interruption = new Interruption(call.tell);
  const { signal } = interruption;
  await using system = isTemporary && needsSystem ? await startTemporarySystem(call, interruption) : null;
  const connection = needsSystem ? (system?.connection ?? connectionOf(call)) : null;
  if (connection !== null) await requireSystem(connection);
  const client = connection === null ? null : clientAt(connection);
  const askJudge = usesJudge ? await judge.asker(client, signal) : async () => unneeded('judge');
  const progress = new EvalProgress({
    total: dataset.cases.length * repeat,
    write: isatty(2) ? (text) => void process.stderr.write(text) : null,
    now: Date.now,
  });
  const options: EvaluateOptions = {
    agent,
    repeat,
    concurrency,
    run: client === null ? async () => unneeded('system') : systemRuns(client, signal),
    askJudge,
    newCode: () => randomBytes(12).toString('hex'),
    now: Date.now,
    done: (result) => progress.take(result),
    signal,
  };
  const results = await interruption.during(async () => await evaluate(dataset, options));
  progress.clear();
  const report = reportOf(dataset, results, {
    file,
    omitted: dataset.cases.length * repeat - results.length,
    created_at: new Date().toISOString(),
    agent,
    system: connection === null ? 'none' : isTemporary ? 'temporary' : connection.url,
    options: { repeat, concurrency, judge: usesJudge ? judge.label : null },
  });
  const comparison = earlier === null ? null : compareReports(report, earlier.report, earlier.file);
  const verdict = verdictOf(report, comparison, failOn);
  const { result, reason, exit } = verdict;
  const whole = { ...report, comparison, verdict: { fail_on: failOn, result, reason } };
  // A file that can no longer be written must not take the result with it.
  if (call.json) call.print(JSON.stringify(whole));
  else for (const line of renderReport(report, comparison, { colors: pc })) call.print(line);
  if (out !== undefined) writeNamed(out, `${JSON.stringify(whole, null, 2)}\n`);
  if (reason !== null) call.tell((result === 'error' ? pc.yellow : pc.red)(reason));
  return exit;
}

function clientAt({ url, key }: Connection): Client {
  return new Client({ url, ...(key === null ? {} : { key }) });
}

/** In place of what no case of the dataset uses. */
function unneeded(what: 'judge' | 'system'): never {
  throw new Error(`no case of the dataset needs a ${what}`);
}

/** @throws UsageError for a file that is not a dataset */
function datasetOf(file: string): Dataset {
  const text = readInput(file);
  try {
    return readDataset(text);
  } catch (fault) {
    throw new UsageError(`${visible(file)}: ${messageOf(fault)}`, { cause: fault });
  }
}

/** @throws UsageError for a file that is not a report of this dataset */
function earlierOf(
  call: CommandCall,
  dataset: Dataset,
): { readonly file: string; readonly report: EarlierReport } | null {
  const file = textOption(call, 'compare');
  if (file === undefined) return null;
  const text = readInput(file);
  try {
    const report = readReport(text);
    requireComparable(dataset, report);
    return { file, report };
  } catch (fault) {
    throw new UsageError(`--compare: ${visible(file)} ${messageOf(fault)}`, { cause: fault });
  }
}

/** @throws Unreachable for a wrong address or key, before any case is run */
async function requireSystem(connection: Connection): Promise<void> {
  await (await request(connection, '/agents')).body?.cancel();
}
