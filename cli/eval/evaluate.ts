/** Runs the cases of a dataset, and scores their runs (O3). */
import { messageOf } from '../../src/domain/errors.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { cutText } from './cut-text.ts';
import type { Dataset, EvalCase, Turn } from './dataset.ts';
import { judge } from './judge.ts';
import type { AskJudge, Judgement } from './judge.ts';
import { endOf } from './outcome.ts';
import type { Outcome } from './outcome.ts';
import { score } from './scorers.ts';

/** Characters of an answer in a report. */
const RESPONSE_CHARS = 4_000;

export interface CaseRequest {
  readonly agent: string;
  readonly message: string;
  readonly variables: JsonObject;
  readonly history: readonly Turn[];
  /** The answer to every request for approval; null: the run is cancelled when it waits. */
  readonly approvals: 'approve' | 'deny' | null;
}

export interface CaseRun {
  /** Of the API: docs/runs.md. */
  readonly document: JsonObject;
  /** The models that answered. */
  readonly models: readonly string[];
}

/** Runs one message in a new session to its end. @throws Error if the run could not be started */
export type RunCase = (request: CaseRequest) => Promise<CaseRun>;

export interface CaseResult {
  readonly name: string;
  /** Which repetition, 1-based. */
  readonly repetition: number;
  readonly outcome: Outcome;
  /** One reason for each expectation that does not hold, or why the run or the judgement is missing. */
  readonly reasons: readonly string[];
  /** The answer, cut at 4,000 characters. */
  readonly response: string;
  readonly session_id: string | null;
  readonly run_id: string | null;
  readonly models: readonly string[];
  /** Of the run, without its judge. */
  readonly tokens: number;
  /** US dollars of the run, without its judge; null if the price of the model is unknown. */
  readonly cost: number | null;
  /** Milliseconds of the run, without its judge. */
  readonly ms: number;
  readonly judgements: readonly Judgement[];
}

export interface EvaluateOptions {
  /** For cases that name none. */
  readonly agent: string;
  readonly repeat: number;
  readonly concurrency: number;
  readonly run: RunCase;
  readonly askJudge: AskJudge;
  /** Unpredictable, for each vote of a judge. */
  readonly newCode: () => string;
  /** Milliseconds of any clock. */
  readonly now: () => number;
  readonly done: (result: CaseResult) => void;
  /** No run starts after it is aborted, and runs that it cancels have no result. Default: never. */
  readonly signal?: AbortSignal;
}

/** @returns the results in the order of the dataset, whatever the order of their ends; fewer if the signal is aborted */
export async function evaluate({ cases }: Dataset, options: EvaluateOptions): Promise<CaseResult[]> {
  const work = cases.flatMap((one) => Array.from({ length: options.repeat }, (_, at) => ({ one, repetition: at + 1 })));
  const results: CaseResult[] = [];
  const isStopped = (): boolean => options.signal?.aborted === true;
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < work.length && !isStopped(); at = next++) {
      const { one, repetition } = work[at] as (typeof work)[number];
      const result = await resultOf(one, repetition, options);
      // It was cancelled: this is not an error of the system.
      if (isStopped() && result.outcome === 'error') return;
      results[at] = result;
      options.done(result);
    }
  };
  await Promise.all(Array.from({ length: Math.min(options.concurrency, work.length) }, worker));
  // Without the gaps of runs that were not made.
  return results.filter(() => true);
}

async function resultOf(one: EvalCase, repetition: number, options: EvaluateOptions): Promise<CaseResult> {
  const { name, answer, message, agent = options.agent, variables = {}, history = [], approvals = null } = one;
  const head = { name, repetition };
  const began = options.now();
  let run: CaseRun;
  try {
    run =
      answer === undefined
        ? await options.run({ agent, message, variables, history, approvals })
        : { document: { status: 'completed', response: answer, actions: [] }, models: [] };
  } catch (fault) {
    const nothing = { response: '', session_id: null, run_id: null, models: [], tokens: 0, cost: null, judgements: [] };
    return { ...head, outcome: 'error', reasons: [messageOf(fault)], ...nothing, ms: options.now() - began };
  }
  const ms = options.now() - began;
  const { document, models } = run;
  const scored = await scoreRun(one, document, options).catch((fault: unknown): Scored => {
    const reasons = [`the run could not be scored: ${messageOf(fault)}`];
    return { outcome: 'error', reasons, judgements: [] };
  });
  return {
    ...head,
    ...scored,
    response: cutText(answerOf(document), RESPONSE_CHARS),
    session_id: textOrNull(document['session_id']),
    run_id: textOrNull(document['run_id']),
    models,
    ...spentBy(document),
    ms,
  };
}

type Scored = Pick<CaseResult, 'outcome' | 'reasons' | 'judgements'>;

/** The judge is asked only if everything else holds. */
async function scoreRun(
  { history = [], message, expect }: EvalCase,
  document: JsonObject,
  { askJudge, newCode }: EvaluateOptions,
): Promise<Scored> {
  const end = endOf(document);
  if (end.outcome === 'error') return { outcome: 'error', reasons: [end.reason ?? ''], judgements: [] };
  const answer = answerOf(document);
  const plain = expect.filter((one) => one.judge === undefined);
  const issues = plain.flatMap((one) => score(one, { response: answer, document }) ?? []);
  const reasons = end.reason === null ? issues : [end.reason, ...issues];
  if (reasons.length > 0) return { outcome: 'failed', reasons, judgements: [] };
  const judgements: Judgement[] = [];
  for (const { judge: criteria } of expect) {
    if (criteria !== undefined) judgements.push(await judge(criteria, { history, message, answer }, askJudge, newCode));
  }
  const outcomes = new Set(judgements.map(({ outcome }) => outcome));
  const outcome = outcomes.has('failed') ? 'failed' : outcomes.has('error') ? 'error' : 'passed';
  return { outcome, reasons: judgements.flatMap(({ reason }) => reason ?? []), judgements };
}

function answerOf({ response }: JsonObject): string {
  return typeof response === 'string' ? response : '';
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Tokens and cost of a run. */
export function spentBy({ usage }: JsonObject): { readonly tokens: number; readonly cost: number | null } {
  const { prompt_tokens: prompt, completion_tokens: completion, cost } = (usage ?? {}) as JsonObject;
  return { tokens: Number(prompt ?? 0) + Number(completion ?? 0), cost: typeof cost === 'number' ? cost : null };
}
