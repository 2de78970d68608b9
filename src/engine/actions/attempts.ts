/**
 * Runs the attempts that the scheduler starts, and reports each outcome.
 *
 * Owns running attempts and their abort signals. Does not own the decision to start, repeat or abandon an attempt.
 *
 * Invariants:
 *  1. An attempt's executor starts only after `action_started` is durable. If it may run twice, it starts after the
 *     event is written, so that its result is ready when the event becomes durable (J1, J3). A call that only its record
 *     has never starts earlier.
 *  2. Every started attempt reports one outcome. One that ignores its abort reports late, and the scheduler ignores the
 *     report (S7, S8).
 *  3. All attempts of an action execute the same call: the final one, which was judged (C9) or approved (J8), else the one
 *     resolved at the lookup (P6) or the first attempt (P12, S7).
 *  4. After a crash nothing runs again before the executor was asked for the attempt's outcome (J2).
 */
import type { ActionDeclaration, ActionKey, ActionOutcome } from '../../domain/action.ts';
import { messageOf } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { isCapability } from '../../domain/action-types.ts';
import { limitsTurns } from '../../domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ActionWorkspace, VariableStore } from '../../domain/ports/session-stores.ts';
import type { ActionCall, ActionContext, LoadableSkills, UserMemory } from '../../executors/executor.ts';
import { statusOf } from '../../scheduler/step.ts';
import type { SchedulerCommand, SchedulerInput } from '../../scheduler/types.ts';
import { headerOf } from '../../telemetry/run-trace.ts';
import { feedIssue } from '../feeds/feed-sources.ts';
import { feedStore } from '../feeds/feed-store.ts';
import { callModel } from '../generation/call-model.ts';
import type { RunContext } from '../run/run-context.ts';
import type { RunInput } from '../run/run-input.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import type { RunLog } from '../run/run-log.ts';
import { iterationOf } from '../run/run-names.ts';
import { policyOf, relicOf, scopeIn, toolOf } from './action-policy.ts';
import type { ActionScope } from './action-scope.ts';
import type { Policies } from '../policy/policies.ts';
import type { Approvals } from './approvals.ts';
import { admitCall } from './call-check.ts';
import { codeToolOf } from './calls.ts';
import type { Lookups } from './lookups.ts';
import { describableTools } from './describable-tools.ts';
import { userMemory } from './user-memory.ts';
import { executedParameters } from './shown-parameters.ts';
import { ShownProgress } from './shown-progress.ts';

type Start = Extract<SchedulerCommand, { type: 'start' }>;
type AttemptEnded = Extract<RunInput, { type: 'attempt_ended' }>;

/** How an attempt gets its outcome: `execute` runs it; `known` asks for the outcome of an earlier host's attempt. */
type Procedure = (
  execute: () => Promise<ActionOutcome>,
  known: (() => Promise<ActionOutcome | null>) | null,
) => Promise<ActionOutcome>;

export class Attempts {
  readonly #scope: ActionScope;
  readonly #approvals: Approvals;
  readonly #lookups: Lookups;
  readonly #policies: Pick<Policies, 'redirectRefusal'>;
  readonly #variables: VariableStore;
  readonly #shown: ShownProgress;
  #isNoticed = false;
  readonly #running = new Map<ActionKey, { readonly attempt: number; readonly abort: AbortController }>();
  /** Attempts in a replayed record without a recorded end. */
  readonly #interrupted = new Map<ActionKey, Start>();

  constructor(
    scope: ActionScope,
    {
      approvals,
      lookups,
      policies,
    }: { approvals: Approvals; lookups: Lookups; policies: Pick<Policies, 'redirectRefusal'> },
  ) {
    this.#scope = scope;
    this.#approvals = approvals;
    this.#lookups = lookups;
    this.#policies = policies;
    this.#shown = new ShownProgress(scope.context.outgoingText ?? null);
    this.#variables = journaledVariables(scope.context.variables, scope.log);
  }

  start(start: Start): void {
    const { key, attempt } = start;
    const { isRecorded, resolved } = this.announce(key, attempt);
    this.#approvals.questions.delivered(key);
    // The crash interrupted it, unless a later record contains its end.
    if (isRecorded) this.#interrupted.set(key, start);
    else this.#run(start, resolved ?? this.#scope.calls.final(key), (execute) => execute());
  }

