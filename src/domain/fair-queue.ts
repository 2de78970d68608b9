/**
 * Fair scheduling of owners: one thread serves the sessions of all owners, without preemption.
 *
 * Owns the recent usage of each owner, and the queue. Does not own the work of a turn. All sessions of a thread share
 * one `FairQueue`; each session, and each long request, has its own `ThreadShare`.
 *
 * Invariants:
 *  1. Small work never waits. A share queues only past `limits.turnSteps` of its own, or, while its owner uses more
 *     than half of the thread, past `limits.busyTurnSteps` and for its first work.
 *  2. One share begins a turn at a time. If another owner has worked recently, the next turn begins only after twice
 *     the duration of the previous work, so that others can run.
 *  3. Among waiting owners, the one with the least recent usage goes first, regardless of the number of its shares.
 *     Within an owner, small work goes first.
 *  4. A single active owner waits for no pauses.
 *  5. No share waits for a promise of another one: each polls with its own timer. One that stops polling loses its
 *     place.
 */
import { limits } from './limits.ts';
import type { Clock } from './ports/clock.ts';
import { sleep } from './sleep.ts';

interface Ticket {
  readonly share: ThreadShare;
  /** When it polls again. */
  wakeAt: number;
}

interface OwnerQueue {
  readonly small: Ticket[];
  readonly large: Ticket[];
}

interface Usage {
  /** Steps, minus the decay since `at`: half of the time that has passed. */
  steps: number;
  at: number;
}

export class FairQueue {
  readonly clock: Clock;
  /** No queued share begins before this time. */
  #nextTurnAt = -Infinity;
  /** The share whose turn has begun, and when; null once its work is charged. */
  #begun: { readonly share: ThreadShare; readonly at: number } | null = null;
  /** The last two different owners that worked, and when: pauses are for other owners. */
  #worked: { readonly owner: string; readonly at: number } | null = null;
  #workedBefore: { readonly owner: string; readonly at: number } | null = null;
  readonly #used = new Map<string, Usage>();
  /** Waiting shares, by owner. */
  readonly #lines = new Map<string, OwnerQueue>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Whether the owner has recently used more than half of the thread. */
  isBusy(owner: string): boolean {
    return this.#usedBy(owner, this.clock.now()) > limits.ownerSteps;
  }

