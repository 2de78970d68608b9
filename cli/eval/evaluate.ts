/** Runs the cases of a dataset against a system, and reports how they went. */
import type { JsonObject } from '../../src/domain/json.ts';
import { messageOf } from '../../src/domain/errors.ts';
import type { Dataset, EvalCase } from './dataset.ts';
import { score } from './scorers.ts';

/** Runs one message in a new session, and returns the document of its run. */
export type RunCase = (given: {
  readonly agent: string;
  readonly message: string;
  readonly variables: JsonObject;
}) => Promise<JsonObject>;

export interface CaseResult {
  readonly name: string;
  /** Which repetition, 1-based. */
  readonly repetition: number;
  readonly passed: boolean;
  /** One reason for each expectation that does not hold, or why there is no run. */
  readonly reasons: readonly string[];
  readonly response: string;
  readonly session_id: string | null;
  readonly tokens: number;
  /** US dollars; null if the price of the model is unknown. */
  readonly cost: number | null;
  readonly ms: number;
}

export interface EvalReport {
  readonly passed: number;
  readonly failed: number;
  readonly tokens: number;
  readonly cost: number | null;
  readonly results: readonly CaseResult[];
}

export interface EvalOptions {
  /** For cases that name none. */
  readonly agent: string;
  readonly repeat: number;
  readonly concurrency: number;
  readonly now: () => number;
  readonly done: (result: CaseResult) => void;
}

/** @returns the results in the order of the dataset, whatever the order of their ends */
export async function evaluate({ cases }: Dataset, run: RunCase, options: EvalOptions): Promise<EvalReport> {
  const work = cases.flatMap((one) => Array.from({ length: options.repeat }, (_, at) => ({ one, repetition: at + 1 })));
  const results: CaseResult[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < work.length; at = next++) {
      const { one, repetition } = work[at] as (typeof work)[number];
      const result = await resultOf(one, repetition, run, options);
      results[at] = result;
      options.done(result);
    }
  };
  await Promise.all(Array.from({ length: Math.min(options.concurrency, work.length) }, worker));
  const passed = results.filter((result) => result.passed).length;
  const costs = results.flatMap(({ cost }) => (cost === null ? [] : [cost]));
  return {
    passed,
    failed: results.length - passed,
    tokens: results.reduce((sum, { tokens }) => sum + tokens, 0),
    cost: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0),
    results,
  };
}

async function resultOf(
  { name, message, agent, variables = {}, expect }: EvalCase,
  repetition: number,
  run: RunCase,
  { agent: usual, now }: EvalOptions,
): Promise<CaseResult> {
  const began = now();
  const head = { name, repetition };
  try {
    const document = await run({ agent: agent ?? usual, message, variables });
    const { response, status, session_id: session } = document;
    const scored = { response: typeof response === 'string' ? response : '', document };
    const ended = status === 'completed' ? [] : [`the run is ${String(status)}${errorOf(document)}`];
    const reasons = [...ended, ...expect.flatMap((one) => score(one, scored) ?? [])];
    return {
      ...head,
      passed: reasons.length === 0,
      reasons,
      response: scored.response,
      session_id: typeof session === 'string' ? session : null,
      ...spentBy(document),
      ms: now() - began,
    };
  } catch (fault) {
    const nothing = { response: '', session_id: null, tokens: 0, cost: null };
    return { ...head, passed: false, reasons: [messageOf(fault)], ...nothing, ms: now() - began };
  }
}

function errorOf({ error }: JsonObject): string {
  const { code, message } = (error ?? {}) as { readonly code?: string; readonly message?: string };
  return code === undefined ? '' : ` (${code}: ${message ?? ''})`;
}

function spentBy({ usage }: JsonObject): { readonly tokens: number; readonly cost: number | null } {
  const { prompt_tokens: prompt, completion_tokens: completion, cost } = (usage ?? {}) as JsonObject;
  return { tokens: Number(prompt ?? 0) + Number(completion ?? 0), cost: typeof cost === 'number' ? cost : null };
}

/** The report as lines. */
export function reportLines({ passed, failed, tokens, cost, results }: EvalReport): string[] {
  const repeated = results.some(({ repetition }) => repetition > 1);
  const lines = results.map(({ name, repetition, passed: isGood, ms }) => {
    const which = repeated ? `${name} #${repetition}` : name;
    return `${isGood ? '✓' : '✗'} ${which}  ${(ms / 1_000).toFixed(1)} s`;
  });
  const failures = results.flatMap(({ name, reasons, session_id: session }) =>
    reasons.map((reason) => `✗ ${name}: ${reason}${session === null ? '' : ` (${session})`}`),
  );
  const price = cost === null ? '' : `, $${cost.toFixed(4)}`;
  const total = `${passed} of ${passed + failed} passed, ${tokens} tokens${price}`;
  return [...lines, ...(failures.length === 0 ? [] : ['', ...failures]), '', total];
}