  /**
   * Writes the start of an attempt, with what its names mean.
   *
   * @returns whether it was durable before a crash, and the call if it was resolved now
   */
  announce(key: ActionKey, attempt: number): { readonly isRecorded: boolean; readonly resolved: ResolvedCall | null } {
    const { context, log, results, replay, actions, names, calls } = this.#scope;
    results.started(key, context.clock.now());
    const isRecorded = log.replaying && replay?.startedAt(key) != null;
    if (isRecorded) names.pin(key);
    const first = attempt > 1 || isRecorded ? null : calls.final(key);
    // The names of an approved call have no meaning any more.
    const call = calls.requestOf(key) === undefined ? first : null;
    const shown = first === null ? {} : executedParameters(actions.declaration(key), first, context.redact);
    const seq = actions.append('action_started', key, { attempt, ...shown }, call === null ? {} : names.record(key));
    if (call !== null) {
      names.recorded(key, seq);
      if (!this.#lookups.has(key)) actions.warn(key, call);
    }
    return { isRecorded: log.wasRecorded(seq), resolved: first };
  }

  /** Recovers the attempts that a crash interrupted (J2). */
  resume(): void {
    for (const start of this.#interrupted.values()) {
      const procedure: Procedure = (execute, known) => this.#recoverAttempt(start, execute, known);
      this.#run(start, this.#scope.calls.final(start.key), procedure, true);
    }
    this.#interrupted.clear();
  }

  /**
   * The outcome of an attempt that was running when the host was lost: what its executor reports. Otherwise an action
   * that may run twice runs again, and the outcome of any other action is unknown (J2, J3).
   */
  async #recoverAttempt(
    { key }: Start,
    execute: () => Promise<ActionOutcome>,
    known: (() => Promise<ActionOutcome | null>) | null,
  ): Promise<ActionOutcome> {
    const { context, actions } = this.#scope;
    const action = actions.declaration(key);
    const mayRepeat = policyOf(action, context.resolved, context.learned).effects !== 'unsafe';
    try {
      const found = await known?.();
      if (found != null && (found.ok || found.error.code !== 'lost' || !mayRepeat)) return found;
    } catch (fault) {
      if (!mayRepeat) return unknownOutcome(action, messageOf(fault), context);
    }
    return mayRepeat ? await execute() : unknownOutcome(action, null, context);
  }

