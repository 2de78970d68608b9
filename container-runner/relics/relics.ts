/**
 * All relics of this runner (R5): their owners and their number.
 *
 * Owns the relics by scope and name. Does not own the life cycle of a single one (relic.ts).
 *
 * Invariants:
 * 1. A call needs the relic's scope, so one session cannot reach another session's relics.
 * 2. A changed definition replaces the previous one and keeps the state.
 * 3. A new relic starts after its predecessor of the same name is gone.
 */
import { createHash } from 'node:crypto';

import type { Logger } from 'pino';

import { limits } from '../limits.ts';
import { type OperatorLimits, requireWithinLimits } from '../operator-limits.ts';
import { RunnerError } from '../problem.ts';
import { hasCapacity } from '../fair-share.ts';
import type { RelicCall, RelicSpec } from './definition.ts';
import { Relic, type RelicClock, type RelicReport } from './relic.ts';
import type { RelicAnswer, RelicHost, RelicId } from './relic-service.ts';

interface Entry {
  readonly id: RelicId;
  /** Null if there is only one. */
  readonly tenant: string | null;
  readonly hash: string;
  readonly relic: Relic;
}

export interface RelicsOptions {
  /** Null: the reason why there are none. */
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
  /** Relics that are stopping, by key. */
  readonly #going = new Map<string, Promise<void>>();
  #formerRestarts = 0;
  #stopped = false;

  constructor(options: RelicsOptions) {
    this.#options = options;
  }

  /** The sandbox level of relics; null if they cannot run. */
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

  /** Starts no more relics; running ones continue. */
  drain(): void {
    this.#stopped = true;
  }

  list(scope: string | null): RelicListing[] {
    const level = this.level ?? 'none';
    return [...this.#entries.values()]
      .filter(({ id }) => scope === null || id.scope === scope)
      .map(({ id, relic }) => ({ ...id, level, ...relic.report() }));
  }

  /**
   * Finds or creates a relic; it starts with its first call.
   *
   * @throws RunnerError `unsupported`, `busy`, `stopping`
   */
  async find(id: RelicId, spec: RelicSpec, tenant: string | null = null): Promise<Pick<Relic, 'start' | 'call'>> {
    const { host, absence, clock, log, operatorLimits } = this.#options;
    if (host === null) {
      throw new RunnerError(
        'unsupported',
        `This runner cannot run relics: ${absence}. Install a Docker engine (on Debian: apt-get install docker.io), or use an edge relic (implementation: {type: edge})`,
      );
    }
    requireWithinLimits(spec, operatorLimits);
    const refusal = host.refusal(spec);
    if (refusal !== null) throw new RunnerError('unsupported', `The relic ${id.name} cannot run here: ${refusal}`);
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
      throw new RunnerError('stopping', 'The runner is stopping and starts no relics', {
        'retry-after': String(limits.stoppingRetrySeconds),
      });
    }
    this.#admit(id.scope, tenant);
    const relic: Relic = new Relic({ id, spec, tenant, host, clock, log, onIdle: () => void this.#remove(entry) });
    const entry: Entry = { id, tenant, hash, relic };
    this.#entries.set(key, entry);
    return relic;
  }

  async call(id: RelicId, spec: RelicSpec, call: RelicCall, timeoutMs: number): Promise<RelicAnswer> {
    const relic = await this.find(id, spec);
    return await relic.call(call, timeoutMs);
  }

  /** Stops the relics of a scope, or one of them. `forget` also deletes their state. */
  async stop(scope: string, name: string | null, forget: boolean): Promise<number> {
    const isMeant = (id: RelicId): boolean => id.scope === scope && (name === null || id.name === name);
    const entries = [...this.#entries.values()].filter(({ id }) => isMeant(id));
    const going = [...this.#going].flatMap(([key, gone]) => (isMeant(idOf(key)) ? [gone] : []));
    // also those that are stopping already: the state of a running service cannot be deleted
    await Promise.all([...entries.map((entry) => this.#remove(entry)), ...going]);
    if (forget) await this.#options.host?.forget({ scope, name });
    return entries.length;
  }

  /** Stops all relics; keeps their state. */
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
          return this.#leave(entry.id.scope);
        });
      this.#going.set(key, gone);
    }
    await this.#going.get(key);
  }

  async #leave(scope: string): Promise<void> {
    // stopping relics also use the scope's network
    const inUse = [...this.#entries.keys(), ...this.#going.keys()].some((key) => key.startsWith(`${scope}/`));
    if (!inUse) await this.#options.host?.leave(scope).catch(() => undefined);
  }

  #admit(scope: string, tenant: string | null): void {
    const entries = [...this.#entries.values()];
    const inScope = entries.filter(({ id }) => id.scope === scope).length;
    const own = entries.filter((entry) => entry.tenant === tenant).length;
    const { relics } = this.#options.operatorLimits;
    if (inScope < limits.relicsPerScope && hasCapacity(tenant, { own, used: entries.length, most: relics })) return;
    const ofTenant = tenant === null ? '' : `, ${own} for this namespace (at least as many must remain free)`;
    throw new RunnerError(
      'busy',
      `${entries.length} relics are running, ${inScope} of them for this session${ofTenant} (maximum ${relics} and ${limits.relicsPerScope})`,
      { 'retry-after': String(limits.retryAfterSeconds) },
    );
  }
}

function keyOf({ scope, name }: RelicId): string {
  return `${scope}/${name}`;
}

/** Neither part has a slash. */
function idOf(key: string): RelicId {
  const [scope = '', name = ''] = key.split('/');
  return { scope, name };
}
