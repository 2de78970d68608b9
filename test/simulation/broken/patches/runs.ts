/** Mistakes in the runs of a session: their queue, their host, and their recovery. */
import type { Patch } from '../patch.ts';

const RUN = 'src/engine/run/run.ts';
const RUNS = 'src/engine/session/session-runs.ts';
const SESSION = 'src/engine/session/session.ts';
const RECOVERY = 'src/engine/session/session-recovery.ts';
const ABANDONED = 'src/engine/replay/abandoned-run.ts';

export const RUN_PATCHES: readonly Patch[] = [
  {
    name: 'no alarm supervises running work',
    file: SESSION,
    find: `if (this.busy || this.#recovery.isPending) times.push(this.#scope.clock.now() + limits.watchdogMs);`,
    replace: ``,
    invariant: 'everything ends',
  },
  {
    name: 'no alarm is set for an approval that expires',
    file: SESSION,
    find: `if (end !== null && !isHeld) times.push(live.wakeAt() ?? Infinity);`,
    replace: `void [live, end, isHeld];`,
    invariant: 'everything ends',
  },
  {
    name: 'the idempotency key is ignored',
    file: 'src/engine/session/session-admission.ts',
    find: `if (record === null) return null;`,
    replace: `if (record === null || record.input['content'] === request.content) return null;`,
    invariant: 'everything ends',
  },
  {
    name: 'recovery forgets queued runs',
    file: RECOVERY,
    find: `if (record.status === 'queued') this.#runs.add({ run: record.run, source, isRecovered: true }, false);\n      else`,
    replace: `if (record.status !== 'queued')`,
    invariant: 'everything ends',
  },
  {
    name: 'an interrupted generation is not continued',
    file: RUN,
    find: `log.append('warning', { code: 'run_recovered', message });\n    if (state.generation?.streaming === true) generations.resume();`,
    replace: `log.append('warning', { code: 'run_recovered', message });`,
    invariant: 'everything ends',
  },
  {
    name: 'a run stays open after its last action',
    file: RUN,
    find: `if (!log.replaying) context.journal.runs.close(context.runNumber);`,
    replace: ``,
    invariant: 'everything ends',
  },
  {
    name: 'a cancel forgets the queued runs',
    file: RUNS,
    find: `const queued = waiting.flatMap(({ run }) => (isMeant(run) ? [run] : []));`,
    replace: `const queued: number[] = [];`,
    invariant: 'nothing after the end',
  },
  {
    name: 'a run that waits for people keeps its host, so that nothing wakes it',
    file: RUNS,
    find: `    active.release();\n    active.live.suspend();\n    // It did`,
    replace: `    active.live.suspend();\n    // It did`,
    invariant: 'everything ends',
  },
  {
    name: 'a run that waits for people keeps the timer of its text',
    file: RUN,
    find: `    stopSaving();\n    actions.timers.suspend();`,
    replace: `    actions.timers.suspend();`,
    invariant: 'parked is free',
  },
  {
    name: 'an ended run keeps its host',
    file: 'src/engine/session/active-run.ts',
    find: `this.#held?.resolve();\n    this.#held = null;`,
    replace: `this.#held = null;`,
    invariant: 'bounded',
  },
  {
    name: 'an abandoned run ends actions that have ended',
    file: ABANDONED,
    find: `else if (ACTION_ENDS.has(event.type as JournaledEventType)) open.delete(key);`,
    replace: ``,
    invariant: 'one end',
  },
  {
    name: 'an abandoned run leaves actions that were not started',
    file: ABANDONED,
    find: `append('action_cancelled', { reason: error.message }, event, { key });`,
    replace: ``,
    invariant: 'one end',
  },
  {
    name: 'a run that waits for a person never rests',
    file: 'src/engine/session/session-runs.ts',
    find: `if (active?.end == null) return;\n    if (active.end`,
    replace: `if (active?.end == null || active.isHeld) return;\n    if (active.end`,
    invariant: 'parked is free',
  },
  {
    name: 'the queue has no limit',
    file: 'src/engine/session/session-runs.ts',
    find: `if (this.#queue.length >= limits.queuedMessages)`,
    replace: `if (this.#queue.length >= 1_000)`,
    invariant: 'within limits',
  },
  {
    name: 'every message finds a full queue',
    file: 'src/engine/session/session-runs.ts',
    find: `this.#queue.length >= limits.queuedMessages`,
    replace: `this.#queue.length >= 0`,
    invariant: 'everything ends',
  },
];
