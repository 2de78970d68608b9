/** Mistakes in attempts of actions: when they start, end, and run again. */
import type { Patch } from '../patch.ts';

const ATTEMPTS = 'src/engine/actions/attempts.ts';

export const ACTION_PATCHES: readonly Patch[] = [
  {
    name: 'an unsafe attempt starts before its start is on disk',
    file: ATTEMPTS,
    find: `if (tool === null || tool.effects === 'unsafe') log.afterSync(run);\n    else log.afterWrite(run);`,
    replace: `log.afterWrite(run);`,
    invariant: 'recorded first',
  },
  {
    name: 'recovery runs every interrupted attempt again',
    file: ATTEMPTS,
    find: `return mayRepeat ? await execute() : unknownOutcome(action, null);`,
    replace: `return await execute();`,
    invariant: 'unsafe once',
  },
  {
    name: 'a failed unsafe action is repeated like any other',
    file: 'src/scheduler/attempts.ts',
    find: `if (policy.effects === 'unsafe' && !beforeDispatch) return 1;`,
    replace: ``,
    invariant: 'unsafe once',
  },
  {
    name: 'a replay starts the recorded attempts at once',
    file: ATTEMPTS,
    find: `if (isRecorded) this.#interrupted.set(key, start);\n    else this.#run`,
    replace: `this.#run`,
    invariant: 'unsafe once',
  },
  {
    name: 'an action that failed for the last time is also retried',
    file: 'src/scheduler/dispatch.ts',
    find: `error)) return settle(frame, node, { status: 'failed', error });\n  out.push({ type: 'clear_timer', timer: attemptTimer('timeout', node) });`,
    replace: `error)) settle(frame, node, { status: 'failed', error });\n  out.push({ type: 'clear_timer', timer: attemptTimer('timeout', node) });`,
    invariant: 'one end',
  },
  {
    name: 'one attempt too many',
    file: 'src/scheduler/dispatch.ts',
    find: `if (attempt >= attemptsAllowed(`,
    replace: `if (attempt > attemptsAllowed(`,
    invariant: 'within limits',
  },
  {
    name: 'timers of a recovered run do not continue',
    file: 'src/engine/actions/run-timers.ts',
    find: `this.set(timer, Math.max(0, delayMs - passedMs));`,
    replace: `void passedMs;`,
    invariant: 'everything ends',
  },
  {
    name: 'a waiting run keeps its timers',
    file: 'src/engine/actions/expiries.ts',
    find: `    this.#isSuspended = true;\n    this.#disarm();`,
    replace: `    this.#isSuspended = true;`,
    invariant: 'parked is free',
  },
  {
    name: 'a request for approval never expires',
    file: 'src/scheduler/prepare.ts',
    find: `frame.out.push({ type: 'set_timer', timer: \`approval:\${node.key}\`, delayMs: limits.approvalExpiryMs });`,
    replace: ``,
    invariant: 'everything ends',
  },
  {
    name: 'a denied action runs, unless the person gives a reason',
    file: 'src/scheduler/waiting.ts',
    find: `if (approved) {`,
    replace: `if (approved || note === null) {`,
    invariant: 'approved first',
  },
  {
    name: 'an action whose request has expired runs',
    file: 'src/scheduler/waiting.ts',
    find: `deny(frame, node, \`Action "\${node.id}" was not approved in time\`);`,
    replace: `lookup(frame, node);`,
    invariant: 'approved first',
  },
  {
    name: 'a decision is answered before it is on disk',
    file: 'src/engine/actions/approvals.ts',
    find: `if (onDecided !== undefined) log.afterSync(() => onDecided(true));`,
    replace: `onDecided?.(true);`,
    invariant: 'approved first',
  },
  {
    name: 'a request stays open after its decision',
    file: 'src/engine/actions/approvals.ts',
    find: `    this.#open.delete(key);\n    return id;`,
    replace: `    return id;`,
    invariant: 'approved first',
  },
  {
    name: 'conditions are ignored',
    file: 'src/engine/actions/conditions.ts',
    find: `if (when === null) return`,
    replace: `if (when !== undefined) return`,
    invariant: 'order',
  },
  {
    name: 'an action with a used idempotency key runs again',
    file: 'src/engine/actions/outcome-cache.ts',
    find: `if (earlier !== null) return { type: 'outcome'`,
    replace: `if (earlier?.output === undefined && earlier !== null) return { type: 'outcome'`,
    invariant: 'unsafe once',
  },
];
