/** Chooses which of an agent's models answers, with fallbacks (L1, L2). */
import { EngineError } from '../../domain/errors.ts';
import type { RoutingPolicy } from '../../domain/manifests/model.ts';
import type { ModelDelta, ModelProvider, ModelRequest } from '../../domain/ports/model.ts';
import { estimateMessages } from '../../domain/tokens.ts';

/** One of an agent's models, in the manifest's order. */
export interface Candidate {
  readonly provider: ModelProvider;
  /** Null means the deployment's model. */
  readonly model: string | null;
  /** Name in messages, such as `gpt-4.1-mini at api.openai.com`. */
  readonly label: string;
  /** Whether its endpoint accepts calls now. */
  readonly available: () => boolean;
  /** Measured milliseconds to the first token; null without a recent measurement. */
  readonly latencyMs: () => number | null;
  /** Cost in US dollars of a call of this size; null if unknown. */
  readonly cost: (promptTokens: number, completionTokens: number) => number | null;
}

/** Assumed answer length when models are compared by cost: most actions and answers are short. */
const EXPECTED_COMPLETION_TOKENS = 500;

/**
 * Streams from the first candidate of the policy. If it throws before its first text, reasoning or tool call, tries the
 * next one. Later errors are thrown, because another model cannot continue half an answer. A `notice` reports every
 * fallback.
 *
 * A request that names a model goes to the candidate with that model, else to the first candidate under that name;
 * fallbacks use their own models.
 */
export function createRouter(candidates: readonly Candidate[], policy: RoutingPolicy): ModelProvider {
  const [primary] = candidates;
  if (primary === undefined) throw new EngineError('internal', 'A router needs at least one model');
  return {
    name: primary.provider.name,
    stream(request: ModelRequest): AsyncIterable<ModelDelta> {
      const attempts = order(candidates, policy, request);
      const [only] = attempts;
      // Without a second model, another stage would only cost time for each delta.
      if (attempts.length > 1 || only === undefined) return firstOf(attempts, request);
      return only.candidate.provider.stream({ ...request, model: only.model });
    },
  };
}

/** Tries the models in this order. */
async function* firstOf(attempts: readonly RouterAttempt[], request: ModelRequest): AsyncGenerator<ModelDelta> {
  const failures: { readonly label: string; readonly fault: EngineError }[] = [];
  for (const { candidate, model } of attempts) {
    const last = failures.at(-1);
    if (last !== undefined) {
      const message = `${last.label} did not answer (${last.fault.code}); ${candidate.label} answers instead`;
      yield { type: 'notice', code: 'model_fallback', message };
    }
    let begun = false;
    try {
      for await (const delta of candidate.provider.stream({ ...request, model })) {
        begun ||= delta.type !== 'usage' && delta.type !== 'finish';
        yield delta;
      }
      return;
    } catch (fault) {
      if (begun || request.signal.aborted || !(fault instanceof EngineError)) throw fault;
      failures.push({ label: candidate.label, fault });
    }
  }
  throw summed(failures);
}

interface RouterAttempt {
  readonly candidate: Candidate;
  readonly model: string | null;
}

/** The order in which models are tried; currently unavailable ones come last. */
function order(candidates: readonly Candidate[], policy: RoutingPolicy, request: ModelRequest): RouterAttempt[] {
  const ranked = rank(candidates, policy, request);
  const wanted = request.model;
  const attempts = ranked.map((candidate): RouterAttempt => ({ candidate, model: candidate.model }));
  if (wanted !== null) {
    const own = candidates.find(({ model }) => model === wanted) ?? candidates[0];
    if (own !== undefined) {
      const others = attempts.filter(({ candidate, model }) => candidate !== own || model !== wanted);
      attempts.splice(0, attempts.length, { candidate: own, model: wanted }, ...others);
    }
  }
  const open = attempts.filter(({ candidate }) => candidate.available());
  return [...open, ...attempts.filter((attempt) => !open.includes(attempt))];
}

function rank(candidates: readonly Candidate[], policy: RoutingPolicy, request: ModelRequest): Candidate[] {
  switch (policy) {
    case 'failover':
      return [...candidates];
    case 'least_latency':
      // A model without a measurement goes first, to get one.
      return byLeast(candidates, (candidate) => candidate.latencyMs() ?? -1);
    case 'lowest_cost': {
      const prompt = estimateMessages(request.messages);
      const completion = request.maxTokens ?? EXPECTED_COMPLETION_TOKENS;
      return byLeast(candidates, (candidate) => candidate.cost(prompt, completion) ?? Infinity);
    }
  }
}

/** Stable: ties keep the manifest's order. */
function byLeast(candidates: readonly Candidate[], measure: (candidate: Candidate) => number): Candidate[] {
  const measured = candidates.map((candidate) => ({ candidate, value: measure(candidate) }));
  return measured.toSorted((a, b) => compare(a.value, b.value)).map(({ candidate }) => candidate);
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

/** The error of the first model, with the messages of the others. */
function summed(failures: readonly { readonly label: string; readonly fault: EngineError }[]): EngineError {
  const [first, ...others] = failures;
  if (first === undefined) return new EngineError('internal', 'No model was called');
  if (others.length === 0) return first.fault;
  const message = [first.fault.message, ...others.map(({ label, fault }) => `${label}: ${fault.message}`)].join('; ');
  return new EngineError(first.fault.code, message, first.fault.details, first.fault);
}
