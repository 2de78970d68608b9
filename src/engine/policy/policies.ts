/**
 * Prepares the calls of the actions of one run, and lets the policies decide about them (C9).
 *
 * Owns the judgements that are pending. Does not own the decision to judge, or the end of an action.
 *
 * Invariants:
 *  1. The names of a judged action keep their meaning from here on: what was judged is what a person is asked about and
 *     what is executed, also by retries and after a crash.
 *  2. The judgement is recorded in the turn in which it counts, and its event has the values that the names had, and the
 *     parameters that a code tool's schema has given. After a crash, an action without a recorded judgement is prepared and
 *     judged again: nothing of it has happened.
 *  3. What cannot be judged is denied.
 *  4. Parameters are completed, checked and parsed before they are judged, and not afterwards.
 */
import type { ActionDeclaration, ActionKey } from '../../domain/action.ts';
import { messageOf } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { PolicyVerdict } from '../../domain/policy.ts';
import { callsBefore, usedBy } from '../../scheduler/step.ts';
import type { SchedulerInput } from '../../scheduler/types.ts';
import type { ActionScope } from '../actions/action-scope.ts';
import { policyOf } from '../actions/action-policy.ts';
import { codeToolOf } from '../actions/calls.ts';
import { executedParameters, isSame } from '../actions/shown-parameters.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import type { RunInput } from '../run/run-input.ts';
import { judgeCall, policyDenied } from './judge.ts';
import { prepareCall } from './prepare-call.ts';
import { subjectOf } from './subject.ts';
import type { PolicyMoment } from './subject.ts';

type Judged = Extract<RunInput, { type: 'policy_judged' }>;
type Decided = Extract<SchedulerInput, { type: 'policy_judged' }>;

export class Policies {
  readonly #scope: ActionScope;
  /** Actions that are being judged. */
  readonly #pending = new Map<ActionKey, AbortController>();
  /** Verdicts that ask, until the request is written. */
  readonly #asking = new Map<ActionKey, PolicyVerdict>();

  constructor(scope: ActionScope) {
    this.#scope = scope;
  }

  /**
   * Judges an action; the answer arrives in the input queue.
   *
   * @returns the answer in a replay of a record in which the action went on without a judgement: there were no policies then
   */
  start(key: ActionKey): Omit<Decided, 'at'> | null {
    const { log, names, replay, actions } = this.#scope;
    names.pin(key);
    if (log.replaying && replay?.isJudged(key) === false && replay.hasGoneOn(key)) {
      return { type: 'policy_judged', key, result: this.#resultOf(actions.declaration(key), null) };
    }
    this.#pending.set(key, new AbortController());
    if (!log.replaying) this.#judge(key);
    return null;
  }

  /** After a crash: judges the actions that have no recorded judgement. */
  resume(): void {
    for (const key of this.#pending.keys()) this.#judge(key, this.#scope.context.isSameHost !== true);
  }

  /** @param isRecovered its host has ended: the schema of its tool may be the cause */
  #judge(key: ActionKey, isRecovered = false): void {
    const { context, names, inputQueue } = this.#scope;
    const { signal } = this.#pending.get(key) ?? new AbortController();
    const asked = names.resolve(key);
    const about = { resolved: context.resolved, record: context.record, moment: this.#moment(key) };
    this.#answer(key, { asked, about, isRecovered, signal })
      .catch((fault: unknown): Judged => unprepared(key, fault))
      .then((input) => (signal.aborted ? undefined : inputQueue.put(input)));
  }

  async #answer(
    key: ActionKey,
    {
      asked,
      about,
      isRecovered,
      signal,
    }: {
      readonly asked: ResolvedCall;
      readonly about: Parameters<typeof subjectOf>[2];
      readonly isRecovered: boolean;
      readonly signal: AbortSignal;
    },
  ): Promise<Judged> {
    const { context, actions, names } = this.#scope;
    const { policies = [], pacer, redact, codeTools } = context;
    const action = actions.declaration(key);
    const codeTool = codeToolOf(action, context.resolved);
    if (isRecovered && codeTool !== null) await codeTools?.lost(codeTool.name).catch(() => undefined);
    const prepared = await prepareCall(action, asked, context, signal);
    if ('error' in prepared) return { type: 'policy_judged', key, result: prepared, verdict: null };
    const { call } = prepared;
    const found = shown(await judgeCall(policies, subjectOf(action, call, about), pacer, signal), redact);
    const isChanged = codeTool !== null && !isSame(asked.parameters, call.parameters);
    // The values that its names had, and those that cannot be computed again, are stored with an event.
    const verdict = found ?? (isChanged || names.hasOutside(key) ? UNRULED : null);
    return {
      type: 'policy_judged',
      key,
      result: this.#resultOf(action, verdict),
      verdict,
      ...(isChanged ? { call: { parameters: call.parameters, inputs: call.inputs } } : {}),
      ...(verdict === null ? {} : { shown: executedParameters(action, call, redact) }),
    };
  }

  /** An approval that the manifest demands stays, whatever the policies say. */
  #resultOf(action: ActionDeclaration, verdict: PolicyVerdict | null): Judged['result'] {
    if (verdict?.decision === 'deny') return { error: policyDenied(action.id, verdict) };
    const { resolved, learned } = this.#scope.context;
    return verdict?.decision === 'ask' || policyOf(action, resolved, learned).needsApproval ? 'ask' : 'start';
  }

