/** Mistakes with calls that the client executes. */
import type { Patch } from '../patch.ts';

const CALLS = 'src/engine/actions/client-calls.ts';

export const CLIENT_PATCHES: readonly Patch[] = [
  {
    name: 'the client has its answer before the result is on disk',
    file: 'src/engine/session/session-calls.ts',
    find: `await this.#scope.journal.sync();`,
    replace: ``,
    invariant: 'settled once',
  },
  {
    name: 'another result for a call that is settled is accepted',
    file: 'src/engine/session/session-calls.ts',
    find: `&& accepted === digest`,
    replace: `&& accepted !== ''`,
    invariant: 'settled once',
  },
  {
    name: 'a call that expires or is cancelled is not settled',
    file: CALLS,
    find: `if (this.#open.has(key)) this.#settle(key, settlement.status === 'failed' ? 'expired' : 'cancelled');`,
    replace: `this.#open.delete(key);`,
    invariant: 'settled once',
  },
  {
    name: 'an abandoned run leaves its calls open',
    file: 'src/engine/replay/abandoned-run.ts',
    find: `if (call !== undefined) append(`,
    replace: `if (call === '') append(`,
    invariant: 'settled once',
  },
  {
    name: 'a run that waits for clients keeps the timer of their expiry',
    file: 'src/engine/actions/run-timers.ts',
    find: `this.#expiries.suspend();`,
    replace: ``,
    invariant: 'parked is free',
  },
  {
    name: 'the background actions of an ended run that wait for clients keep its host',
    file: 'src/scheduler/queries.ts',
    find: `(phase === 'parked' || phase === 'ended')`,
    replace: `phase === 'parked'`,
    invariant: 'parked is free',
  },
  {
    name: 'a request shows only the last result of the generation before it',
    file: 'src/engine/generation/generation-runner.ts',
    find: `.ofIteration(this.#log.iteration)`,
    replace: `.ofIteration(this.#log.iteration).slice(-1)`,
    invariant: 'results shown',
  },
  {
    name: 'only results of actions that have run for some time are shown',
    file: 'src/engine/generation/generation-runner.ts',
    find: `.filter((result) => !result.silent)`,
    replace: `.filter((result) => !result.silent && result.endedAt !== result.startedAt)`,
    invariant: 'results shown',
  },
  {
    name: 'a result of a client is lost if its host ends before the next request',
    file: 'src/engine/run/recording.ts',
    find: `const { type, key, error, more } = recorded;
      const outcome: ActionOutcome = error === null ? { ok: true, output: replay.outputOf(key) } : { ok: false, error };`,
    replace: `const { type, key, error, more } = recorded;
      const outcome: ActionOutcome = error === null ? { ok: true, output: null } : { ok: false, error };`,
    invariant: 'results shown',
  },
];
