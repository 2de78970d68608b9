/**
 * Results of clients for calls of client tools (C3).
 *
 * Owns the results that are being written. Does not own the calls (actions/client-calls.ts) or their record (the journal).
 *
 * Invariants:
 *  1. The first result counts. The same result again is accepted, also after a crash and after the end of the run.
 *  2. An accepted result is durable.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { canonicalOf } from '../../bounded/json-values.ts';
import { redactJson } from '../../bounded/redact-json.ts';
import type { ActionKey, ActionOutcome } from '../../domain/action.ts';
import { placeOfCall } from '../../domain/call-id.ts';
import type { CallPlace } from '../../domain/call-id.ts';
import { EngineError } from '../../domain/errors.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkMeter } from '../../domain/work.ts';
import { runIdOf } from '../../journal/run-id.ts';
import type { ActiveRun } from './active-run.ts';
import { recordOf } from './run-setup.ts';
import type { SessionScope } from './session-ports.ts';
import type { SessionRuns } from './session-runs.ts';

/** What a client posts: exactly one of both. */
export type CallResult = { readonly output: Json } | { readonly error: { readonly message: string } };

/** The answer to it. */
export interface SettledCall {
  readonly call_id: string;
  readonly run_id: string;
  readonly status: 'completed' | 'failed';
}

type Scope = Pick<SessionScope, 'journal' | 'redact'>;

export class SessionCalls {
  readonly #scope: Scope;
  readonly #runs: SessionRuns;
  /** Digests of results that are not durable yet, by call; each resolves to whether it counts. */
  readonly #settling = new Map<string, { readonly sha256: string; readonly counts: Promise<boolean> }>();

  constructor(scope: Scope, runs: SessionRuns) {
    this.#scope = scope;
    this.#runs = runs;
  }

  /**
   * Settles a call; resolves when the result is durable (J1).
   *
   * @throws EngineError `unknown_call`; `call_settled` if it is closed, unless by the same result; `run_in_progress` while
   *   another message is being answered
   */
  async settle(id: string, result: CallResult): Promise<SettledCall> {
    const record = recordOf(this.#scope);
    const place = placeOfCall(record, id);
    if (place === null) throw unknownCall(id);
    const digest = digestOf(result);
    const outcome = outcomeOf(result, this.#scope.redact);
    const settling = this.#settling.get(id);
    if (settling !== undefined) {
      if (settling.sha256 !== digest) {
        throw callSettled(id, runIdOf(record, place.run), 'answered', 'another result was posted');
      }
      await settling.counts;
      return await this.#settled(id, place, digest);
    }
    const key: ActionKey = `${place.iteration}/${place.ordinal}`;
    const active = this.#runs.get(place.run);
    if (active?.live.isCallOpen(key) === true) {
      this.#requireNoOther(place.run);
      const counts = this.#put(active, place.run, { key, outcome, sha256: digest });
      this.#settling.set(id, { sha256: digest, counts });
      try {
        await counts;
      } finally {
        this.#settling.delete(id);
      }
    }
    return await this.#settled(id, place, digest);
  }

  #requireNoOther(run: number): void {
    const { answering } = this.#runs;
    if (answering === null || answering === run) return;
    const runId = runIdOf(recordOf(this.#scope), answering);
    throw new EngineError('run_in_progress', `Run ${runId} answers another message and has not ended yet`, {
      run_id: runId,
    });
  }

  #put(
    active: ActiveRun,
    run: number,
    answer: { readonly key: ActionKey; readonly outcome: ActionOutcome; readonly sha256: string },
  ): Promise<boolean> {
    this.#runs.resume(run);
    return new Promise<boolean>((onDecided) => {
      active.put({ type: 'client_answered', ...answer, onDecided });
      // A run that ends first does not call back.
      active.live.drained.catch(() => undefined).finally(() => onDecided(false));
    });
  }

  /** Whether a run could not write what it was given, and is recovered: its calls are open again then. */
  #hasLostOwner(run: number): boolean {
    return this.#runs.get(run) === null && this.#scope.journal.runs.open().some((open) => open.run === run);
  }

  /** What the journal says about the call, once that is durable: the run may have ended because it could not write. */
  async #settled(id: string, place: CallPlace, digest: string): Promise<SettledCall> {
    await this.#scope.journal.sync();
    const found = this.#scope.journal.history.clientCall(place.run, place.iteration, id);
    if (found === null) throw unknownCall(id);
    const { called, settled } = found;
    if (settled === null && this.#hasLostOwner(place.run)) {
      throw new EngineError('storage_unavailable', `The result of call ${id} could not be written; post it again`);
    }
    if (settled === null) throw callSettled(id, called.run_id, 'cancelled', 'its action has ended');
    const { status, sha256: accepted } = settled.data;
    if ((status === 'completed' || status === 'failed') && accepted === digest) {
      return { call_id: id, run_id: called.run_id, status };
    }
    throw callSettled(id, called.run_id, accepted === undefined ? status : 'answered', REASONS[status]);
  }
}

const REASONS = {
  completed: 'another result was posted',
  failed: 'another result was posted',
  expired: 'the client did not answer in time',
  cancelled: 'it was cancelled',
} as const;

function unknownCall(id: string): EngineError {
  return new EngineError('unknown_call', `This session has no call "${id.slice(0, limits.excerptChars)}"`);
}

function callSettled(
  id: string,
  runId: string,
  status: 'answered' | 'completed' | 'failed' | 'expired' | 'cancelled',
  why: string,
): EngineError {
  return new EngineError('call_settled', `The call "${id}" is closed: ${why}`, {
    call_id: id,
    run_id: runId,
    call_status: status,
  });
}

/** The same for results that differ only in the order of members and in white space. */
function digestOf(result: CallResult): string {
  // The size of the body limits the work.
  const text = canonicalOf(result as Json, new WorkMeter(Infinity));
  return bytesToHex(sha256(new TextEncoder().encode(text)));
}

function outcomeOf(result: CallResult, redact: (text: string) => string): ActionOutcome {
  if ('output' in result) return { ok: true, output: redactJson(result.output, redact) };
  const message = redact(result.error.message);
  return { ok: false, error: { code: 'client_tool_failed', message, retryable: false } };
}
