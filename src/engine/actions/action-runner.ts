/**
 * Executes the scheduler's commands about actions. Each duty has its own part:
 *
 *  - `conditions`: evaluates `when`
 *  - `policies`: lets the policies decide
 *  - `lookups`: finds reusable earlier outcomes
 *  - `approvals`: asks people for approval, and the questions of targets
 *  - `attempts`: runs executors
 *  - `clients`: shows calls to the client, which executes them
 *  - `timers`: timeouts, retry delays, expiries
 *
 * Owns the steps at an action's declaration and settlement that involve several parts. Does not own any decision:
 * nothing is started, repeated or abandoned here.
 */
import { forgetsResults, loadsSkill } from '../../domain/internal-actions.ts';
import type { ActionDeclaration, ActionKey, ActionPolicy } from '../../domain/action.ts';
import type { EventData } from '../../domain/event.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import { isWorkflowAction } from '../../domain/workflow-actions.ts';
import { bindings, isFireAndForget } from '../../scheduler/step.ts';
import type { SchedulerCommand } from '../../scheduler/types.ts';
import type { OutcomeReader } from '../run/outcome-reader.ts';
import type { OpenReference } from '../run/resolve-names.ts';
import type { RunContext } from '../run/run-context.ts';
import type { RunInput } from '../run/run-input.ts';
import { iterationOf, ordinalOf, RunNames } from '../run/run-names.ts';
import { ActionLog, errorJson } from './action-log.ts';
import { cacheTtlOf, effectsOf, policyOf, targetNote, toolOf } from './action-policy.ts';
import type { OpenRequest } from './approval-list.ts';
import type { ActionScope } from './action-scope.ts';
import { Approvals } from './approvals.ts';
import { Attempts } from './attempts.ts';
import { Calls, codeToolOf } from './calls.ts';
import { ClientCalls } from './client-calls.ts';
import { Conditions } from './conditions.ts';
import { Lookups } from './lookups.ts';
import { Policies } from '../policy/policies.ts';
import { judgedTarget } from '../policy/subject.ts';
import { prewarmHint } from './prewarm-hint.ts';
import { RunTimers } from './run-timers.ts';
import { noteOf, Settlements } from './settlements.ts';

export class ActionRunner {
  readonly conditions: Conditions;
  readonly policies: Policies;
  readonly lookups: Lookups;
  readonly approvals: Approvals;
  readonly attempts: Attempts;
  readonly clients: ClientCalls;
  readonly timers: RunTimers;
  /** Resolves the names in the text. */
  readonly names: RunNames;
  readonly settlements: Settlements;
  readonly #scope: ActionScope;
  /** Duration estimates of declared actions (S5), until they are written. */
  readonly #estimates = new Map<ActionKey, number>();

  constructor(given: Omit<ActionScope, 'actions' | 'names' | 'calls'> & { readonly outcomes: OutcomeReader }) {
    this.names = new RunNames(given);
    const actions = new ActionLog(given.log, given.state);
    const calls = new Calls({ context: given.context, names: this.names, actions });
    const scope = { ...given, actions, names: this.names, calls };
    this.#scope = scope;
    this.timers = new RunTimers(scope);
    this.conditions = new Conditions(scope);
    this.policies = new Policies(scope);
    this.approvals = new Approvals(scope, this.policies);
    this.lookups = new Lookups(scope);
    this.attempts = new Attempts(scope, this);
    this.clients = new ClientCalls(scope, this.attempts);
    this.settlements = new Settlements(scope, this.lookups);
  }

  /** The scheduler's policy for a declared action. */
  policy(action: ActionDeclaration): ActionPolicy {
    const { context, log, replay } = this.#scope;
    const policy = policyOf(action, context.resolved, context.learned);
    const key = `${log.iteration}/${action.ordinal}`;
    // Durations change while learning, so a replayed run uses the recorded estimates.
    const estimateMs = (log.replaying ? replay?.estimateOf(key) : null) ?? policy.estimateMs;
    this.#estimates.set(key, estimateMs);
    return { ...policy, estimateMs, ...this.#judged(action, key) };
  }

  /**
   * Policies may have been set since a recorded action went on without them, or may have been removed (C9). The call of a code
   * tool is prepared in any case (K2).
   */
  #judged(action: ActionDeclaration, key: ActionKey): Pick<ActionPolicy, 'judged'> {
    const { context, log, replay } = this.#scope;
    const recorded = log.replaying ? replay : null;
    const isRecorded = recorded?.isJudged(key) === true;
    const needsPreparation = (context.policies ?? []).length > 0 || codeToolOf(action, context.resolved) !== null;
    const isDue = needsPreparation && recorded?.hasGoneOn(key) !== true;
    if ((!isRecorded && !isDue) || isOfWorkflow(action, context.source.type)) return {};
    return { judged: judgedTarget(action, context.resolved) };
  }

