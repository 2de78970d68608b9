/**
 * Messages into a run that is active or waits (C5).
 *
 * Owns the messages that are being given to a run, until they are durable there or in a run of their own. Does not own the
 * checks before (session-admission.ts), or which run takes them in the end (steered-messages.ts).
 *
 * Invariants:
 *  1. A message with a key is given to one run once, also if it is sent again meanwhile.
 *  2. A run receives at most `limits.steeredMessages`, those that are on their way included.
 */
import type { MessageContent } from '../../domain/content.ts';
import { EngineError } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import { runIdOf } from '../../journal/run-id.ts';
import type { SteeredMessage } from '../../journal/steered-table.ts';
import { recordOf } from './run-setup.ts';
import type { SessionScope } from './session-ports.ts';
import type { SessionRecovery } from './session-recovery.ts';
import type { SessionRuns } from './session-runs.ts';

/** A message that is durable. */
export interface Accepted {
  /** Its run. */
  readonly run: Promise<RunRecord>;
  /** The run that has received it, and shows it or passes it on; null: the run is certain. */
  readonly receiver: RunRecord | null;
}

/** A message whose run is certain. */
export const certain = (run: RunRecord): Accepted => ({ run: Promise.resolve(run), receiver: null });

/** A message for a run that is active or waits. */
interface Steering {
  /** Of a run with this message. */
  readonly input: JsonObject;
  readonly content: MessageContent;
  readonly idempotencyKey: string | null;
  readonly store: () => void;
}

interface SteeringParts {
  readonly scope: SessionScope;
  readonly runs: SessionRuns;
  readonly recovery: Pick<SessionRecovery, 'forgiveFeeds'>;
  /** @throws EngineError `unknown_session` once the session accepts nothing more */
  readonly requireOpen: () => void;
}

export class SessionSteering {
  readonly #scope: SessionScope;
  readonly #journal: Journal;
  readonly #runs: SessionRuns;
  readonly #recovery: SteeringParts['recovery'];
  readonly #requireOpen: () => void;
  /** Messages that are being given to a run, by their keys; resolve when they are durable, there or in a run of their own. */
  readonly #underWay = new Map<string | null, Promise<void>>();
  /** Number of messages that were given to a run and are not stored yet, by the run. */
  readonly #giving = new Map<number, number>();

  constructor({ scope, runs, recovery, requireOpen }: SteeringParts) {
    this.#scope = scope;
    this.#journal = scope.journal;
    this.#runs = runs;
    this.#recovery = recovery;
    this.#requireOpen = requireOpen;
  }

  /**
   * The end of the message with this key that is being given to a run; undefined if there is none. A caller that awaits it must ask
   * again: what follows has to be in the turn of the answer.
   */
  underWay(key: string | null): Promise<void> | undefined {
    return this.#underWay.get(key);
  }

  /** Nothing else with this key is accepted until `work` has ended. */
  async alone<T>(key: string | null, work: () => Promise<T>): Promise<T> {
    const working = work();
    if (key === null) return await working;
    const ended = working.then(
      () => void this.#underWay.delete(key),
      () => void this.#underWay.delete(key),
    );
    this.#underWay.set(key, ended);
    return await working;
  }

  /** The acceptance of a message that a run has received, and that may still become that of another run. */
  takerOf({ run, number, iteration }: SteeredMessage): Accepted {
    const { runs, steered } = this.#journal;
    const isOpen = this.#runs.get(run)?.end === null && steered.unshown(run).some((one) => one.number === number);
    if (!isOpen) return certain(runs.require(run));
    const taken = new Promise<number>((resolve) => this.#runs.steering.wait({ run, number, iteration }, resolve));
    return { run: taken.then((taker) => runs.require(taker)), receiver: runs.require(run) };
  }

  /**
   * Gives a message to the run that is active or waits (C5). Resolves when it is durable there.
   *
   * @returns null if the run ends first: then the message has a run of its own
   */
  async steer(
    { run, active }: NonNullable<SessionRuns['receiving']>,
    { input, content, idempotencyKey, store }: Steering,
  ): Promise<Accepted | null> {
    const { runs, steered } = this.#journal;
    const given = this.#giving.get(run) ?? 0;
    if (steered.count(run) + given >= limits.steeredMessages) {
      throw new EngineError(
        'queue_full',
        `Run ${runIdOf(recordOf(this.#scope), run)} has received ${limits.steeredMessages} messages`,
      );
    }
    this.#requireOpen();
    this.#recovery.forgiveFeeds();
    this.#giving.set(run, given + 1);
    const taken = Promise.withResolvers<number>();
    let isStored = false;
    const received = new Promise<boolean>((resolve) => {
      active.put({
        type: 'message_received',
        content,
        store: (seq, number, iteration) => {
          store();
          steered.add({ run, number, seq, iteration, idempotencyKey, input });
          this.#journal.whenWritten(() => {
            isStored = true;
            this.#runs.steering.wait({ run, number, iteration }, taken.resolve);
          });
        },
        onReceived: () => resolve(true),
        onLate: () => resolve(false),
      });
      // A run that is lost does not call back.
      active.live.drained.catch(() => undefined).finally(() => resolve(isStored));
    });
    const isReceived = await received;
    const left = (this.#giving.get(run) ?? 1) - 1;
    if (left === 0) this.#giving.delete(run);
    else this.#giving.set(run, left);
    if (!isReceived) return null;
    return { run: taken.promise.then((taker) => runs.require(taker)), receiver: runs.require(run) };
  }
}
