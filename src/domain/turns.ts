/**
 * Fair scheduling of owners: one thread serves the sessions of all owners, without preemption.
 *
 * Owns the recent usage of each owner, and the queue. Does not own the work of a turn. All sessions of a thread share one `Turns`; each session, and each long request, has a `Share` of it.
 *
 * Invariants:
 *  1. Little work never waits: a share queues only past `limits.turnSteps` of its own, or past
 *     `limits.busyTurnSteps` and for its first work while its owner uses more than half of the thread.
 *  2. One share begins a turn at a time; where another owner has worked lately, only after twice the time that the work
 *     before it took, so that others have theirs.
 *  3. Of those that wait, the owner who has used least lately goes first, however many shares of each wait; of one owner,
 *     small work.
 *  4. An owner who is alone waits for no pauses.
 *  5. No share waits for a promise of another one: each waits by its own timer and polls. One that stops polling
 *     loses its place.
 */
import { limits } from './limits.ts';
import type { Clock } from './ports.ts';
import { sleep } from './sleep.ts';

interface Ticket {
  readonly share: Share;
  /** When it looks again. */
  wakeAt: number;
}

interface Line {
  readonly small: Ticket[];
  readonly large: Ticket[];
}

interface Used {
  /** Steps, less what half of the time since then allows. */
  steps: number;
  at: number;
}

export class Turns {
  readonly clock: Clock;
  /** Nothing that waits begins before. */
  #freeAt = -Infinity;
  /** Whose turn has begun, and since when; null once its work is charged. */
  #begun: { readonly share: Share; readonly at: number } | null = null;
  /** Of the two owners that worked last, who and when: pauses are for others. */
  #worked: { readonly owner: string; readonly at: number } | null = null;
  #workedBefore: { readonly owner: string; readonly at: number } | null = null;
  readonly #used = new Map<string, Used>();
  /** Who waits, by owner. */
  readonly #lines = new Map<string, Line>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Whether the owner has used more than half of the thread lately. */
  isBusy(owner: string): boolean {
    return this.#usedBy(owner, this.clock.now()) > limits.ownerSteps;
  }

