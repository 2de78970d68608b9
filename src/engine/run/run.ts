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
import type { ActionKey } from '../../domain/action.ts';
import { limits } from '../../domain/limits.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import { action as declarationOf, initialState, isBlockedOnApproval, lookup, step } from '../../scheduler/step.ts';
import type { RunState } from '../../scheduler/step.ts';
import type { RunPolicy, SchedulerCommand, SchedulerInput } from '../../scheduler/types.ts';
import { ActionRunner } from '../actions/action-runner.ts';
import { GenerationRunner, INTERRUPTED } from '../generation/generation-runner.ts';
import type { Inbox } from './inbox.ts';
import type { RunInput } from './run-input.ts';
import { inputOf, randomOf, recordInput } from './recording.ts';
import type { Replay } from '../replay/replay.ts';
import { RunClock } from './run-clock.ts';
import { RunLog } from './run-log.ts';
import { OutcomeReader } from './outcome-reader.ts';
import { Results } from './results.ts';
import type { RunContext, RunEnd } from './run-context.ts';
import { Segments } from '../generation/segments.ts';
import { renderReference } from './resolve-names.ts';

/** Something a person or a reader asks of a live run. */
export interface LiveRun {
  /** Whole-text patches of the blocks that are open now (J4). */
  catchUp(): ReturnType<Segments['catchUp']>;
  /** Whether it waits for approvals only (J8). */
  isParked(): boolean;
  /** When an approval that the run waits for expires, epoch milliseconds; null when none is open (J8). */
  wakeAt(): number | null;
  /** Nobody holds the host for this run any more: at `wakeAt` it is to be roused (J8). */
  rest(): void;
  /** The host is held for it again. */
  rouse(): void;
  /** The action that an open approval asks about, or null (J8). */
  approvalKey(approvalId: string): ActionKey | null;
  /** Resolves when nothing of the run is at work any more; rejects for our own faults only. */
  readonly drained: Promise<void>;
}

/**
 * Starts a run; its inputs arrive in `inbox`, everything else comes from `given`.
 *
 * @param replay the record of a run that a crash broke off: it goes on from where the record ends (J2)
 * @throws EngineError `not_recoverable` when the record cannot be gone through again
 */