  /** Prewarms a sandbox for an action that is still being written (R2). */
  prewarm(events: readonly ProtocolEvent[]): void {
    const { runner, resolved, sessionKey, policies = [] } = this.#scope.context;
    // With policies, nothing of an action happens before it was judged (C9).
    if (runner === null || policies.length > 0 || this.#scope.log.replaying) return;
    const hint = prewarmHint(events, resolved);
    if (hint !== null) runner.prewarm({ session: sessionKey, ...hint });
  }

  queued(key: ActionKey, dependsOn: readonly ActionKey[]): void {
    const { context, log, actions } = this.#scope;
    const action = actions.declaration(key);
    // The key of its declaration, which may be the second one of its id.
    const declared = `${iterationOf(key)}/${action.ordinal}`;
    const estimate = this.#estimates.get(declared) ?? 0;
    this.#estimates.delete(declared);
    const tool = toolOf(action, context.resolved);
    if ((action.cacheTtlMs ?? 0) > 0 && cacheTtlOf(action, effectsOf(action.type, tool), tool) === null) {
      const message = `Action "${action.id}" has a cache_ttl, but ${action.type} "${action.name}" is not pure: it runs every time`;
      log.warn('cache_ignored', message, action);
    }
    const note = targetNote(action, context.resolved);
    if (note !== null) log.warn('foreign_form', note, action);
    actions.append(
      'action_queued',
      key,
      {
        type: action.type,
        mode: action.mode,
        depends_on: dependsOn.map((dependency) => actions.declaration(dependency).id),
        output_key: action.outputKey,
        parameters: action.parameters,
        ...(action.embeddedInThought ? { embedded_in_thought: true } : {}),
        ...(action.repaired ? { repaired: true } : {}),
      },
      { estimate },
    );
  }

  /** Asks a person about an action: before its first attempt, or after one that has ended with a question (J8). */
  ask(command: Extract<SchedulerCommand, { type: 'ask_approval' }>): ReturnType<Approvals['ask']> {
    // Equal actions do not wait for the person: the lookup is repeated after the answer.
    if (command.attempt > 0) this.lookups.release(command.key);
    return this.approvals.ask(command);
  }

  retrying({ key, attempt, delayMs, error }: Extract<SchedulerCommand, { type: 'retry' }>): void {
    this.#scope.actions.append('action_retrying', key, { attempt, delay_ms: delayMs, error: errorJson(error) });
  }

  /** Writes the terminal event (S10) and keeps the result for references and for the model. */
  settled(command: Extract<SchedulerCommand, { type: 'settle' }>): void {
    const { context, log, results, actions, state } = this.#scope;
    const { key, status } = command;
    const now = context.clock.now();
    this.attempts.forget(key);
    this.policies.forget(key);
    // A cancelled action, or one whose request has expired, can no longer be approved (J8).
    this.approvals.close(key);
    this.approvals.questions.close(key);
    const write = (): number => {
      this.clients.close(key, command);
      const seq = this.settlements.append(command, now);
      if (status === 'completed') this.lookups.keep(key, { seq, output: results.stagedOutput(key) });
      return seq;
    };
    // Without the kept outcome, an equal action would run again (P6).
    const seq = this.lookups.has(key) ? log.atomically(write) : write();
    this.names.forget(key);
    this.lookups.release(key);
    const { id, name } = this.settlements.label(key);
    const silent = isFireAndForget(state(), key);
    const action = status === 'completed' ? actions.declaration(key) : null;
    const isSkill = action !== null && loadsSkill(action) ? { isSkill: true as const } : {};
    const note = noteOf(command);
    results.settle(key, { id, ordinal: ordinalOf(key), name, silent, status, note, endedAt: now, ...isSkill }, seq);
    if (action === null) return;
    // Results of earlier iterations lose their names (I).
    if (forgetsResults(action)) this.names.clear(iterationOf(key));
  }

  /** The input that counts: an output past the quota of the run counts as its error, also in a replay (J6, J9). */
  staged(input: RunInput): RunInput {
    if (input.type === 'attempt_ended') return this.attempts.stage(input);
    return input.type === 'recalled' ? this.lookups.stage(input) : input;
  }

  /** What the run waits for (J8, C3). */
  waitsFor(): EventData['agent_waiting']['reason'] {
    return this.approvals.open.length === 0 && this.clients.openCount > 0 ? 'client_tools' : 'approvals';
  }

  /** References in the text of an iteration's actions that left a blank (P10). */
  blanksIn(iteration: number): readonly OpenReference[] {
    const { actions, state } = this.#scope;
    return actions.blanksIn(iteration).map(([key, reference]) => ({
      reference,
      resolve: () => this.names.valueOf(reference.name, bindings(state(), key)[reference.name] ?? null),
    }));
  }

  /** The action of an approval id; null also for an expired one whose timer has not fired yet. */
  approvalKey(approvalId: string): ActionKey | null {
    const key = this.approvals.keyOf(approvalId);
    return key !== null && this.#isUnexpired(key) ? key : null;
  }

  /** The requests that can be decided. */
  openApprovals(): readonly OpenRequest[] {
    return this.approvals.open.filter(({ key }) => this.#isUnexpired(key));
  }

  /** Whether the client can answer this call; false also for an expired one whose timer has not fired yet. */
  isCallOpen(key: ActionKey): boolean {
    return this.clients.isOpen(key) && (this.timers.at(`client:${key}`) ?? Infinity) > this.#scope.context.clock.now();
  }

  #isUnexpired(key: ActionKey): boolean {
    return (this.timers.at(`approval:${key}`) ?? Infinity) > this.#scope.context.clock.now();
  }

  /** Continues after a crash: interrupted attempts, lookups, timers (J2). */
  resume(): void {
    this.policies.resume();
    this.lookups.resume();
    this.attempts.resume();
    this.clients.resume();
    this.timers.resume();
  }

  /** The run has ended: releases everything. */
  dispose(): void {
    this.attempts.abortAll();
    this.policies.abortAll();
    this.approvals.questions.closeAll();
    this.clients.abortAll();
    this.timers.cancelAll();
    this.lookups.releaseAll();
  }
}

/** Whether the runtime has added the action to a workflow. A model that writes such a name gets no exception. */
function isOfWorkflow({ type, name }: ActionDeclaration, source: RunContext['source']['type']): boolean {
  return source === 'workflow' && type === 'tool' && isWorkflowAction(name);
}