  charge(share: Share, owner: string, steps: number): void {
    const now = this.clock.now();
    const used = this.#usedBy(owner, now) + steps;
    this.#used.set(owner, { steps: used, at: now });
    if (this.#used.size > limits.ownersRemembered) this.#forgetIdle(now);
    if (this.#worked !== null && this.#worked.owner !== owner) this.#workedBefore = this.#worked;
    this.#worked = { owner, at: now };
    const isLong = this.#freeAt - now > limits.pauseMostMs;
    // A pause that is longer than any: the clock was put back.
    const from = isLong ? now : Math.max(now, this.#freeAt);
    const hasNeighbour = this.#workedBefore !== null && now - this.#workedBefore.at < limits.neighbourMs;
    // Who is alone needs no pauses for others, only turns.
    const pauseMs = hasNeighbour ? steps / limits.stepsPerPauseMs : 0;
    this.#freeAt = Math.min(from + pauseMs, now + limits.pauseMs);
    if (this.#begun?.share === share) this.#begun = null;
  }

  /** Resolves when it is the share's turn. @throws the signal's reason when it aborts before */
  async take(share: Share, owner: string, isSmall: boolean, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#lines.size === 0 && this.#untilFree() <= 0) {
      this.#begun = { share, at: this.clock.now() };
      return;
    }
    const ticket: Ticket = { share, wakeAt: this.clock.now() };
    this.#enter(ticket, owner, isSmall);
    try {
      for (;;) {
        const waitMs = this.#waitOf(ticket, owner);
        if (waitMs <= 0) {
          this.#begun = { share, at: this.clock.now() };
          return;
        }
        ticket.wakeAt = this.clock.now() + waitMs;
        await sleep(waitMs, this.clock, signal);
      }
    } finally {
      this.#leave(ticket, owner);
    }
  }

  #untilFree(): number {
    const begunUntil = this.#begun === null ? -Infinity : this.#begun.at + limits.turnBeginMs;
    const waitMs = Math.max(this.#freeAt, begunUntil) - this.clock.now();
    return waitMs > limits.pauseMostMs ? 0 : waitMs;
  }

  /** Milliseconds until the ticket is to look again; 0 when it is its turn. */
  #waitOf(ticket: Ticket, owner: string): number {
    const line = this.#lines.get(owner);
    const lane = line === undefined ? undefined : line.small.includes(ticket) ? line.small : line.large;
    if (line === undefined || lane === undefined || !lane.includes(ticket)) {
      // It looked too late, and has lost its place.
      this.#enter(ticket, owner, false);
      return 1;
    }
    this.#dropStale(line);
    const before = lane === line.small ? lane.indexOf(ticket) : line.small.length + lane.indexOf(ticket);
    const first = this.#first();
    if (before === 0 && first === owner) return Math.max(0, this.#untilFree());
    const others = first === owner ? 0 : 1;
    return Math.max(1, Math.ceil(this.#untilFree()) + (before * this.#lines.size + others) * limits.turnGuessMs);
  }

  /** Of those who wait, the owner who has used least. */
  #first(): string | null {
    const now = this.clock.now();
    let first: string | null = null;
    let least = Infinity;
    for (const owner of this.#lines.keys()) {
      const used = this.#usedBy(owner, now);
      if (used < least) [first, least] = [owner, used];
    }
    return first;
  }

  #enter(ticket: Ticket, owner: string, isSmall: boolean): void {
    let line = this.#lines.get(owner);
    if (line === undefined) {
      line = { small: [], large: [] };
      this.#lines.set(owner, line);
    }
    (isSmall ? line.small : line.large).push(ticket);
  }

  #leave(ticket: Ticket, owner: string): void {
    const line = this.#lines.get(owner);
    if (line === undefined) return;
    for (const lane of [line.small, line.large]) {
      const at = lane.indexOf(ticket);
      if (at >= 0) lane.splice(at, 1);
    }
    if (line.small.length + line.large.length === 0) this.#lines.delete(owner);
  }

  /** Those in front that were to look long ago: their host is gone. */
  #dropStale(line: Line): void {
    const before = this.clock.now() - limits.turnStaleMs;
    for (const lane of [line.small, line.large]) {
      while (lane[0] !== undefined && lane[0].wakeAt < before) lane.shift();
    }
    // An owner with less usage who has stopped polling would block the others.
    const first = this.#first();
    const front = first === null ? undefined : this.#lines.get(first);
    if (first === null || front === undefined || front === line) return;
    if ([...front.small, ...front.large].every(({ wakeAt }) => wakeAt < before)) this.#lines.delete(first);
  }

  #usedBy(owner: string, now: number): number {
    return left(this.#used.get(owner) ?? null, now);
  }

  #forgetIdle(now: number): void {
    for (const owner of this.#used.keys()) if (this.#usedBy(owner, now) === 0) this.#used.delete(owner);
  }
}

/** Half of the time that passes is everybody's own. */
function left(used: Used | null, now: number): number {
  return used === null ? 0 : Math.max(0, used.steps - Math.max(0, now - used.at) * limits.stepsPerPauseMs);
}

/** What one session, or one long request, uses of the thread. */
export class Share {
  readonly #turns: Turns;
  readonly #owner: () => string;
  /** Since its last turn; null as long as it has done nothing. */
  #used: Used | null = null;

  /** @param owner whose it is: the name of an API key */
  constructor(turns: Turns, owner: () => string | null) {
    this.#turns = turns;
    this.#owner = () => owner() ?? '';
  }

  /** Counts work that was done; see `WorkMeter` for steps. */
  charge(steps: number): void {
    const at = this.#turns.clock.now();
    this.#used = { steps: left(this.#used, at) + steps, at };
    this.#turns.charge(this, this.#owner(), steps);
  }

  /** Whether the share must queue before it continues. */
  get isDue(): boolean {
    const steps = this.#used === null ? limits.turnSteps : left(this.#used, this.#turns.clock.now());
    return steps > limits.turnSteps || (steps > limits.busyTurnSteps && this.#turns.isBusy(this.#owner()));
  }

  /** Resolves when it is its turn. @throws the signal's reason when it aborts before */
  async turn(signal?: AbortSignal): Promise<void> {
    const at = this.#turns.clock.now();
    await this.#turns.take(this, this.#owner(), left(this.#used, at) <= limits.turnSteps, signal);
    this.#used = { steps: 0, at };
  }

  /** Leaves the thread to others in any case, and resolves when it is its turn again. */
  async rest(): Promise<void> {
    await sleep(1, this.#turns.clock);
    await this.turn();
  }

  /** A separate share of the same owner, for one request. */
  another(): Share {
    return new Share(this.#turns, this.#owner);
  }
}
