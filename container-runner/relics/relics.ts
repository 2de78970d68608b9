/**
 * All relics of this runner (R5): which there are, whose they are, and how many there may be.
 *
 * Owns: the relics by space and name. Does not own: the life of a single one (relic.ts).
 *
 * Invariants:
 * 1. A relic is reached only by naming its space: one session's is out of reach of another's calls.
 * 2. A definition that changed takes the place of the former one, on the same state.
 * 3. A new relic of a name starts when its predecessor has gone.
 */
import { createHash } from 'node:crypto';

import type { Logger } from 'pino';

import { limits } from '../limits.ts';
import { type OperatorLimits, refuseTooMuch } from '../operator-limits.ts';
import { Refusal } from '../problem.ts';
import { mayTake } from '../share.ts';
import type { RelicCall, RelicSpec } from './definition.ts';
import { Relic, type RelicClock, type RelicReport } from './relic.ts';
import type { RelicAnswer, RelicHost, RelicId } from './service.ts';

interface Entry {
  readonly id: RelicId;
  /** Null where there is one. */
  readonly tenant: string | null;
  readonly hash: string;
  readonly relic: Relic;
}

export interface RelicsOptions {
  /** Null: why there are none here. */
  readonly host: RelicHost | null;
  readonly absence: string;
  readonly clock: RelicClock;
  readonly log: Logger;
  readonly operatorLimits: OperatorLimits;
}

export interface RelicListing extends RelicReport, RelicId {
  readonly level: string;
}

export class Relics {
  readonly #options: RelicsOptions;
  readonly #entries = new Map<string, Entry>();
  /** What is still being stopped, by key. */
  readonly #going = new Map<string, Promise<void>>();
  #formerRestarts = 0;
  #stopped = false;

  constructor(options: RelicsOptions) {
    this.#options = options;
  }

  /** Where relics run; null where they do not. */
  get level(): string | null {
    return this.#options.host?.level ?? null;
  }

  get operatorLimits(): OperatorLimits {
    return this.#options.operatorLimits;
  }

  get running(): number {
    return this.#entries.size;
  }

  /** Since the start of the runner. */
  get restarts(): number {
    const now = [...this.#entries.values()].reduce((sum, { relic }) => sum + relic.report().restarts, 0);
    return this.#formerRestarts + now;
  }

  /** Starts no further relics; those that run go on. */
  drain(): void {
    this.#stopped = true;
  }

  list(space: string | null): RelicListing[] {
    const level = this.level ?? 'none';
    return [...this.#entries.values()]
      .filter(({ id }) => space === null || id.space === space)
      .map(({ id, relic }) => ({ ...id, level, ...relic.report() }));
  }

  /**
   * Finds the relic, or makes it; it starts with its first call.
   *
   * @throws Refusal `unsupported`, `busy`, `stopping`
   */
  async find(id: RelicId, spec: RelicSpec, tenant: string | null = null): Promise<Pick<Relic, 'start' | 'call'>> {
    const { host, absence, clock, log, operatorLimits } = this.#options;
    if (host === null) {
      throw new Refusal(
        'unsupported',
        `This runner has no place for relics: ${absence}. It needs a Docker engine (on Debian: apt-get install docker.io); a relic at the edge needs neither (implementation: {type: edge})`,
      );
    }
    refuseTooMuch(spec, operatorLimits);
    const refusal = host.refusal(spec);
    if (refusal !== null) throw new Refusal('unsupported', `The relic ${id.name} cannot run here: ${refusal}`);
    const key = keyOf(id);
    const hash = createHash('sha256').update(JSON.stringify(spec)).digest('base64url');
    for (;;) {
      const known = this.#entries.get(key);
      if (known?.hash === hash) return known.relic;
      if (known !== undefined) void this.#remove(known);
      const going = this.#going.get(key);
      if (going === undefined) break;
      await going;
    }
    if (this.#stopped) {
      throw new Refusal('stopping', 'The runner is about to stop and starts no relics', {
        'retry-after': String(limits.stoppingRetrySeconds),
      });
    }
    this.#admit(id.space, tenant);
    const relic: Relic = new Relic({ id, spec, tenant, host, clock, log, onIdle: () => void this.#remove(entry) });
    const entry: Entry = { id, tenant, hash, relic };
    this.#entries.set(key, entry);
    return relic;
  }

  async call(id: RelicId, spec: RelicSpec, call: RelicCall, timeoutMs: number): Promise<RelicAnswer> {
    const relic = await this.find(id, spec);
    return await relic.call(call, timeoutMs);
  }

  /** Stops the relics of a space, or one of them. `forget` removes their state, too. */
  async stop(space: string, name: string | null, forget: boolean): Promise<number> {
    const entries = [...this.#entries.values()].filter(
      ({ id }) => id.space === space && (name === null || id.name === name),
    );
    await Promise.all(entries.map((entry) => this.#remove(entry)));
    if (forget) await this.#options.host?.forget({ space, name });
    return entries.length;
  }

  /** Stops all of them; their state stays. */
  async close(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#entries.values()].map((entry) => this.#remove(entry)));
    await Promise.all(this.#going.values());
    await this.#options.host?.close();
  }

  async #remove(entry: Entry): Promise<void> {
    const key = keyOf(entry.id);
    if (this.#entries.get(key) === entry) {
      this.#entries.delete(key);
      this.#formerRestarts += entry.relic.report().restarts;
      const gone = entry.relic
        .stop()
        .catch((fault: unknown) =>
          this.#options.log.error({ relic: entry.id.name, reason: String(fault) }, 'a relic was not stopped'),
        )
        .then(() => {
          this.#going.delete(key);
          return this.#leave(entry.id.space);
        });
      this.#going.set(key, gone);
    }
    await this.#going.get(key);
  }

  async #leave(space: string): Promise<void> {
    // what is still being stopped holds the space, too
    const inUse = [...this.#entries.keys(), ...this.#going.keys()].some((key) => key.startsWith(`${space}/`));
    if (!inUse) await this.#options.host?.leave(space).catch(() => undefined);
  }

  #admit(space: string, tenant: string | null): void {
    const entries = [...this.#entries.values()];
    const inSpace = entries.filter(({ id }) => id.space === space).length;
    const own = entries.filter((entry) => entry.tenant === tenant).length;
    const { relics } = this.#options.operatorLimits;
    if (inSpace < limits.relicsPerSpace && mayTake(tenant, { own, used: entries.length, most: relics })) return;
    const ofKey = tenant === null ? '' : `, ${own} for this API key, which must leave as many free`;
    throw new Refusal(
      'busy',
      `${entries.length} relics run here, ${inSpace} of them for this session${ofKey} (allowed: ${relics} and ${limits.relicsPerSpace})`,
      { 'retry-after': String(limits.retryAfterSeconds) },
    );
  }
}

function keyOf({ space, name }: RelicId): string {
  return `${space}/${name}`;
}