  /**
   * Why a request of the action must not be redirected to a URL; null if it may be: the call with this URL as its parameter
   * `url` is judged. A person who is asked about a call is not asked again about its redirects.
   */
  async redirectRefusal(key: ActionKey, call: ResolvedCall, url: string, signal: AbortSignal): Promise<string | null> {
    const { context, actions } = this.#scope;
    const { policies = [], pacer, resolved, record } = context;
    if (policies.length === 0 || typeof call.parameters['url'] !== 'string') return null;
    const moved = { ...call, parameters: { ...call.parameters, url } };
    const about = { resolved, record, moment: this.#moment(key) };
    const subject = subjectOf(actions.declaration(key), moved, about);
    const verdict = await judgeCall(policies, subject, pacer, signal);
    if (verdict === null || verdict.decision === 'allow') return null;
    return `a policy ${verdict.decision === 'deny' ? 'denies it' : 'wants a person to be asked'} (${verdict.source}, rule ${verdict.rule})`;
  }

  #moment(key: ActionKey): PolicyMoment {
    const { context, log, state } = this.#scope;
    const now = context.clock.now();
    const { modelCalls, ...used } = usedBy(state(), now);
    return {
      run: { iteration: log.iteration, calls: callsBefore(state(), key), model_calls: modelCalls, ...used },
      sessionCost: context.journal.runs.costWithout(context.runNumber) + used.cost,
      now,
    };
  }

  /** The judgement counts: records it. @returns the scheduler's input; null if the action has ended since */
  judged({ key, result, verdict, call, shown: parameters = {} }: Judged): Omit<Decided, 'at'> | null {
    if (!this.#pending.delete(key)) return null;
    const { context, log, actions, names, calls } = this.#scope;
    log.record({ type: 'policy_judged', at: context.clock.now(), key, result, verdict });
    let recordedAt: number | null = null;
    if (verdict !== null) {
      const { message, ...rule } = verdict;
      const said = message === null ? {} : { message };
      const state = log.replaying ? {} : { ...names.record(key), ...(call === undefined ? {} : { call }) };
      const seq = actions.append('policy_applied', key, { ...rule, ...said, ...parameters }, state);
      recordedAt = seq;
      if (!log.wasRecorded(seq)) names.recorded(key, seq);
      if (verdict.decision === 'ask') this.#asking.set(key, verdict);
    }
    calls.judged(key, recordedAt);
    return { type: 'policy_judged', key, result };
  }

  /** Why a policy asks a person about the action; null if none does. */
  reasonOf(key: ActionKey): string | null {
    return this.#asking.get(key)?.message ?? null;
  }

  /** The action has settled. */
  forget(key: ActionKey): void {
    this.#pending.get(key)?.abort(new DOMException('the action has ended', 'AbortError'));
    this.#pending.delete(key);
    this.#asking.delete(key);
  }

  abortAll(): void {
    for (const key of this.#pending.keys()) this.forget(key);
  }
}

/** No rule applies. */
const UNRULED: PolicyVerdict = { decision: 'allow', source: 'runtime', rule: 0, message: null };

/** The verdict as readers and the model see it: without secrets, of limited length. */
function shown(verdict: PolicyVerdict | null, redact: (text: string) => string): PolicyVerdict | null {
  if (verdict?.message == null) return verdict;
  return { ...verdict, message: redact(verdict.message).slice(0, limits.policyMessageChars).toWellFormed() };
}

/** The call could not be prepared, for a reason that neither the model nor the tool has given. */
function unprepared(key: ActionKey, fault: unknown): Judged {
  const error = { code: 'executor_fault', message: messageOf(fault), retryable: false };
  return { type: 'policy_judged', key, result: { error }, verdict: null };
}
