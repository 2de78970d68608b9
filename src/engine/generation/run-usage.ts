/**
 * Usage of the model calls of one run: tokens and costs, summed up and journaled (L6, S12).
 *
 * Owns the totals, and an estimate for the current call. Does not own the budgets, which belong to the scheduler.
 *
 * Invariant: every model call is counted once: as reported by its endpoint, or as an estimate if it is cancelled.
 */
import type { ChatMessage, ModelDelta, Usage } from '../../domain/ports/model.ts';
import { estimateMessages, textBytes, tokensOf } from '../../domain/tokens.ts';
import { costOf } from '../../llm/routing/prices.ts';
import type { RunContext } from '../run/run-context.ts';
import type { ActionLabel, RunLog } from '../run/run-log.ts';

interface Totals {
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  model_calls: number;
  estimated: boolean;
  /** US dollars; absent while no call had a known price. */
  cost?: number;
}

export class RunUsage {
  readonly #context: Pick<RunContext, 'resolved' | 'policy'>;
  readonly #log: RunLog;
  readonly #totals: Totals = {
    prompt_tokens: 0,
    completion_tokens: 0,
    cached_tokens: 0,
    model_calls: 0,
    estimated: false,
  };
  /** The model call whose usage is not recorded yet; `bytes` counts its answer so far, `reported` is what its endpoint said. */
  #open: { readonly messages: readonly ChatMessage[]; bytes: number; reported: Usage | null } | null = null;
  #hasWarned = false;

  constructor(context: Pick<RunContext, 'resolved' | 'policy'>, log: RunLog) {
    this.#context = context;
    this.#log = log;
  }

  get totals(): Readonly<Totals> {
    return { ...this.#totals };
  }

  openCall(messages: readonly ChatMessage[]): void {
    this.#open = { messages, bytes: 0, reported: null };
  }

  received(delta: ModelDelta): void {
    if (this.#open !== null) this.#open.bytes += deltaBytes(delta);
  }

  /** The endpoint has reported the usage of the open call. Not after a cancel, which has already counted it (L6). */
  report(usage: Usage): void {
    if (this.#open !== null) this.#open.reported = usage;
  }

  /** Closes the open call, if its usage was reported. @returns that usage, which must still be counted; else null */
  takeReported(): Usage | null {
    const reported = this.#open?.reported ?? null;
    if (reported !== null) this.#open = null;
    return reported;
  }

  /** The open call has no usage. */
  closeCall(): void {
    this.#open = null;
  }

  /** Closes the open call. @returns its usage, estimated if it was not reported; null if no call is open */
  takeOpenCall(): Usage | null {
    const call = this.#open;
    if (call === null) return null;
    this.#open = null;
    if (call.reported !== null) return call.reported;
    const promptTokens = estimateMessages(call.messages);
    return { promptTokens, completionTokens: tokensOf(call.bytes), cachedTokens: 0, estimated: true };
  }

  /**
   * Journals and sums up the usage of a model call; `cost` is set if the model's price is known (S12).
   *
   * @param by what called the model: an action, or a feed; null: the generation
   */
  record(usage: Usage, by: ActionLabel | 'feed' | null = null): { readonly tokens: number; readonly cost?: number } {
    this.#totals.prompt_tokens += usage.promptTokens;
    this.#totals.completion_tokens += usage.completionTokens;
    this.#totals.cached_tokens += usage.cachedTokens;
    this.#totals.model_calls += 1;
    this.#totals.estimated ||= usage.estimated;
    const cost = costOf(usage, this.#context.resolved.agent.engine.prices);
    if (cost !== null) this.#totals.cost = dollars((this.#totals.cost ?? 0) + cost);
    else this.#warnUnpriced(usage);
    this.#log.append(
      'usage',
      {
        prompt_tokens: usage.promptTokens,
        completion_tokens: usage.completionTokens,
        cached_tokens: usage.cachedTokens,
        ...(usage.estimated ? { estimated: true } : {}),
        ...(usage.model === undefined ? {} : { model: usage.model }),
        ...(cost === null ? {} : { cost: dollars(cost) }),
        ...(by === 'feed' ? { feed: true as const } : {}),
      },
      by === null || by === 'feed' ? {} : { action: by },
    );
    return { tokens: usage.promptTokens + usage.completionTokens, ...(cost === null ? {} : { cost }) };
  }

  /** Warns once if a cost budget does not include a call. */
  #warnUnpriced({ model }: Usage): void {
    if (this.#context.policy.cost == null || this.#hasWarned) return;
    this.#hasWarned = true;
    const which = model === undefined ? 'an unnamed model' : `the model "${model}"`;
    this.#log.warn(
      'unknown_price',
      `The price of ${which} is unknown, so its calls do not count towards the cost budget (add it under cognitive_engine.prices)`,
    );
  }
}

function deltaBytes(delta: ModelDelta): number {
  if (delta.type === 'tool_call') return textBytes(delta.name ?? '') + textBytes(delta.argumentsDelta);
  return delta.type === 'text' || delta.type === 'reasoning' ? textBytes(delta.text) : 0;
}

/** Removes floating-point noise: a billionth is far below any price. */
function dollars(cost: number): number {
  return Math.round(cost * 1e9) / 1e9;
}
