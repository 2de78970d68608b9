/**
 * The hands of a run: does to actions what the scheduler decided, and reports what came of it.
 *
 * Owns running attempts, their abort signals and timers. Does not own any decision: no attempt starts, is repeated
 * or is given up here of its own accord. What names stand for is `RunNames`', what people are asked `Approvals`'.
 *
 * Invariants:
 *  1. An attempt's executor starts only after `action_started` is on disk; where it may run twice, after it is
 *     written, so that it is ready when the disk is (J1, J3).
 *  2. Every attempt that was started reports one outcome; one that ignores its abort reports late
 *     and the scheduler ignores it (S7, S8).
 *  3. Parameters are resolved once, from what the names were bound to (P12): what was looked up (P6) or approved
 *     (J8) is what runs, and what every further attempt runs (S7).
 *  4. An attempt that a crash left at work is asked after before anything runs a second time (J2).
 */
import type {
  ActionDeclaration,
  ActionError,
  ActionKey,
  ActionOutcome,
  ActionRejection,
  ActionPolicy,
  ActionType,
} from '../../domain/action.ts';
import { EngineError, messageOf } from '../../domain/errors.ts';
import type { JournaledEventType, SessionEvent } from '../../domain/event.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RelicDefinition, ResolvedAgent, ToolDefinition } from '../../domain/manifest.ts';
import type { PrewarmHint, VariableStore } from '../../domain/ports.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import { WorkMeter } from '../../domain/work.ts';
import type { ActionContext } from '../../executors/executor.ts';
import { validateParameters } from '../../executors/validate-parameters.ts';
import { conditionNames, evaluateCondition } from '../../protocol/references/condition.ts';
import type { ConditionResult } from '../../protocol/references/condition.ts';
import { bindings, action as declarationOf, isFireAndForget, statusOf } from '../../scheduler/step.ts';
import type { RunState } from '../../scheduler/step.ts';
import type { SchedulerCommand, SchedulerInput, Settlement, TimerId } from '../../scheduler/types.ts';
import { Approvals } from './approvals.ts';
import { callModel } from '../generation/call-model.ts';
import { Deadlines } from './deadlines.ts';
import type { Recalled } from './outcome-cache.ts';
import { feedRefusal } from '../feeds/feed-sources.ts';
import type { Inbox, RunInput } from '../run/inbox.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import type { OutcomeReader } from '../run/outcome-reader.ts';
import type { NameValue, Results } from '../run/results.ts';
import type { Replay } from '../replay/replay.ts';
import type { RunContext } from '../run/run-context.ts';
import type { ActionLabel, RunLog } from '../run/run-log.ts';
import { iterationOf, ordinalOf, RunNames } from '../run/run-names.ts';
import { actionInFullSession } from '../session/session-full.ts';
import { cacheTtlOf, effectsOf, targetOf, policyOf } from './action-policy.ts';

type Start = Extract<SchedulerCommand, { type: 'start' }>;
type Retry = Extract<SchedulerCommand, { type: 'retry' }>;
type Settle = Extract<SchedulerCommand, { type: 'settle' }>;

export class ActionRunner {
  readonly #context: RunContext;
  readonly #log: RunLog;
  readonly #results: Results;
  readonly #inbox: Inbox;
  readonly #state: () => RunState;
  readonly #variables: VariableStore;
  readonly #rejections = new Map<ActionKey, ActionRejection>();
  readonly #attempts = new Map<ActionKey, { readonly attempt: number; readonly abort: AbortController }>();
  readonly #deadlines: Deadlines;
  /** `cancel` is null while the host's alarm stands in for a timer of the platform. */
  readonly #timers = new Map<TimerId, { readonly cancel: (() => void) | null; readonly at: number }>();
  readonly #approvals: Approvals;
  /** All that questions of the run may cost in checks: they are put within one turn, without a pause. */
  readonly #questionMeter = new WorkMeter(limits.schemaSteps);
  /** What the conditions of the run may still cost together (S9). */
  #conditionSteps: number = limits.conditionStepsPerRun;
  readonly #names: RunNames;
  /** Actions that were looked up. */
  readonly #lookedUp = new Set<ActionKey>();
  /** What was found out about their references meanwhile, to be told in a turn. */
  readonly #lookedWarnings = new Map<ActionKey, Pick<ResolvedCall, 'warnings'>>();
  readonly #recalled = new Set<ActionKey>();
  readonly #replay: Replay | null;
  /** Durations that declared actions are ordered by (S5), until they are written. */
  readonly #estimates = new Map<ActionKey, number>();
  /** Of a run that is being replayed: attempts that were at work, look-ups and timers that were open when it broke off. */
  readonly #interrupted = new Map<ActionKey, Start>();
  readonly #asking = new Set<ActionKey>();
  readonly #stopped = new Map<TimerId, { readonly since: number; readonly delayMs: number }>();

