/**
 * One run, from the first input to the last: the whole flow of the system in one place.
 *
 *   model text -> protocol events -> scheduler commands -> journal -> executors and readers
 *
 * A run is a loop over turns. A turn takes all new inputs (text, outcomes, timers, cancels), lets the scheduler decide,
 * appends the decisions to the journal, waits until they are durable, starts their effects and notifies the readers:
 * append, act, emit (J1). Effects that may run twice begin during that wait. Nothing else starts, retries, cancels or times out an action.
 */
import type { ActionKey } from '../../domain/action.ts';
import { limits } from '../../domain/limits.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import {
  action as declarationOf,
  initialState,
  isAtRest,
  isBlockedByOthers,
  lacksAnswers,
  lookup,
  step,
} from '../../scheduler/step.ts';
import type { RunState } from '../../scheduler/step.ts';
import type { RunPolicy, SchedulerCommand, SchedulerInput } from '../../scheduler/types.ts';
import { brokeOff } from '../../scheduler/verdict.ts';
import type { OpenRequest } from '../actions/approval-list.ts';
import { feedFetcher } from '../feeds/feed-sources.ts';
import { ActionRunner } from '../actions/action-runner.ts';
import { LiveTokens } from '../generation/live-tokens.ts';
import { cutOf, GenerationRunner } from '../generation/generation-runner.ts';
import type { InputQueue } from './input-queue.ts';
import type { RunInput, UsageOf } from './run-input.ts';
import { inputOf, randomOf, recordInput } from './recording.ts';
import type { Replay } from '../replay/replay.ts';
import { RunClock } from './run-clock.ts';
import { recordPrompt } from '../generation/prompt-record.ts';
import { RunLog } from './run-log.ts';
import type { ActionLabel } from './run-log.ts';
import { OutcomeReader } from './outcome-reader.ts';
import { Results } from './results.ts';
import type { RunContext, RunEnd } from './run-context.ts';
import { Segments } from '../generation/segments.ts';
import { renderReference } from './resolve-names.ts';

/** Access to a live run for clients and the session. */
export interface LiveRun {
  /** Patches with the whole text of the open blocks (J4). */
  catchUp(): ReturnType<Segments['catchUp']>;
  /** The same with the blocks whose end could not be written, for a run that fails. */
  unwritten(): ReturnType<Segments['unwritten']>;
  /** Whether a message can still be shown to its model (C5). */
  canReceive(): boolean;
  /** Whether it waits for people and clients only (J8, C3). */
  isParked(): boolean;
  /** Whether, in addition, nothing of it is running in the background (S4). */
  isAtRest(): boolean;
  /** When the next approval or call of a client expires, epoch milliseconds; null if none is open (J8, C3). */
  wakeAt(): number | null;
  /** The host is no longer kept in memory for this run: it must be woken at `wakeAt` (J8). */
  suspend(): void;
  /** The host is kept in memory for it again. */
  resume(): void;
  /** The action of an open approval, or null (J8). */
  approvalKey(approvalId: string): ActionKey | null;
  /** The approval requests that can be decided (J8). */
  openApprovals(): readonly OpenRequest[];
  /** Whether the client can answer this action's call (C3). */
  isCallOpen(key: ActionKey): boolean;
  /** Resolves when nothing of the run is running any more; rejects only for internal errors. */
  readonly drained: Promise<void>;
}

/** Inputs from the stream of a generation; its end is decided by the scheduler. */
const STREAMED: ReadonlySet<RunInput['type']> = new Set<RunInput['type']>(['protocol', 'reasoning', 'token']);

/** An answer of a person or a client. Several that come together do not let the run wait in between. */
function isAnswer(input: RunInput): input is Extract<RunInput, { type: 'approval_resolved' | 'client_answered' }> {
  return input.type === 'approval_resolved' || input.type === 'client_answered';
}

/**
 * Starts a run. Its inputs arrive in `inputQueue`, everything else is in `given`.
 *
 * @param replay the record of an interrupted run, which continues after the record (J2)
 * @throws EngineError `not_recoverable` if the record cannot be replayed
 */
