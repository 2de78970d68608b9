/** The command `cortex fluency`: its options, and what it prints. */
import { EngineError, messageOf } from '../../src/domain/errors.ts';
import type { ModelPrice } from '../../src/domain/manifests/model.ts';
import { platformClock } from '../../src/durable/platform.ts';
import { costOf } from '../../src/llm/routing/prices.ts';
import { createModel } from '../../src/llm/routing/select.ts';
import { EXIT, UsageError } from '../command.ts';
import type { CommandCall, ExitCode } from '../command.ts';
import { TaskAgents } from './tasks/agents.ts';
import { endpointOf } from './run/endpoint.ts';
import type { Endpoint } from './run/endpoint.ts';
import { FORM_NAMES, GRAMMAR_PARAMETERS } from './tasks/forms.ts';
import type { GrammarOptions } from './tasks/forms.ts';
import { shippedDataset } from './tasks/load.ts';
import { measureModel } from './run/measure-model.ts';
import { readReport } from './report/comparison.ts';
import type { EarlierReport } from './report/comparison.ts';
import { reportDocument } from './report/report.ts';
import type { FluencyReport } from './report/report.ts';
import { taskDigests } from './tasks/digest.ts';
import { reportLines } from './report/report-lines.ts';
import { selectForms, selectTasks } from './tasks/selection.ts';
import type { Work } from './run/work.ts';
import { readInput } from '../input-file.ts';
import { numberOption, textOption, wordOption } from '../option-values.ts';
import { requireWritable } from '../output-file.ts';
import { writeNamed } from '../project/real-path.ts';
import { Unreachable } from '../terminal/connection.ts';
import { harmless, visible } from '../terminal/visible.ts';

const MOST_REPEATS = 100;
const MOST_AT_ONCE = 50;
const LONGEST_SECONDS = 3_600;
const DEFAULT_SECONDS = 180;
const MOST_TOKENS = 1_000_000_000;
const MOST_DOLLARS = 100_000;

/** Runs `cortex fluency`. @throws UsageError for options, Unreachable for an endpoint that cannot be used */
export async function runFluency(call: CommandCall): Promise<ExitCode> {
  const endpoint = endpointOf(call);
  const work = workOf(call, endpoint);
  const earlier = earlierOf(call, work);
  const out = textOption(call, 'out');
  if (out !== undefined) requireWritable('--out', out);
  const { model, origin } = endpoint;
  const { provider } = createModel(endpoint.config, { clock: platformClock, random: Math.random });
  const stop = new AbortController();
  const interrupt = (): void => {
    call.tell('stops after the runs in progress; Ctrl-C again ends it at once');
    stop.abort();
  };
  process.once('SIGINT', interrupt);
  try {
    const report = await usable(() =>
      measureModel(
        work,
        { model, endpoint: origin },
        {
          clock: platformClock,
          random: Math.random,
          model: provider,
          signal: stop.signal,
          tell: (line) => call.tell(harmless(line)),
          done: ({ solved, form, task, ms }, count, total) =>
            call.tell(`${solved ? '✓' : '✗'} ${form} ${task}  ${(ms / 1_000).toFixed(1)} s  (${count} of ${total})`),
        },
      ),
    );
    print(call, report, earlier);
    if (report.endpointFailure !== null) {
      call.tell(`the endpoint failed, so the measurement is not complete: ${visible(report.endpointFailure)}`);
      return EXIT.unreachable;
    }
    return report.recommendation.form === null ? EXIT.failed : EXIT.ok;
  } finally {
    process.off('SIGINT', interrupt);
  }
}

function print(call: CommandCall, report: FluencyReport, earlier: EarlierReport | null): void {
  const document = reportDocument(report, earlier);
  const out = textOption(call, 'out');
  if (out !== undefined) writeNamed(out, `${JSON.stringify(document, null, 2)}\n`);
  if (call.json) call.print(JSON.stringify(document));
  else for (const line of reportLines(report, earlier)) call.print(visible(line));
}

/** @throws UsageError */
function workOf(call: CommandCall, { model, provider }: Endpoint): Work {
  const dataset = shippedDataset();
  const prices = priceOption(call, model);
  const cost = numberOption(call, 'max-cost', { least: 0, most: MOST_DOLLARS, whole: false }) ?? null;
  const priceOf: Work['priceOf'] = (promptTokens, completionTokens) =>
    costOf({ promptTokens, completionTokens, cachedTokens: 0, estimated: true, model }, prices);
  if (cost !== null && priceOf(0, 0) === null) {
    throw new UsageError(`the price of "${visible(model)}" is not known: --max-cost needs --price <in,out>`);
  }
  const filter = textOption(call, 'tasks');
  const forms = textOption(call, 'forms');
  const least1 = (name: string, most: number): number | undefined => numberOption(call, name, { least: 1, most });
  return {
    dataset,
    tasks: filter === undefined ? dataset.tasks : selectTasks(dataset.tasks, filter),
    forms: forms === undefined ? FORM_NAMES : selectForms(forms),
    repeat: least1('repeat', MOST_REPEATS) ?? 1,
    concurrency: least1('concurrency', MOST_AT_ONCE) ?? 4,
    agents: new TaskAgents(dataset, { seconds: least1('timeout', LONGEST_SECONDS) ?? DEFAULT_SECONDS, prices }),
    grammar: grammarOf(call, provider),
    budget: { tokens: least1('max-tokens', MOST_TOKENS) ?? null, cost },
    priceOf,
  };
}

function grammarOf(call: CommandCall, provider: Endpoint['provider']): GrammarOptions | null {
  const known = provider === null ? undefined : GRAMMAR_PARAMETERS[provider];
  const parameter = textOption(call, 'grammar-parameter') ?? known;
  const format = wordOption(call, 'grammar-format', ['gbnf', 'lark']) ?? 'gbnf';
  if (parameter === undefined) return null;
  if (parameter.split('.').every((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name))) return { parameter, format };
  throw new UsageError(`--grammar-parameter "${visible(parameter.slice(0, 100))}" is not a field, such as a.b`);
}

function priceOption(call: CommandCall, model: string): Readonly<Record<string, ModelPrice>> {
  const text = textOption(call, 'price');
  if (text === undefined) return {};
  const [, input, output] = /^(\d+(?:\.\d+)?),(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (input === undefined || output === undefined) {
    throw new UsageError(`--price "${visible(text.slice(0, 100))}" is not two numbers, such as 0.4,1.6`);
  }
  return { [model]: { input: Number(input), output: Number(output), cachedInput: Number(input) } };
}

/** @throws UsageError for a file that is not a report, or has none of these tasks */
function earlierOf(call: CommandCall, { tasks, dataset }: Work): EarlierReport | null {
  const file = textOption(call, 'compare');
  if (file === undefined) return null;
  const text = readInput(file);
  try {
    return readReport(text, taskDigests(tasks, dataset));
  } catch (fault) {
    throw new UsageError(`${visible(file)} ${messageOf(fault)}`, { cause: fault });
  }
}

/** @throws Unreachable for an endpoint that does not answer or refuses the first request */
async function usable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (fault) {
    if (!(fault instanceof EngineError) || !fault.code.startsWith('model_')) throw fault;
    const isKey = fault.details['status'] === 401 || fault.details['status'] === 403;
    throw new Unreachable(isKey ? 'unauthorized' : 'unreachable', visible(fault.message), { cause: fault });
  }
}
