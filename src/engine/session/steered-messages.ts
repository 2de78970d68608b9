/**
 * Messages that come during a run (C5): which run they are for, and who waits to know it.
 *
 * The run shows them to the model in its next generation. Those that no generation has shown when the run ends become the
 * messages of runs of their own.
 *
 * Invariants:
 *  1. A message is in the turn of one run, or the message of one run: it moves in the turn in which its run ends.
 *  2. Who waits for a message is told once it is durable which run has it.
 */
import type { JsonObject } from '../../domain/json.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { SteeredMessage } from '../../journal/steered-table.ts';
import type { SessionScope } from './session-ports.ts';

interface RunQueue {
  /** Creates a queued run with this input, which follows the head. */
  readonly create: (input: JsonObject, idempotencyKey: string | null) => RunRecord;
  /** Puts it behind all others. @param cancelReason ends it instead, because what it was for was cancelled; null: it waits */
  readonly add: (run: number, cancelReason: string | null) => void;
}

interface Waiting {
  readonly number: number;
  /** The iteration in which the message came. */
  readonly iteration: number;
  /** The run that has it. */
  run: number;
  readonly resolve: (run: number) => void;
}

export class SteeredMessages {
  readonly #scope: Pick<SessionScope, 'journal'>;
  readonly #queue: RunQueue;
  /** Who waits for messages whose run is not certain, by the run that has received them. */
  readonly #waiting = new Map<number, Waiting[]>();

  constructor(scope: Pick<SessionScope, 'journal'>, queue: RunQueue) {
    this.#scope = scope;
    this.#queue = queue;
  }

  /**
   * A run has received a message.
   *
   * @param resolve called with the number of the run that takes it: when a generation shows it, when its run waits for
   *   people or clients, or when its run has ended
   */
  wait(
    { run, number, iteration }: Pick<SteeredMessage, 'run' | 'number' | 'iteration'>,
    resolve: (run: number) => void,
  ): void {
    const waiting = { number, iteration, run, resolve };
    this.#waiting.set(run, [...(this.#waiting.get(run) ?? []), waiting]);
  }

  /**
   * A run ends: its messages that no generation has shown become messages of the next runs. In the transaction with its end.
   *
   * @param cancelReason a client has cancelled the run, and them with it; null: they run next
   */
  passOn(run: number, cancelReason: string | null): void {
    const { steered } = this.#scope.journal;
    for (const message of steered.unshown(run)) {
      steered.remove(message);
      const next = this.#queue.create(message.input, message.idempotencyKey);
      this.#scope.journal.whenWritten(() => {
        this.#queue.add(next.run, cancelReason);
        for (const waiting of this.#waiting.get(run) ?? []) {
          if (waiting.number === message.number) waiting.run = next.run;
        }
      });
    }
  }

  /**
   * Which run has each of the messages of this one is certain now, and durable.
   *
   * @param before only messages of earlier iterations
   */
  settle(run: number, before = Infinity): void {
    const all = this.#waiting.get(run) ?? [];
    const left = all.filter(({ iteration }) => iteration >= before);
    if (left.length === 0) this.#waiting.delete(run);
    else this.#waiting.set(run, left);
    for (const waiting of all) if (waiting.iteration < before) waiting.resolve(waiting.run);
  }
}