export function startRun(given: RunContext, inputQueue: InputQueue, replay: Replay | null = null): LiveRun {
  const clock = new RunClock(given.clock);
  const context: RunContext = { ...given, clock };
  const log = new RunLog({ ...context, replay });
  const outcomes = new OutcomeReader((seq) => context.journal.outputAt(seq));
  const results = new Results((seq) => outcomes.at(seq));
  let state: RunState = initialState();
  const segments = new Segments(log, {
    render: renderReference,
    // The answer of a workflow is its outputs, as JSON.
    hasBlockForms: context.source.type !== 'workflow',
    streamThoughts: context.resolved.agent.loop.streamThoughts,
    outgoingText: context.outgoingText ?? null,
  });
  const tokens = new LiveTokens(log, context.outgoingText ?? null);
  const fetchFeed = feedFetcher(context, {
    moment: () => ({ iteration: log.iteration, usage: generations.usage.totals }),
    used: (usage) => inputQueue.put({ type: 'usage', usage, of: { feed: true } }),
  });
  const shared = { context, log, results, inputQueue, state: () => state, fetchFeed };
  const actions = new ActionRunner({ ...shared, outcomes, replay });
  const generations = new GenerationRunner({
    ...shared,
    segments,
    isTaken: (name) => lookup(state, name) !== null || actions.names.isBound(name),
  });
  const progress: { drained: boolean; end: RunEnd | null; cancelReason: string | null } = {
    drained: false,
    end: null,
    cancelReason: null,
  };

  /** Text first: the model's output becomes blocks, declarations and rejections. */
  const read = (event: ProtocolEvent, broke = false): void => {
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
        const closed = generations.blocks.closeResponse(event.unclosed, broke);
        if (closed !== null) decide({ type: 'response_closed', at, ...closed });
        return;
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
        return generations.blocks.text(event, broke);
    }
  };

  /** What called a model, for the event of its usage. */
  const callerOf = (of: UsageOf | undefined): ActionLabel | 'feed' | null => {
    if (of === undefined) return null;
    return 'feed' in of ? 'feed' : declarationOf(state, of.action);
  };

  const isOver = (): boolean => progress.end !== null && progress.end.status !== 'waiting';

  /** @param random the random number for this input, if it needs one (S7) */
  const handle = (arrived: RunInput, random: number): void => {
    // Text that arrived together with a cancel, or later, is not shown (J5).
    if (isOver() && STREAMED.has(arrived.type)) return;
    // It becomes the message of the next run.
    if (isOver() && arrived.type === 'message_received') return arrived.onLate?.();
    const at = clock.now();
    const input = actions.staged(arrived);
    recordInput(log, context.source, input, at, random);
    switch (input.type) {
      case 'protocol':
        generations.blocks.endReasoning();
        for (const event of input.events) read(event);
        return actions.prewarm(input.events);
      case 'reasoning':
        return generations.blocks.reasoning(input.text);
      case 'token':
        return tokens.add(input.text);
      case 'prompt':
        return recordPrompt(context, log, input.request);
      case 'usage':
        return decide({ type: 'usage_recorded', at, ...generations.usage.record(input.usage, callerOf(input.of)) });
      case 'generation_ended': {
        tokens.end();
        generations.blocks.end();
        log.releasePrompt();
        const broke = brokeOff(input.finish);
        // What the reader still had when the run was cancelled is not shown either (J5).
        for (const event of isOver() ? [] : input.events) {
          // `generation_cut` reports the block of a cut generation.
          if (event.type === 'warning' && event.code === 'unclosed' && cutOf(input.finish) !== null) continue;
          read(event, broke);
        }
        return decide({ type: 'generation_ended', at, ...generations.ended(input, at) });
      }
      case 'progress':
        return actions.attempts.progress(input);
      case 'attempt_ended':
        return decide(actions.attempts.ended(input, at, random));
      case 'client_called': {
        const called = actions.clients.called(input);
        return called === null ? undefined : decide({ ...called, at });
      }
      case 'client_answered': {
        const { key, more } = input;
        // An accepted result, and the end of its action (C3).
        return log.atomically(() => {
          const outcome = actions.clients.answered(input);
          if (outcome === null) return;
          const ended = actions.attempts.ended({ type: 'attempt_ended', key, attempt: 1, outcome }, at, random);
          decide(ended, more);
        });
      }
      case 'policy_judged': {
        const judged = actions.policies.judged(input);
        return judged === null ? undefined : decide({ ...judged, at });
      }
      case 'recalled':
        return decide(actions.lookups.answered(input, at));
      case 'timer_fired':
        actions.timers.fired(input.timer);
        return decide({ ...input, at, random });
      case 'approval_resolved': {
        const { type, key, approved, note, more } = input;
        // A late decision changes nothing.
        if (!actions.approvals.resolve(input)) return;
        return decide({ type, at, key, approved, note }, more);
      }
      case 'cancel_requested':
        progress.cancelReason ??= input.reason;
        return decide({ ...input, at });
      case 'generation_idle':
        return decide({ ...input, at });
      case 'feed':
        log.append('context_feed_updated', input.data);
        return;
      case 'message_received':
        return log.atomically(() => generations.receive(input));
      // It ends a turn, which writes what is due.
      case 'save':
    }
  };

  /** The scheduler decides. Immediate results of a command (such as a condition) are queued. */
  const pendingInputs: SchedulerInput[] = [];
  let deciding = false;
  /** @param expectsMore also for the immediate results */
  const decide = (input: SchedulerInput, expectsMore = false): void => {
    pendingInputs.push(input);
    if (deciding) return;
    deciding = true;
    for (let next = pendingInputs.shift(); next !== undefined; next = pendingInputs.shift()) {
      const decided = step(state, next, expectsMore);
      state = decided.state;
      for (const command of decided.commands) execute(command);
    }
    deciding = false;
  };

  /** The engine executes: every command becomes a journal entry, an effect, or both. */
  const execute = (command: SchedulerCommand): void => {
    switch (command.type) {
      case 'queue':
        return actions.queued(command.key, command.dependsOn);
      case 'evaluate':
        return decide({
          type: 'condition_evaluated',
          at: context.clock.now(),
          ...actions.conditions.evaluate(command.key),
        });
      case 'judge': {
        const judged = actions.policies.start(command.key);
        return judged === null ? undefined : decide({ ...judged, at: context.clock.now() });
      }
      case 'lookup':
        return actions.lookups.start(command.key);
      case 'start':
        return actions.attempts.start(command);
      case 'call_client':
        return actions.clients.start(command);
      case 'abort':
        actions.clients.abort(command.key, command.reason);
        return actions.attempts.abort(command.key, command.attempt, command.reason);
      case 'retry':
        return actions.retrying(command);
      case 'ask_approval':
        return decide({ type: 'approval_asked', at: context.clock.now(), ...actions.ask(command) });
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
      case 'check_answer': {
        const recorded = log.replaying ? (replay?.answerOf(command.iteration) ?? null) : null;
        const { missing, pending } = recorded ?? segments.checkAnswer();
        const hasBlanks = recorded === null && actions.blanksIn(command.iteration).length > 0;
        return decide({ type: 'answer_checked', at: context.clock.now(), missing: missing || hasBlanks, pending });
      }
      case 'complete_responses':
        return segments.completePending();
      case 'complete_iteration':
        return generations.complete(command.final, actions.blanksIn(command.iteration));
      case 'budget_exceeded':
        log.append('budget_exceeded', { budget: command.budget, limit: command.limit, used: command.used });
        return;
      case 'end_run': {
        progress.end = command;
        return log.atomically(() => {
          segments.finishPending();
          if (!log.wasRecorded(generations.announceEnd(command, actions.waitsFor()))) end(command);
        });
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

  /** Replays the record, and resumes what was interrupted (J2). */
  const recover = (record: Replay): void => {
    for (const recorded of record.inputs) {
      clock.at = recorded.at;
      if (recorded.type === 'run_started') begin(recorded.policy);
      else if (recorded.type !== 'condition_evaluated' && recorded.type !== 'approval_asked')
        handle(inputOf(recorded, record, generations), randomOf(recorded));
    }
    record.finish();
    segments.published();
    clock.at = null;
    const { status } = context.journal.runs.require(context.runNumber);
    const ended = progress.end;
    if (ended !== null && state.phase !== 'live' && status !== ended.status) log.atomically(() => end(ended));
    if (progress.drained) return context.journal.runs.close(context.runNumber);
    actions.resume();
    // The crash interrupted nothing of it (J8).
    if (isAtRest(state)) {
      // A workflow's program is at the end of its record, and continues when it has its answer.
      if (state.generation?.streaming === true) generations.resume();
      return;
    }
    const recoveries = record.recoveries + 1;
    const why = context.isSameHost === true ? 'The run was interrupted' : 'The host was restarted during this run';
    const message = `${why}; the run continues (recovery ${recoveries} of ${limits.recoveries})`;
    log.append('warning', { code: 'run_recovered', message });
    if (state.generation?.streaming === true) generations.resume();
    // The record ends within answers that came together.
    if (lacksAnswers(state)) inputQueue.put({ type: 'generation_idle' });
  };

  const end = (command: RunEnd): void => {
    const { open, openBackground } = state;
    const { cost = null } = generations.usage.totals;
    context.journal.runs.end(context.runNumber, command.status, clock.now(), open + openBackground > 0, cost);
    if (command.status !== 'waiting') context.ending(progress.cancelReason);
    log.afterSync(() => context.ended(command));
  };

  const live = async (): Promise<void> => {
    if (replay === null) begin(context.policy);
    await log.commit();
    notifyResumed();
    reportIdle();
    if (isAtRest(state)) context.rested();
    while (!progress.drained) {
      // Each wait costs a turn of the thread's queue, also one for nothing: text arrives hundreds of times a second.
      const arrival = inputQueue.arrival();
      if (arrival !== null) await arrival;
      const due = turn();
      if (due !== null) await due;
      const inputs = inputQueue.take();
      const areTogether = inputs.filter(isAnswer).length > 1;
      for (const taken of inputs) {
        const input = areTogether && isAnswer(taken) ? { ...taken, more: true as const } : taken;
        // The run ends with the cancel, so the usage of its model call is reported first (L6).
        const usage = input.type === 'cancel_requested' ? generations.usage.takeOpenCall() : null;
        if (usage !== null) handle({ type: 'usage', usage }, context.random());
        handle(input, context.random());
        if (journal.work - charged < limits.runTurnSteps) continue;
        // The other inputs are taken in a separate turn.
        notifyResumed();
        charge();
        const written = log.commit();
        if (written !== null) await written;
        const waited = turn();
        if (waited !== null) await waited;
      }
      if (areTogether && lacksAnswers(state)) handle({ type: 'generation_idle' }, 0);
      notifyResumed();
      scheduleSave();
      charge();
      const written = log.commit();
      if (written !== null) await written;
      reportIdle();
      if (isAtRest(state)) context.rested();
    }
  };

  /** Lets other work of the thread run if this session, or its owner, has used it for long. */
  const turn = (): Promise<void> | null => (context.share.isDue ? context.share.waitTurn() : null);
  const { journal } = context;
  let charged = journal.work;
  const charge = (): void => {
    context.share.charge(journal.work - charged);
    charged = journal.work;
  };

  /** A run that waited for a person or a client and has its answer is running again, also during a replay. */
  const notifyResumed = (): void => {
    if (progress.end?.status === 'waiting' && state.phase === 'live') context.resumed();
  };

  /** By the time a timer fires, a workflow has declared everything that needs no answer. */
  let idleScheduled = false;
  const reportIdle = (): void => {
    if (context.source.type !== 'workflow' || idleScheduled || !isBlockedByOthers(state)) return;
    idleScheduled = true;
    clock.schedule(0, () => {
      idleScheduled = false;
      inputQueue.put({ type: 'generation_idle' });
    });
  };

  /** Text that is not part of an event is written when there is enough of it, or after some time (J6). */
  let saving: { readonly at: number; readonly stop: () => void } | null = null;
  /** The timer has waited for its whole time, but the clock was set back meanwhile. */
  let isOverdue = false;
  const stopSaving = (): void => {
    saving?.stop();
    saving = null;
  };
  const scheduleSave = (): void => {
    const { saveBy } = log;
    const isDue = isOverdue;
    isOverdue = false;
    if (saveBy === null) return;
    const waitMs = isDue ? 0 : saveBy - clock.now();
    if (waitMs <= 0 || state.phase === 'parked' || isAtRest(state)) return log.save();
    if (saving !== null && saving.at <= saveBy) return;
    stopSaving();
    const stop = clock.schedule(waitMs, () => {
      saving = null;
      isOverdue = clock.now() < saveBy;
      inputQueue.put({ type: 'save' });
    });
    saving = { at: saveBy, stop };
  };
  /** A run that waits for people and clients holds no timer. All of its text is in events. */
  const suspend = (): void => {
    stopSaving();
    actions.timers.suspend();
  };
  const dispose = (): void => {
    stopSaving();
    // A run that has failed may still be preparing its model call.
    generations.stop();
    actions.dispose();
  };

  if (replay !== null) recover(replay);

  return {
    catchUp: () => segments.catchUp(),
    unwritten: () => segments.unwritten(),
    canReceive: () => context.source.type === 'model' && !isOver() && !progress.drained,
    isParked: () => state.phase === 'parked',
    isAtRest: () => isAtRest(state),
    wakeAt: () => actions.timers.nextExpiry(),
    suspend,
    resume: () => actions.timers.restart(),
    approvalKey: (approvalId) => actions.approvalKey(approvalId),
    openApprovals: () => actions.openApprovals(),
    isCallOpen: (key) => actions.isCallOpen(key),
    drained: live().finally(dispose),
  };
}