export function startRun(given: RunContext, inbox: Inbox, replay: Replay | null = null): LiveRun {
  const clock = new RunClock(given.clock);
  const context: RunContext = { ...given, clock };
  const log = new RunLog({ ...context, replay });
  const outcomes = new OutcomeReader((seq) => context.journal.outputAt(seq));
  const results = new Results((seq) => outcomes.at(seq));
  let state: RunState = initialState();
  const segments = new Segments(log, {
    render: renderReference,
    streamThoughts: context.resolved.agent.loop.streamThoughts,
  });
  const actions = new ActionRunner({ context, log, results, outcomes, inbox, state: () => state, replay });
  const generations = new GenerationRunner({ context, log, results, segments, inbox, state: () => state });
  const progress: { drained: boolean; end: RunEnd | null } = { drained: false, end: null };

  /** Text first: what the model said becomes blocks, declarations and rejections. */
  const read = (event: ProtocolEvent, interrupted: boolean): void => {
    const at = context.clock.now();
    switch (event.type) {
      case 'action_declared':
        generations.blocks.sawAction();
        return decide({ type: 'action_declared', at, action: event.action, policy: actions.policy(event.action) });
      case 'action_rejected':
        generations.blocks.sawAction();
        actions.settlements.reject(event.rejection);
        return decide({ type: 'action_refused', at, rejection: event.rejection });
      case 'response_completed': {
        const { final, refers } = generations.blocks.closeResponse(event.unclosed, interrupted && event.unclosed);
        return decide({ type: 'response_closed', at, final, refers });
      }
      case 'response_reference':
        return generations.blocks.refer(
          event.reference,
          (name): ActionKey | null => lookup(state, name)?.key ?? null,
          actions.names,
        );
      case 'warning':
        return log.warn(event.code, event.message);
      case 'action_opened':
        return;
      default:
        return generations.blocks.text(event, interrupted);
    }
  };

  /** @param random what chance gives, should it be asked (S7) */
  const perceive = (input: RunInput, random: number): void => {
    const at = clock.now();
    recordInput(log, context.source, input, at, random);
    switch (input.type) {
      case 'protocol':
        generations.blocks.endReasoning();
        for (const event of input.events) read(event, false);
        return actions.prewarm(input.events);
      case 'reasoning':
        return generations.blocks.reasoning(input.text);
      case 'token':
        return log.live('llm_token', { token: input.text });
      case 'usage':
        return decide({ type: 'usage_recorded', at, ...generations.usage.record(input.usage) });
      case 'generation_ended': {
        generations.blocks.endReasoning();
        for (const event of input.events) read(event, input.error?.code === INTERRUPTED);
        return decide({ type: 'generation_ended', at, ...generations.ended(input) });
      }
      case 'progress':
        return actions.attempts.progress(input);
      case 'attempt_ended':
        return decide(actions.attempts.ended(input, at, random));
      case 'recalled':
        return decide(actions.lookups.answered(input, at));
      case 'timer_fired':
        actions.timers.fired(input.timer);
        return decide({ ...input, at, random });
      case 'approval_resolved': {
        const { type, key, approved, note } = input;
        // A decision that came too late changes nothing.
        if (actions.approvals.resolve(input)) decide({ type, at, key, approved, note });
        return;
      }
      case 'cancel_requested':
      case 'generation_idle':
        return decide({ ...input, at });
      case 'feed':
        log.append('context_feed_updated', input.data);
        return;
      case 'save':
        return log.save();
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
        return decide({
          type: 'condition_evaluated',
          at: context.clock.now(),
          ...actions.conditions.evaluate(command.key),
        });
      case 'lookup':
        return actions.lookups.start(command.key);
      case 'start':
        return actions.attempts.start(command);
      case 'abort':
        return actions.attempts.abort(command.key, command.attempt, command.reason);
      case 'retry':
        return actions.retrying(command);
      case 'ask_approval':
        return decide({ type: 'approval_asked', at: context.clock.now(), ...actions.approvals.ask(command.key) });
      case 'settle':
        actions.settled(command);
        return segments.advance();
      case 'set_timer':
        return actions.timers.set(command.timer, command.delayMs);
      case 'clear_timer':
        return actions.timers.clear(command.timer);
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
      case 'end_run': {
        segments.giveUp();
        progress.end = command;
        if (!log.wasRecorded(generations.announceEnd(command))) end(command);
        return;
      }
      case 'drained':
        if (!log.replaying) context.journal.runs.close(context.runNumber);
        progress.drained = true;
    }
  };

  const begin = (policy: RunPolicy): void => {
    const at = clock.now();
    log.record({ type: 'run_started', at, policy });
    generations.announceStart();
    decide({ type: 'run_started', at, policy });
  };

  /** Goes through the record, and takes up what was going on when it broke off (J2). */
  const goOn = (record: Replay): void => {
    for (const recorded of record.inputs) {
      clock.at = recorded.at;
      if (recorded.type === 'run_started') begin(recorded.policy);
      else if (recorded.type !== 'condition_evaluated' && recorded.type !== 'approval_asked')
        perceive(inputOf(recorded, record, generations), randomOf(recorded));
    }
    record.finish();
    clock.at = null;
    const { status } = context.journal.runs.require(context.runNumber);
    if (progress.end !== null && state.phase !== 'live' && status !== progress.end.status) end(progress.end);
    if (progress.drained) return context.journal.runs.close(context.runNumber);
    actions.resume();
    // Waiting for a person is no work that could have been broken off (J8).
    if (state.phase === 'parked') {
      // A workflow's program stands where its record ends, and writes on when it has its answer.
      if (state.generation?.streaming === true) generations.resume();
      return;
    }
    const recoveries = record.recoveries + 1;
    const message = `The host was restarted while this run was going on; it goes on (${recoveries} of ${limits.recoveries})`;
    log.append('warning', { code: 'run_recovered', message });
    if (state.generation?.streaming === true) generations.resume();
  };

  const end = (command: RunEnd): void => {
    const { open, openBackground } = state;
    context.journal.runs.end(context.runNumber, command.status, clock.now(), open + openBackground > 0);
    log.afterSync(() => context.ended(command));
  };

  const live = async (): Promise<void> => {
    if (replay === null) begin(context.policy);
    await log.commit();
    holdOn();
    restInTime();
    while (!progress.drained) {
      for (const input of await inbox.take(turn)) {
        // The run ends with the cancel: what its model call has used is told before (L6).
        const usage = input.type === 'cancel_requested' ? generations.usage.estimateOpenCall() : null;
        if (usage !== null) perceive({ type: 'usage', usage }, context.random());
        perceive(input, context.random());
        if (journal.work - charged < limits.runTurnSteps) continue;
        // The rest is taken in a turn of its own.
        holdOn();
        charge();
        await log.commit();
        const waited = turn();
        if (waited !== null) await waited;
      }
      holdOn();
      saveInTime();
      charge();
      await log.commit();
      restInTime();
    }
  };

  /** Others of the thread have theirs where this session, or its owner, has worked for long. */
  const turn = (): Promise<void> | null => (context.share.isDue ? context.share.waitTurn() : null);
  const { journal } = context;
  let charged = journal.work;
  const charge = (): void => {
    context.share.charge(journal.work - charged);
    charged = journal.work;
  };

  /** What had been waiting for a person and has its answer is at work again; also where its record says so. */
  const holdOn = (): void => {
    if (progress.end?.status === 'waiting' && state.phase === 'live') context.resumed();
  };

  /** What a workflow still has to say without an answer it has said when a timer fires: it waits for nothing else. */
  let resting = false;
  const restInTime = (): void => {
    if (context.source.type !== 'workflow' || resting || !isBlockedOnApproval(state)) return;
    resting = true;
    clock.schedule(0, () => {
      resting = false;
      inbox.put({ type: 'generation_idle' });
    });
  };

  /** Text that no event carries is written when there is enough of it, or in time (J6). */
  let saving = false;
  const saveInTime = (): void => {
    const waitMs = log.saveBy === null ? null : log.saveBy - clock.now();
    if (waitMs !== null && waitMs <= 0) return log.save();
    if (waitMs === null || saving) return;
    saving = true;
    clock.schedule(waitMs, () => {
      saving = false;
      inbox.put({ type: 'save' });
    });
  };

  if (replay !== null) goOn(replay);

  return {
    catchUp: () => segments.catchUp(),
    isParked: () => state.phase === 'parked',
    wakeAt: () => actions.timers.approvalExpiry(),
    rest: () => actions.timers.suspend(),
    rouse: () => actions.timers.restart(),
    approvalKey: (approvalId) => actions.approvalKey(approvalId),
    drained: live().finally(() => actions.dispose()),
  };
}