  constructor(options: {
    readonly context: RunContext;
    readonly log: RunLog;
    readonly results: Results;
    readonly outcomes: OutcomeReader;
    readonly inbox: Inbox;
    readonly state: () => RunState;
    readonly replay: Replay | null;
  }) {
    this.#context = options.context;
    this.#deadlines = new Deadlines(options.context.clock);
    this.#log = options.log;
    this.#results = options.results;
    this.#inbox = options.inbox;
    this.#state = options.state;
    this.#replay = options.replay;
    this.#variables = this.#announced(options.context.variables);
    this.#names = new RunNames(options);
    this.#approvals = new Approvals(options.context.journal);
  }

  policy(action: ActionDeclaration): ActionPolicy {
    const policy = policyOf(action, this.#context.resolved, this.#context.learned);
    const key = `${this.#log.iteration}/${action.ordinal}`;
    // Durations are learned all the time; the order that they gave must come out the same.
    const estimateMs = (this.#log.replaying ? this.#replay?.estimateOf(key) : null) ?? policy.estimateMs;
    this.#estimates.set(key, estimateMs);
    return { ...policy, estimateMs };
  }

  /** An action is open when these events end: a sandbox is warmed for it while its body is still being written (R2). */
  prewarm(events: readonly ProtocolEvent[]): void {
    const last = events.findLast(
      ({ type }) => type === 'action_opened' || type === 'action_declared' || type === 'action_rejected',
    );
    if (last?.type !== 'action_opened' || this.#log.replaying) return;
    const hint = prewarmHintOf(last.actionType, last.name, this.#context.resolved);
    if (hint !== null) this.#context.runner?.prewarm({ session: this.#context.sessionId, ...hint });
  }

  /** The parser's rejection, kept for the event that settles it. */
  refused(rejection: ActionRejection): void {
    this.#rejections.set(`${this.#log.iteration}/${rejection.ordinal}`, rejection);
  }

  queued(key: ActionKey, dependsOn: readonly ActionKey[]): void {
    const action = this.#declaration(key);
    const { parameters } = action;
    const estimate = this.#estimates.get(key) ?? 0;
    this.#estimates.delete(key);
    if ((action.cacheTtlMs ?? 0) > 0 && this.#cacheTtl(action) === null) {
      const message = `Action "${action.id}" has a cache_ttl, but ${action.type} "${action.name}" is not pure: it runs every time`;
      this.#log.warn('cache_ignored', message, action);
    }
    this.#log.append(
      'action_queued',
      {
        type: action.type,
        mode: action.mode,
        depends_on: dependsOn.map((dependency) => this.#declaration(dependency).id),
        output_key: action.outputKey,
        parameters,
        ...(action.embeddedInThought ? { embedded_in_thought: true } : {}),
        ...(action.repaired ? { repaired: true } : {}),
      },
      { action, state: { key, estimate } },
    );
  }

  evaluate(key: ActionKey): Pick<Extract<SchedulerInput, { type: 'condition_evaluated' }>, 'key' | 'result'> {
    const { when } = this.#declaration(key);
    if (when === null) return { key, result: { ok: true, value: true } };
    const recorded = this.#log.replaying ? this.#replay?.conditionOf(key) : null;
    if (recorded != null) return { key, result: recorded };
    const result = this.#judge(key, when);
    this.#log.record({ is: 'condition', at: this.#context.clock.now(), key, result });
    return { key, result };
  }

  #judge(key: ActionKey, when: string): ConditionResult {
    if (this.#conditionSteps <= 0) {
      const message = `The conditions of this run have used up their work (allowed: ${limits.conditionStepsPerRun} steps)`;
      return { ok: false, message };
    }
    const bound = bindings(this.#state(), key);
    const values: Record<string, Json> = {};
    for (const name of conditionNames(when)) {
      const value = this.valueOf(name, bound[name] ?? null);
      if (value.state !== 'unknown') values[name] = value.state === 'value' ? value.value : null;
    }
    const meter = new WorkMeter(Math.min(limits.conditionSteps, this.#conditionSteps));
    const result = evaluateCondition(when, values, meter);
    this.#conditionSteps -= meter.spent;
    return result;
  }

  start(start: Start): void {
    const { key, attempt } = start;
    this.#results.started(key, this.#context.clock.now());
    const started = this.#log.replaying && this.#replay?.startedAt(key) != null;
    const call = attempt > 1 || started || this.#approvals.has(key) ? null : this.#names.resolve(key);
    if (started) this.#names.pin(key);
    const seq = this.#append('action_started', key, { attempt }, call === null ? {} : this.#names.record(key));
    if (call !== null) {
      this.#names.recorded(key, seq);
      if (!this.#lookedUp.has(key)) this.#warn(key, call);
    }
    // It was at work when the run broke off, unless the record says in the following how it ended.
    if (this.#log.wasRecorded(seq)) this.#interrupted.set(key, start);
    else this.#begin(start, call ?? this.#call(key), (execute) => execute());
  }

  /** What the action does: the same call every time. Null where a person was asked by a version that kept no call. */
  #call(key: ActionKey): ResolvedCall | null {
    return this.#approvals.has(key) ? this.#approvals.call(key) : this.#names.resolve(key);
  }

  /** Goes on where a crash broke off: attempts that were at work, look-ups, timers (J2). */
  resume(): void {
    const now = this.#context.clock.now();
    for (const start of this.#interrupted.values()) {
      // Its claim holds again, so that what comes of it stands for others (P6).
      if (this.#lookedUp.has(start.key)) this.#askEarlier(start.key, () => undefined);
      this.#begin(start, this.#call(start.key), (execute, known) => this.#recoverAttempt(start, execute, known));
    }
    this.#interrupted.clear();
    for (const key of this.#asking) this.lookup(key);
    this.#asking.clear();
    for (const [timer, { since, delayMs }] of this.#stopped) {
      // An attempt that is taken up again has its whole time again: how much of it was lost is not its fault.
      const passedMs = timer.startsWith('timeout:') ? 0 : Math.max(0, now - since);
      this.setTimer(timer, Math.max(0, delayMs - passedMs));
    }
    this.#stopped.clear();
  }

  /**
   * What came of an attempt that was at work when the host vanished: what its executor knows; else
   * what may run twice runs again, and the rest is not known (J2, J3).
   */
  async #recoverAttempt(
    { key }: Start,
    execute: () => Promise<ActionOutcome>,
    known: (() => Promise<ActionOutcome | null>) | null,
  ): Promise<ActionOutcome> {
    const action = this.#declaration(key);
    const { effects } = policyOf(action, this.#context.resolved, this.#context.learned);
    const mayRepeat = effects !== 'unsafe';
    try {
      const found = await known?.();
      if (found != null && (found.ok || found.error.code !== 'lost' || !mayRepeat)) return found;
    } catch (fault) {
      if (!mayRepeat) return unknownOutcome(action, messageOf(fault));
    }
    return mayRepeat ? await execute() : unknownOutcome(action, null);
  }

  /** Runs an attempt once this turn is on disk; `how` says in which way. */
  #begin(
    { key, attempt, timeoutMs, budget }: Start,
    resolved: ResolvedCall | null,
    how: (
      execute: () => Promise<ActionOutcome>,
      known: (() => Promise<ActionOutcome | null>) | null,
    ) => Promise<ActionOutcome>,
  ): void {
    const action = this.#declaration(key);
    const { parameters, inputs } = resolved ?? { parameters: {}, inputs: {} };
    const tool = this.#tool(action);
    const abort = new AbortController();
    this.#attempts.set(key, { attempt, abort });
    const executor = this.#context.executors[action.type];
    const call = {
      action,
      runtimeKey: `${this.#context.sessionId}/${this.#context.runNumber}/${key}`,
      attempt,
      parameters,
      inputs,
      tool,
      relic: this.#relic(action),
      timeoutMs,
      budget,
    };
    const context = {
      signal: abort.signal,
      clock: this.#context.clock,
      pacer: this.#context.pacer,
      session: this.#context.sessionId,
      owner: this.#context.owner ?? null,
      progress: (data: JsonObject): void => this.#inbox.put({ type: 'progress', key, attempt, data }),
      variables: this.#variables,
      runner: this.#context.runner,
      edgeRelics: this.#context.edgeRelics ?? null,
      children: this.#context.children,
      fetch: this.#context.fetch,
      readHtml: this.#context.readHtml,
      internalActions: this.#context.resolved.agent.internalActions,
      runnerNeeds: this.#context.resolved.agent.runner ?? {},
      feeds: this.#context.feeds.store(this.#context.resolved, (feed) => feedRefusal(feed, this.#context.resolved)),
      callModel: (request: Parameters<ActionContext['callModel']>[0]): Promise<string> =>
        callModel(this.#context, request, abort.signal, (usage) => this.#inbox.put({ type: 'usage', usage })),
    };
    const execute = async (): Promise<ActionOutcome> => {
      // What was cancelled in the turn that started it has never begun (J5).
      if (abort.signal.aborted) {
        const message = `stopped before it began: ${messageOf(abort.signal.reason)}`;
        return { ok: false, error: { code: 'aborted', message, retryable: false } };
      }
      await this.#inTurn(action, resolved, abort.signal);
      const error = this.#context.journal.full
        ? actionInFullSession()
        : await this.#checked(action, resolved, abort.signal);
      if (error !== null) return { ok: false, error };
      return await executor.execute(call, context);
    };
    const { recover } = executor;
    const known = recover === undefined ? null : (): Promise<ActionOutcome | null> => recover(call, context);
    const run = (): void => {
      how(execute, known)
        .catch((fault: unknown): ActionOutcome => ({
          ok: false,
          error: { code: 'executor_fault', message: messageOf(fault), retryable: false },
        }))
        .then((outcome) => this.#inbox.put({ type: 'outcome', key, attempt, outcome }));
    };
    if (tool === null || tool.effects === 'unsafe') this.#log.afterSync(run);
    else this.#log.afterWrite(run);
  }

  /** Asks whether an earlier outcome stands for the action; the answer comes through the inbox (P6). */
  lookup(key: ActionKey): void {
    if (this.#log.replaying) {
      this.#asking.add(key);
      this.#lookedUp.add(key);
      if (!this.#approvals.has(key)) this.#names.pin(key);
      return;
    }
    this.#lookedUp.add(key);
    if (!this.#approvals.has(key)) this.#names.pin(key);
    this.#askEarlier(key, (found) => this.#inbox.put({ type: 'recalled', key, found }));
  }

  #askEarlier(key: ActionKey, answer: (found: Recalled) => void): void {
    const action = this.#declaration(key);
    const version = this.#tool(action)?.version ?? null;
    const call = (): ResolvedCall => {
      const found = this.#call(key);
      if (found === null) throw new EngineError('internal', `What was approved of action ${key} is not known`);
      if (found.warnings.length > 0) this.#lookedWarnings.set(key, { warnings: found.warnings });
      return found;
    };
    const resolved = { action, call, version, cacheTtlMs: this.#cacheTtl(action) };
    // A look-up that fails is no reason not to run.
    this.#context.earlier.ask(this.#owner(key), resolved, answer).catch(() => answer({ type: 'nothing' }));
  }

  recalled(
    { key, found }: Extract<RunInput, { type: 'recalled' }>,
    at: number,
  ): Extract<SchedulerInput, { type: 'recalled' }> {
    this.#asking.delete(key);
    const warned = this.#lookedWarnings.get(key);
    this.#lookedWarnings.delete(key);
    if (warned !== undefined) this.#warn(key, warned);
    if (found.type === 'refused') return { type: 'recalled', at, key, found: { error: found.error } };
    if (found.type === 'nothing' || this.#results.get(key) !== null)
      return { type: 'recalled', at, key, found: 'nothing' };
    const refusal = this.#results.stageOutput(key, found.output);
    if (refusal !== null) return { type: 'recalled', at, key, found: { error: refusal } };
    this.#recalled.add(key);
    return { type: 'recalled', at, key, found: 'outcome' };
  }

  abort(key: ActionKey, attempt: number, reason: string): void {
    if (this.#interrupted.get(key)?.attempt === attempt) this.#interrupted.delete(key);
    const running = this.#attempts.get(key);
    if (running?.attempt !== attempt) return;
    this.#attempts.delete(key);
    running.abort.abort(new DOMException(reason, 'AbortError'));
  }

  abortAll(): void {
    for (const { abort } of this.#attempts.values()) abort.abort(new DOMException('the run ended', 'AbortError'));
    for (const { cancel } of this.#timers.values()) cancel?.();
    for (const key of this.#lookedUp) this.#context.earlier.release(this.#owner(key), null);
    this.#attempts.clear();
    this.#timers.clear();
    this.#lookedUp.clear();
  }

  outcome(
    { key, attempt, outcome }: Extract<RunInput, { type: 'outcome' }>,
    at: number,
    random: number,
  ): Extract<SchedulerInput, { type: 'attempt_succeeded' | 'attempt_failed' }> {
    if (this.#attempts.get(key)?.attempt === attempt) this.#attempts.delete(key);
    if (this.#interrupted.get(key)?.attempt === attempt) this.#interrupted.delete(key);
    const spent = outcome.spent === undefined ? {} : { spent: outcome.spent };
    if (!outcome.ok) return { type: 'attempt_failed', at, key, attempt, error: outcome.error, random, ...spent };
    const refusal = statusOf(this.#state(), key) === 'running' ? this.#results.stageOutput(key, outcome.output) : null;
    if (refusal !== null) return { type: 'attempt_failed', at, key, attempt, error: refusal, random, ...spent };
    return { type: 'attempt_succeeded', at, key, attempt, ...spent };
  }

  progress({ key, attempt, data }: Extract<RunInput, { type: 'progress' }>): void {
    if (this.#attempts.get(key)?.attempt !== attempt) return;
    this.#log.live('progress', data, this.#declaration(key));
  }

  retrying({ key, attempt, delayMs, error }: Retry): void {
    this.#append('action_retrying', key, { attempt, delay_ms: delayMs, error: errorJson(error) });
  }

  /** Resolves an action for good and asks about that, unless it could not run anyway (J8). */
  askApproval(key: ActionKey): Pick<Extract<SchedulerInput, { type: 'approval_asked' }>, 'key' | 'error'> {
    const recorded = this.#log.replaying ? this.#replay : null;
    const error = recorded?.unaskedOf(key) ?? null;
    if (error !== null) return { key, error };
    const asked = recorded?.askedOf(key) ?? null;
    if (asked !== null) {
      const { data } = this.#write('approval_requested', key, {});
      this.#approvals.put(key, String(data['approval_id']), asked.seq, asked.bytes);
      return { key, error: null };
    }
    const action = this.#declaration(key);
    const unasked = (why: ActionError): { key: ActionKey; error: ActionError } => {
      this.#log.record({ is: 'unasked', at: this.#context.clock.now(), key, error: why });
      return { key, error: why };
    };
    const exhausted = this.#context.journal.full ? actionInFullSession() : this.#approvals.exhausted(action);
    if (exhausted !== null) return unasked(exhausted);
    const call = this.#names.resolve(key);
    this.#names.forget(key);
    const issue = this.#issue(action, call, this.#questionMeter);
    // What took too much work to check is checked once more when it runs.
    const isUnchecked = call.spent !== true && this.#questionMeter.exceeded;
    if (issue !== null && !isUnchecked) return unasked(issue);
    const id = this.#context.newApprovalId();
    const question = this.#approvals.question(action, call, id);
    if ('error' in question) return unasked(question.error);
    const seq = this.#append('approval_requested', key, question.data, question.state);
    this.#approvals.put(key, id, seq, question.bytes);
    this.#warn(key, call);
    return { key, error: null };
  }

  /** @returns whether the decision counts: whether the question was still open */
  approvalResolved({ key, approved, note, told }: Extract<RunInput, { type: 'approval' }>): boolean {
    const approval = this.#approvals.close(key);
    if (approval === null) {
      told?.(false);
      return false;
    }
    this.#append('approval_resolved', key, { approval_id: approval, approved, ...(note === null ? {} : { note }) });
    if (told !== undefined) this.#log.afterSync(() => told(true));
    return true;
  }

  /** When the next open approval expires; null when none is open. */
  approvalExpiry(): number | null {
    const times = [...this.#timers].flatMap(([timer, { at }]) => (timer.startsWith('approval:') ? [at] : []));
    return times.length === 0 ? null : Math.min(...times);
  }

  /** The action that an approval id asks about; null also for one whose time is over, told or not. */
  approvalKey(approvalId: string): ActionKey | null {
    const key = this.#approvals.keyOf(approvalId);
    const until = this.#timers.get(`approval:${key}`)?.at ?? Infinity;
    return until > this.#context.clock.now() ? key : null;
  }

  /** Writes the terminal event (S10) and keeps the result for references and for the model. */
  settled(command: Settle): void {
    const { key } = command;
    const now = this.#context.clock.now();
    this.#attempts.delete(key);
    this.#interrupted.delete(key);
    this.#asking.delete(key);
    // What was cancelled, or expired, cannot be approved any more (J8).
    this.#approvals.close(key);
    const seq = this.#appendEnd(command, now);
    this.#names.forget(key);
    this.#forget(key, command.status === 'completed' ? { seq, output: this.#results.offered(key) } : null);
    const label = this.#rejections.get(key) ?? this.#declaration(key);
    const silent = isFireAndForget(this.#state(), key);
    const { id, name } = label;
    const { status } = command;
    const result = { id, ordinal: ordinalOf(key), name, silent, status, note: noteOf(command), endedAt: now };
    this.#results.settle(key, result, seq);
    const cleared = command.status === 'completed' && this.#declaration(key);
    // Results of the iterations before this action's lose their names (I).
    if (cleared !== false && cleared.type === 'internal' && cleared.name === 'clear_context') {
      this.#names.clear(iterationOf(key));
    }
  }

  #appendEnd(command: Settle, now: number): number {
    const { key, attempt } = command;
    switch (command.status) {
      case 'completed': {
        const ms = Math.max(0, now - (this.#results.startedAt(key) ?? now));
        const action = this.#declaration(key);
        const output = this.#results.offered(key);
        const state: JsonObject = { output_key: action.outputKey };
        const cached = this.#recalled.delete(key);
        if (!cached) {
          const target = targetOf(action);
          if (!this.#log.replaying) this.#context.learned.learn(target, ms);
          Object.assign(state, { target, ms });
        }
        return this.#append('action_completed', key, { output, ms, attempt, ...(cached ? { cached } : {}) }, state);
      }
      case 'failed': {
        const started = this.#results.startedAt(key);
        return this.#append('action_failed', key, {
          error: errorJson(command.error),
          attempt,
          ...(started === null ? {} : { ms: Math.max(0, now - started) }),
        });
      }
      case 'skipped':
        return this.#append('action_skipped', key, { reason: command.reason, because: command.because });
      case 'cancelled':
        return this.#append('action_cancelled', key, { reason: command.reason });
      case 'rejected':
        return this.#rejected(key, command.code, command.message);
    }
  }

  setTimer(timer: TimerId, delayMs: number): void {
    this.clearTimer(timer);
    if (this.#log.replaying) {
      this.#stopped.set(timer, { since: this.#context.clock.now(), delayMs });
      return;
    }
    const cancel = this.#deadlines.schedule(delayMs, () => {
      this.#timers.delete(timer);
      this.#inbox.put({ type: 'timer', timer });
    });
    this.#timers.set(timer, { cancel, at: this.#context.clock.now() + delayMs });
  }

  clearTimer(timer: TimerId): void {
    this.#timers.get(timer)?.cancel?.();
    this.#timers.delete(timer);
    this.#stopped.delete(timer);
  }

  /** Nothing but approvals is waited for: a timer of the platform would hold the host for days (J8). */
  rest(): void {
    for (const [timer, { cancel, at }] of this.#timers) {
      cancel?.();
      this.#timers.set(timer, { cancel: null, at });
    }
  }

  /** The host is at work again: what is due meanwhile fires at once. */
  rouse(): void {
    const now = this.#context.clock.now();
    for (const [timer, { cancel, at }] of this.#timers) {
      if (cancel === null) this.setTimer(timer, Math.max(0, at - now));
    }
  }

  /** A timer of the record has fired. */
  fired(timer: TimerId): void {
    this.#stopped.delete(timer);
  }

  /** What a name stands for now (P12, P13). */
  valueOf(name: string, producer: ActionKey | null): NameValue {
    return this.#names.valueOf(name, producer);
  }

  #rejected(key: ActionKey, code: string, message: string): number {
    const rejection = this.#rejections.get(key);
    const declaration = rejection === undefined ? this.#declaration(key) : null;
    const label: ActionLabel = rejection ?? this.#declaration(key);
    return this.#log.append(
      'action_rejected',
      {
        code,
        message,
        type: rejection?.type ?? declaration?.type ?? null,
        mode: rejection?.mode ?? declaration?.mode ?? null,
        ...(rejection === undefined
          ? {}
          : { line: rejection.line, column: rejection.column, excerpt: rejection.excerpt }),
      },
      { action: label, state: { key } },
    );
  }

  /** An action that was looked up has settled: whoever waits for it may go on (P6). */
  #forget(key: ActionKey, completed: { readonly seq: number; readonly output: Json } | null): void {
    if (this.#lookedUp.delete(key)) this.#context.earlier.release(this.#owner(key), completed);
  }

  #owner(key: ActionKey): string {
    return `${this.#context.runNumber}/${key}`;
  }

  #cacheTtl(action: ActionDeclaration): number | null {
    const tool = this.#tool(action);
    return cacheTtlOf(action, effectsOf(action.type, tool), tool);
  }

  #relic(action: ActionDeclaration): RelicDefinition | null {
    if (action.type !== 'relic') return null;
    return this.#context.resolved.relics?.get(action.name.split('.')[0] ?? '') ?? null;
  }

  #tool(action: ActionDeclaration): ToolDefinition | null {
    return action.type === 'tool' ? (this.#context.resolved.tools.get(action.name) ?? null) : null;
  }

  /** An attempt with large parameters has its turn before it begins: a run may start hundreds at once. */
  async #inTurn(action: ActionDeclaration, resolved: ResolvedCall | null, signal: AbortSignal): Promise<void> {
    const chars = action.span.end - action.span.start + (resolved?.renderedChars ?? 0);
    const steps = chars * limits.parameterCharSteps;
    if (steps <= limits.busyTurnSteps) return;
    const { share } = this.#context;
    if (share.isDue) await share.turn(signal);
    share.charge(steps);
  }

  /** What is wrong with the call. Large parameters and expensive schemas of one run take turns with other work. */
  async #checked(
    action: ActionDeclaration,
    resolved: ResolvedCall | null,
    signal: AbortSignal,
  ): Promise<ActionError | null> {
    if (resolved === null) return unknownApproval(action);
    const check = (paced: WorkMeter): ActionError | null => {
      paced.chargeChars(resolved.renderedChars ?? 0);
      return this.#issue(action, resolved, paced.part(limits.schemaSteps));
    };
    // More than both can be: what is spent decides how long the pause is.
    return await this.#context.pacer.run(limits.schemaSteps + limits.substitutedChars, check, signal);
  }

  #issue(action: ActionDeclaration, { parameters, spent }: ResolvedCall, meter?: WorkMeter): ActionError | null {
    if (spent === true) {
      const message = `The references of this run would add more than ${limits.runSubstitutedChars} characters together`;
      return { code: 'reference_quota', message, retryable: false };
    }
    const tool = this.#tool(action);
    const message = tool === null ? null : validateParameters(tool.parameters, parameters, meter);
    return message === null ? null : { code: 'invalid_parameters', message, retryable: false };
  }

  #warn(key: ActionKey, { warnings }: Pick<ResolvedCall, 'warnings'>): void {
    for (const { code, message } of warnings) this.#log.warn(code, message, this.#declaration(key));
  }

  #append(type: JournaledEventType, key: ActionKey, data: JsonObject, state: JsonObject = {}): number {
    return this.#write(type, key, data, state).seq ?? 0;
  }

  #write(type: JournaledEventType, key: ActionKey, data: JsonObject, state: JsonObject = {}): SessionEvent {
    return this.#log.write(type, data, {
      action: this.#declaration(key),
      state: { key, ...state },
      iteration: iterationOf(key),
    });
  }

  #declaration(key: ActionKey): ActionDeclaration {
    const found = declarationOf(this.#state(), key);
    if (found === null) throw new Error(`the scheduler knows no action ${key}`);
    return found;
  }

  /** Variables as internal actions see them: every change is an event. */
  #announced(variables: VariableStore): VariableStore {
    return {
      get: (key) => variables.get(key),
      entries: () => variables.entries(),
      set: (key, value) => {
        variables.set(key, value);
        this.#log.append('variable_changed', { key, value });
      },
      delete: (key) => {
        const existed = variables.delete(key);
        if (existed) this.#log.append('variable_changed', { key, deleted: true });
        return existed;
      },
    };
  }
}

function unknownOutcome(action: ActionDeclaration, why: string | null): ActionOutcome {
  const because = why === null ? '' : ` (${why})`;
  const message = `Action "${action.id}" had started when its host was restarted, and what came of it is not known${because}. It may have had its effect: check before you do it again`;
  return { ok: false, error: { code: 'outcome_unknown', message, retryable: false } };
}

/** Of a run that an earlier version parked: what the person saw was not kept, so nothing that runs now would be it. */
function unknownApproval({ id }: ActionDeclaration): ActionError {
  const message = `Action "${id}" was approved, but what was asked about was not recorded: declare it again`;
  return { code: 'approval_not_recorded', message, retryable: false };
}

/** What would run the action, as far as its tag says; null where no sandbox would, or none is allowed to (X4). */
function prewarmHintOf(
  type: ActionType | null,
  name: string | null,
  { agent, tools }: ResolvedAgent,
): Omit<PrewarmHint, 'session'> | null {
  if (type === 'python' || type === 'shell' || type === 'docker') {
    return agent.capabilities.includes(type)
      ? { kind: type, runtime: null, ...(type === 'docker' ? {} : agent.runner) }
      : null;
  }
  if ((type !== null && type !== 'tool') || name === null) return null;
  const implementation = tools.get(name)?.implementation;
  if (implementation?.type !== 'script') return null;
  const { runtime, sandbox, labels } = implementation;
  return {
    kind: 'tool',
    runtime,
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(labels === undefined ? {} : { labels }),
  };
}

function errorJson(error: {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
}): JsonObject {
  return { code: error.code, message: error.message, retryable: error.retryable };
}

/** The line that tells a reader, or the model, why there is no output. */
function noteOf(settlement: Settlement): string | null {
  switch (settlement.status) {
    case 'completed':
      return null;
    case 'failed':
      return `${settlement.error.code}: ${settlement.error.message}`;
    case 'skipped':
      return settlement.because === null ? settlement.reason : `${settlement.reason}: ${settlement.because}`;
    case 'cancelled':
      return settlement.reason;
    case 'rejected':
      return `${settlement.code}: ${settlement.message}`;
  }
}