  charge(share: ThreadShare, owner: string, steps: number): void {
    const now = this.clock.now();
    const used = this.#usedBy(owner, now) + steps;
    this.#used.set(owner, { steps: used, at: now });
    if (this.#used.size > limits.ownersRemembered) this.#forgetIdle(now);
    if (this.#worked !== null && this.#worked.owner !== owner) this.#workedBefore = this.#worked;
    this.#worked = { owner, at: now };
    const isLong = this.#nextTurnAt - now > limits.pauseMostMs;
    // A pause longer than the maximum means that the clock was set back.
    const from = isLong ? now : Math.max(now, this.#nextTurnAt);
    const hasOtherOwner = this.#workedBefore !== null && now - this.#workedBefore.at < limits.activeOwnerMs;
    // A single active owner needs no pauses, only turns.
    const pauseMs = hasOtherOwner ? steps / limits.stepsPerPauseMs : 0;
    this.#nextTurnAt = Math.min(from + pauseMs, now + limits.pauseMs);
    if (this.#begun?.share === share) this.#begun = null;
  }

  /** Resolves when it is the share's turn. @throws the signal's reason if it aborts first */
  async take(share: ThreadShare, owner: string, isSmall: boolean, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#lines.size === 0 && this.#untilFree() <= 0) {
      this.#begun = { share, at: this.clock.now() };
      return;
    }
    const ticket: Ticket = { share, wakeAt: this.clock.now() };
    this.#enqueue(ticket, owner, isSmall);
    try {
      for (;;) {
        const waitMs = this.#waitMs(ticket, owner);
        if (waitMs <= 0) {
          this.#begun = { share, at: this.clock.now() };
          return;
        }
        ticket.wakeAt = this.clock.now() + waitMs;
        await sleep(waitMs, this.clock, signal);
      }
    } finally {
      this.#remove(ticket, owner);
    }
  }

  #untilFree(): number {
    const begunUntil = this.#begun === null ? -Infinity : this.#begun.at + limits.turnStartMs;
    const waitMs = Math.max(this.#nextTurnAt, begunUntil) - this.clock.now();
    return waitMs > limits.pauseMostMs ? 0 : waitMs;
  }

  /** Milliseconds until the ticket should poll again; 0 if it is its turn. */
  #waitMs(ticket: Ticket, owner: string): number {
    const line = this.#lines.get(owner);
    const lane = line === undefined ? undefined : line.small.includes(ticket) ? line.small : line.large;
    if (line === undefined || lane === undefined || !lane.includes(ticket)) {
      // It polled too late and has lost its place.
      this.#enqueue(ticket, owner, false);
      return 1;
    }
    this.#dropStale(line);
    const before = lane === line.small ? lane.indexOf(ticket) : line.small.length + lane.indexOf(ticket);
    const first = this.#nextOwner();
    if (before === 0 && first === owner) return Math.max(0, this.#untilFree());
    const others = first === owner ? 0 : 1;
    return Math.max(1, Math.ceil(this.#untilFree()) + (before * this.#lines.size + others) * limits.turnEstimateMs);
  }

  /** The waiting owner with the least usage. */
  #nextOwner(): string | null {
    const now = this.clock.now();
    let first: string | null = null;
    let least = Infinity;
    for (const owner of this.#lines.keys()) {
      const used = this.#usedBy(owner, now);
      if (used < least) [first, least] = [owner, used];
    }
    return first;
  }

  #enqueue(ticket: Ticket, owner: string, isSmall: boolean): void {
    let line = this.#lines.get(owner);
    if (line === undefined) {
      line = { small: [], large: [] };
      this.#lines.set(owner, line);
    }
    (isSmall ? line.small : line.large).push(ticket);
  }

  #remove(ticket: Ticket, owner: string): void {
    const line = this.#lines.get(owner);
    if (line === undefined) return;
    for (const lane of [line.small, line.large]) {
      const at = lane.indexOf(ticket);
      if (at >= 0) lane.splice(at, 1);
    }
    if (line.small.length + line.large.length === 0) this.#lines.delete(owner);
  }

  /** Drops tickets at the front that stopped polling: their host is gone. */
  #dropStale(line: OwnerQueue): void {
    const before = this.clock.now() - limits.turnStaleMs;
    for (const lane of [line.small, line.large]) {
      while (lane[0] !== undefined && lane[0].wakeAt < before) lane.shift();
    }
    // An owner with less usage that has stopped polling would block the others.
    const first = this.#nextOwner();
    const front = first === null ? undefined : this.#lines.get(first);
    if (first === null || front === undefined || front === line) return;
    if ([...front.small, ...front.large].every(({ wakeAt }) => wakeAt < before)) this.#lines.delete(first);
  }

  #usedBy(owner: string, now: number): number {
    return decayed(this.#used.get(owner) ?? null, now);
  }

  #forgetIdle(now: number): void {
    for (const owner of this.#used.keys()) if (this.#usedBy(owner, now) === 0) this.#used.delete(owner);
  }
}

/** Usage decays by half of the time that has passed. */
function decayed(used: Usage | null, now: number): number {
  return used === null ? 0 : Math.max(0, used.steps - Math.max(0, now - used.at) * limits.stepsPerPauseMs);
}

/** The share of the thread used by one session, or one long request. */
export class ThreadShare {
  readonly #queue: FairQueue;
  readonly #owner: () => string;
  /** Usage since its last turn; null if it has done nothing yet. */
  #used: Usage | null = null;

  /** @param owner its owner: a namespace, or null for what was made without keys */
  constructor(queue: FairQueue, owner: () => string | null) {
    this.#queue = queue;
    this.#owner = () => owner() ?? '';
  }

  /** Charges work that was done; see `WorkMeter` for steps. */
  charge(steps: number): void {
    const at = this.#queue.clock.now();
    this.#used = { steps: decayed(this.#used, at) + steps, at };
    this.#queue.charge(this, this.#owner(), steps);
  }

  /** Whether the share must queue before it continues. */
  get isDue(): boolean {
    const steps = this.#used === null ? limits.turnSteps : decayed(this.#used, this.#queue.clock.now());
    return steps > limits.turnSteps || (steps > limits.busyTurnSteps && this.#queue.isBusy(this.#owner()));
  }

  /** Resolves when it is its turn. @throws the signal's reason if it aborts first */
  async waitTurn(signal?: AbortSignal): Promise<void> {
    const at = this.#queue.clock.now();
    await this.#queue.take(this, this.#owner(), decayed(this.#used, at) <= limits.turnSteps, signal);
    this.#used = { steps: 0, at };
  }

  /** Always yields the thread to others; resolves when it is its turn again. */
  async yieldThread(): Promise<void> {
    await sleep(1, this.#queue.clock);
    await this.waitTurn();
  }

  /** A separate share of the same owner, for one request. */
  fork(): ThreadShare {
    return new ThreadShare(this.#queue, this.#owner);
  }
}