  /** Runs an attempt once this turn is durable. */
  #run(
    { key, attempt, timeoutMs, budget }: Start,
    resolved: ResolvedCall,
    procedure: Procedure,
    isRecovered = false,
  ): void {
    const { context, log, inputQueue, actions, calls } = this.#scope;
    const action = actions.declaration(key);
    const isPrepared = calls.isPrepared(key);
    const { parameters, inputs } = resolved;
    const tool = toolOf(action, context.resolved);
    const abort = new AbortController();
    this.#running.set(key, { attempt, abort });
    const executor = context.executors[action.type];
    const answer = this.#approvals.questions.answerOf(key);
    const call: ActionCall = {
      action,
      runtimeKey: `${context.sessionKey}/${context.runNumber}/${key}`,
      attempt,
      parameters,
      ...(isPrepared && codeToolOf(action, context.resolved) !== null ? { parsed: true as const } : {}),
      inputs,
      tool,
      relic: relicOf(action, context.resolved),
      timeoutMs,
      budget,
      ...this.#traceOf(key, attempt),
      ...(answer === undefined ? {} : { answer }),
    };
    const memory = userMemory(this.#scope, key, isRecovered || attempt > 1);
    const actionContext = this.#contextOf(key, attempt, { signal: abort.signal, memory, call: resolved });
    const execute = async (): Promise<ActionOutcome> => {
      // Cancelled in the turn that started it: it has not begun (J5).
      if (abort.signal.aborted) {
        const message = `stopped before it began: ${messageOf(abort.signal.reason)}`;
        return { ok: false, error: { code: 'aborted', message, retryable: false } };
      }
      const error = await admitCall(action, resolved, context, abort.signal, isPrepared);
      return error === null ? await executor.execute(call, actionContext) : { ok: false, error };
    };
    const { recover } = executor;
    const known = recover === undefined ? null : (): Promise<ActionOutcome | null> => recover(call, actionContext);
    const run = (): void => {
      procedure(execute, known)
        .catch((fault: unknown): ActionOutcome => ({
          ok: false,
          error: { code: 'executor_fault', message: messageOf(fault), retryable: false },
        }))
        .then((outcome) => inputQueue.put({ type: 'attempt_ended', key, attempt, outcome }));
    };
    // A call that would be another one after a crash is durable before it runs.
    if (tool === null || tool.effects === 'unsafe' || calls.isOnlyRecorded(key)) log.afterSync(run);
    else log.afterWrite(run);
  }

  #traceOf(key: ActionKey, attempt: number): Pick<ActionCall, 'trace'> {
    const { context, actions } = this.#scope;
    const actionId = actions.declaration(key).id;
    return headerOf(context.trace?.attempt({ iteration: iterationOf(key), actionId, attempt }));
  }

  #contextOf(
    key: ActionKey,
    attempt: number,
    given: { readonly signal: AbortSignal; readonly memory: UserMemory | null; readonly call: ResolvedCall },
  ): ActionContext {
    const { context, inputQueue } = this.#scope;
    const { signal, memory, call } = given;
    const { resolved } = context;
    return {
      signal,
      clock: context.clock,
      pacer: context.pacer,
      session: context.sessionKey,
      owner: context.owner ?? null,
      progress: (data) => inputQueue.put({ type: 'progress', key, attempt, data }),
      variables: this.#variables,
      runner: context.runner,
      edgeRelics: context.edgeRelics ?? null,
      codeTools: context.codeTools ?? null,
      mcp: context.mcp ?? null,
      workspace: this.#workspaceOf(key, attempt, signal),
      isSameHost: context.isSameHost === true,
      skills: loadableSkills(resolved, key, this.#scope),
      tools: describableTools(resolved),
      memory,
      withoutFacts: resolved.withoutFacts ?? null,
      recalls: limitsTurns(resolved.agent.memory),
      children: context.children,
      scopeOf: (type, name) => scopeIn(resolved, type, name),
      fetch: this.#fetchOf(key, call, signal),
      readHtml: context.readHtml,
      internalActions: resolved.agent.internalActions,
      runnerNeeds: resolved.agent.runner ?? {},
      feeds: feedStore({
        feeds: context.feeds,
        resolved,
        issueOf: (feed) => feedIssue(feed, resolved, context.pacer, signal),
        fetchFirst: (feed) => context.feeds.fetchNow([feed], this.#scope.fetchFeed, limits.feedReferenceMs, signal),
      }),
      callModel: (request) => {
        this.#noticeModel();
        return callModel(context, { ...request, ...this.#traceOf(key, attempt) }, signal, (usage) =>
          inputQueue.put({ type: 'usage', usage, of: { action: key } }),
        );
      },
    };
  }

  /** The policies also decide about redirects (C9). */
  #fetchOf(key: ActionKey, call: ResolvedCall, signal: AbortSignal): ActionContext['fetch'] {
    const { fetch, policies = [] } = this.#scope.context;
    if (policies.length === 0) return fetch;
    const redirectRefusal = async (url: string): Promise<string | null> =>
      await this.#policies.redirectRefusal(key, call, url, signal);
    // Only a request to the URL in the parameters: of another one, policies know nothing.
    const { url: given } = call.parameters;
    return async (url, init) => await fetch(url, url === given ? { ...init, redirectRefusal } : init);
  }

  /** Null for the code of an agent that has opted out (C7). */
  #workspaceOf(key: ActionKey, attempt: number, signal: AbortSignal): ActionWorkspace | null {
    const { context, log, actions } = this.#scope;
    const { type } = actions.declaration(key);
    if (context.workspace == null || (isCapability(type) && context.resolved.agent.workspace === false)) return null;
    return context.workspace.ofAttempt({
      key: `${context.runNumber}/${key}/${attempt}`,
      run: context.runNumber,
      signal,
      atomically: (body) => log.atomically(body),
      append: (data) => actions.append('file_changed', key, data),
      warn: (code, message) => actions.append('warning', key, { code, message }),
    });
  }

  /** Once per run; a run with generations of a model has said it at its start. */
  #noticeModel(): void {
    const { notice } = this.#scope.context.model;
    if (notice === undefined || this.#isNoticed || this.#scope.context.source.type === 'model') return;
    this.#isNoticed = true;
    this.#scope.log.warn('model_not_configured', notice);
  }

  /**
   * Stages the output of an attempt until its action settles.
   *
   * @returns the outcome that counts and is recorded: that of the attempt, or why its output cannot be stored
   */
  stage(input: AttemptEnded): AttemptEnded {
    const { log, results, state } = this.#scope;
    const { key, outcome } = input;
    if (!outcome.ok || statusOf(state(), key) !== 'running') return input;
    const error = results.stageOutput(key, outcome.output, log.replaying);
    if (error === null) return input;
    const spent = outcome.spent === undefined ? {} : { spent: outcome.spent };
    return { ...input, outcome: { ok: false, error, ...spent } };
  }

  /** The scheduler's input for an attempt's outcome, whose output is staged. */
  ended(
    { key, attempt, outcome }: AttemptEnded,
    at: number,
    random: number,
  ): Extract<SchedulerInput, { type: 'attempt_succeeded' | 'attempt_failed' }> {
    const isRunning = this.#running.get(key)?.attempt === attempt;
    if (isRunning) {
      this.#running.delete(key);
      this.#endProgress(key);
    }
    if (this.#interrupted.get(key)?.attempt === attempt) this.#interrupted.delete(key);
    const spent = outcome.spent === undefined ? {} : { spent: outcome.spent };
    if (outcome.ok) return { type: 'attempt_succeeded', at, key, attempt, ...spent };
    const { error, question } = outcome;
    if (question === undefined) return { type: 'attempt_failed', at, key, attempt, error, random, ...spent };
    if (isRunning) this.#approvals.questions.raise(key, question);
    return { type: 'attempt_failed', at, key, attempt, error, random, ...spent, question: true };
  }

  /** Live output of a running attempt; output of earlier attempts is dropped. */
  progress({ key, attempt, data }: Extract<RunInput, { type: 'progress' }>): void {
    const { log, actions } = this.#scope;
    if (this.#running.get(key)?.attempt !== attempt) return;
    this.#shown.take(key, data, (shown) => log.live('progress', shown, actions.declaration(key)));
  }

  /** The attempt reports nothing more: what waits of its output is sent. */
  #endProgress(key: ActionKey): void {
    const { log, actions } = this.#scope;
    this.#shown.end(key, (shown) => log.live('progress', shown, actions.declaration(key)));
  }

  abort(key: ActionKey, attempt: number, reason: string): void {
    if (this.#interrupted.get(key)?.attempt === attempt) this.#interrupted.delete(key);
    const running = this.#running.get(key);
    if (running?.attempt !== attempt) return;
    this.#running.delete(key);
    this.#endProgress(key);
    running.abort.abort(new DOMException(reason, 'AbortError'));
  }

  abortAll(): void {
    for (const { abort } of this.#running.values()) abort.abort(new DOMException('the run ended', 'AbortError'));
    this.#running.clear();
  }

  /** The action has settled. */
  forget(key: ActionKey): void {
    this.#running.delete(key);
    this.#interrupted.delete(key);
  }
}

/** The session's variables for internal actions: every change is recorded as an event, together with it (C4). */
function journaledVariables(variables: VariableStore, log: RunLog): VariableStore {
  return {
    get: (key) => variables.get(key),
    entries: () => variables.entries(),
    set: (key, value) =>
      log.atomically(() => {
        log.append('variable_changed', { key, value });
        variables.set(key, value);
      }),
    delete: (key) =>
      log.atomically(() => {
        if (variables.get(key) !== undefined) log.append('variable_changed', { key, deleted: true });
        return variables.delete(key);
      }),
  };
}

/** The skills of the agent; that the model has been given one is recorded as an event of the action (C8). */
function loadableSkills({ skills }: ResolvedAgent, key: ActionKey, { actions }: ActionScope): LoadableSkills | null {
  if (skills === undefined) return null;
  return { known: skills, loaded: (name, files) => void actions.append('skill_loaded', key, { name, files }) };
}

function unknownOutcome(
  action: ActionDeclaration,
  why: string | null,
  { isSameHost }: Pick<RunContext, 'isSameHost'>,
): ActionOutcome {
  const because = why === null ? '' : ` (${why})`;
  const when = isSameHost === true ? 'its run was interrupted' : 'its host was restarted';
  const message = `Action "${action.id}" was running when ${when}, and its outcome is unknown${because}. It may have taken effect: check before repeating it`;
  return { ok: false, error: { code: 'outcome_unknown', message, retryable: false } };
}
