/**
 * One run, from the first input to the last: the whole flow of the system in one place.
 *
 *   model text -> protocol events -> scheduler commands -> journal -> executors and readers
 *
 * A run is a loop over turns. A turn takes everything that has happened (text, outcomes, timers,
 * cancels), lets the scheduler decide, appends what was decided, waits until it is on disk, starts
 * what was decided and tells the readers: append, act, emit (J1). Nothing else starts, retries,
 * cancels or times out an action.
 */
import type { ActionKey } from '../domain/action.ts';
import type { ProtocolEvent } from '../domain/protocol-event.ts';
import { action as declarationOf, initialState, lookup, step } from '../scheduler/step.ts';
import type { RunState } from '../scheduler/step.ts';
import type { SchedulerCommand, SchedulerInput } from '../scheduler/types.ts';
import { ActionDesk } from './action-desk.ts';
import { GenerationDesk } from './generation-desk.ts';
import type { Inbox, RunInput } from './inbox.ts';
import { RunLog } from './run-log.ts';
import { Results } from './results.ts';
import type { RunContext } from './run-context.ts';
import { Segments } from './segments.ts';
import { renderReference } from './names.ts';

/** Something a person or a reader asks of a live run. */
export interface LiveRun {
  /** Whole-text patches of the blocks that are open now (J4). */
  catchUp(): ReturnType<Segments['catchUp']>;
  /** The action that an open approval asks about, or null (J8). */
  approvalKey(approvalId: string): ActionKey | null;
  /** Resolves when nothing of the run is at work any more; rejects for our own faults only. */
  readonly drained: Promise<void>;
}

/** Starts a run; its inputs arrive in `inbox`, everything else comes from `context`. */
export function startRun(context: RunContext, inbox: Inbox): LiveRun {
  const log = new RunLog(context);
  const results = new Results((seq) => context.journal.outputAt(seq));
  let state: RunState = initialState();
  const segments = new Segments(log, {
    render: renderReference,
    streamThoughts: context.resolved.agent.loop.streamThoughts,
  });
  const actions = new ActionDesk({ context, log, results, inbox, state: () => state });
  const generations = new GenerationDesk({ context, log, results, segments, inbox, state: () => state });
  const progress = { drained: false };

  /** Text first: what the model said becomes blocks, declarations and rejections. */
  const read = (event: ProtocolEvent): void => {
    const at = context.clock.now();
    switch (event.type) {
      case 'action_declared':
        generations.sawAction();
        return decide({ type: 'action_declared', at, action: event.action, traits: actions.traits(event.action) });
      case 'action_rejected':
        generations.sawAction();
        actions.refused(event.rejection);
        return decide({ type: 'action_refused', at, rejection: event.rejection });
      case 'response_completed': {
        const { final, refers } = generations.closeResponse(event.unclosed);
        return decide({ type: 'response_closed', at, final, refers });
      }
      case 'response_reference':
        return generations.refer(
          event.reference,
          (name): ActionKey | null => lookup(state, name)?.key ?? null,
          actions,
        );
      case 'warning':
        return log.warn(event.code, event.message);
      case 'action_opened':
        return;
      default:
        return generations.text(event);
    }
  };

  const perceive = (input: RunInput): void => {
    const at = context.clock.now();
    switch (input.type) {
      case 'protocol':
        generations.endReasoning();
        for (const event of input.events) read(event);
        return;
      case 'reasoning':
        return generations.reasoning(input.text);
      case 'token':
        return log.live('llm_token', { token: input.text });
      case 'usage':
        return decide({ type: 'usage_recorded', at, ...generations.recordUsage(input.usage) });
      case 'generation_ended':
        return decide({ type: 'generation_ended', at, ...generations.end(input) });
      case 'progress':
        return actions.progress(input);
      case 'outcome':
        return decide(actions.outcome(input, at));
      case 'recalled':
        return decide(actions.recalled(input, at));
      case 'timer':
        return decide({ type: 'timer_fired', at, timer: input.timer, random: context.random() });
      case 'approval':
        actions.approvalResolved(input);
        return decide({ type: 'approval_resolved', at, key: input.key, approved: input.approved, note: input.note });
      case 'cancel':
        return decide({ type: 'cancel_requested', at, reason: input.reason });
    }
  };

  /** The scheduler decides; what a command leads to at once (a condition, say) is decided in its turn. */
  const undecided: SchedulerInput[] = [];
  let deciding = false;
  const decide = (input: SchedulerInput): void => {
    undecided.push(input);
    if (deciding) return;
    deciding = true;
    for (let next = undecided.shift(); next !== undefined; next = undecided.shift()) {
      const decided = step(state, next);
      state = decided.state;
      for (const command of decided.commands) obey(command);
    }
    deciding = false;
  };

  /** The engine does: every command becomes an entry in the journal, an effect, or both. */
  const obey = (command: SchedulerCommand): void => {
    switch (command.type) {
      case 'queue':
        return actions.queued(command.key, command.dependsOn);
      case 'evaluate':
        return decide({ type: 'condition_evaluated', at: context.clock.now(), ...actions.evaluate(command.key) });
      case 'recall':
        return actions.recall(command.key);
      case 'start':
        return actions.start(command);
      case 'abort':
        return actions.abort(command.key, command.attempt, command.reason);
      case 'retry':
        return actions.retrying(command);
      case 'ask_approval':
        return actions.askApproval(command.key);
      case 'settle':
        actions.settled(command);
        return segments.advance();
      case 'set_timer':
        return actions.setTimer(command.timer, command.delayMs);
      case 'clear_timer':
        return actions.clearTimer(command.timer);
      case 'warn': {
        const about = command.key === null ? null : declarationOf(state, command.key);
        return log.warn(command.code, command.message, about ?? undefined);
      }
      case 'start_iteration':
        return generations.start(command.iteration, command.last);
      case 'stop_generation':
        return generations.stop();
      case 'report_plan':
        return generations.reportPlan(command.iteration);
      case 'complete_iteration':
        return generations.complete(command.final);
      case 'budget_exceeded':
        log.append('budget_exceeded', { budget: command.budget, limit: command.limit, used: command.used });
        return;
      case 'end_run':
        segments.giveUp();
        generations.announceEnd(command);
        context.journal.endRun(context.runNumber, command.status, context.clock.now());
        log.afterSync(() => context.ended(command));
        return;
      case 'drained':
        progress.drained = true;
    }
  };

  const live = async (): Promise<void> => {
    generations.announceStart();
    decide({ type: 'run_started', at: context.clock.now(), policy: context.policy });
    await log.commit();
    while (!progress.drained) {
      for (const input of await inbox.take()) perceive(input);
      await log.commit();
    }
  };

  return {
    catchUp: () => segments.catchUp(),
    approvalKey: (approvalId) => actions.approvalKey(approvalId),
    drained: live().finally(() => actions.abortAll()),
  };
}
