/**
 * Queued jobs in fair order (R8): tenants take turns, and so do the sessions of each tenant.
 *
 * Owns the order, and the number of running jobs of each tenant and session. Does not own admission and the jobs.
 * Invariants:
 * 1. Next is a job of the tenant with the fewest running jobs; among equals, of the one whose turn was longest ago. The
 *    same applies to the sessions of a tenant. Jobs of a session start in order.
 * 2. So at most one job of each other tenant (or session) that has as few running jobs starts before the first job of a
 *    tenant (or session) without running jobs, however many jobs the others have queued.
 */
export interface QueuedJob {
  readonly id: string;
  /** Null if there is only one. */
  readonly tenant: string | null;
  readonly session: string;
}

interface Group<Job> {
  /** Sessions with queued jobs; the one whose turn was longest ago is first. */
  readonly sessions: Map<string, Job[]>;
  waiting: number;
}

export class FairQueue<Job extends QueuedJob> {
  /** Tenants with queued jobs; the one whose turn was longest ago is first. */
  readonly #tenants = new Map<string | null, Group<Job>>();
  readonly #runningOfTenant = new Map<string | null, number>();
  readonly #runningOfSession = new Map<string, number>();
  #size = 0;

  /** Number of queued jobs. */
  get size(): number {
    return this.#size;
  }

  /** Queued jobs of a tenant. */
  waitingOf(tenant: string | null): number {
    return this.#tenants.get(tenant)?.waiting ?? 0;
  }

  /** Queued jobs of a session. */
  waitingOfSession({ tenant, session }: Pick<QueuedJob, 'tenant' | 'session'>): number {
    return this.#tenants.get(tenant)?.sessions.get(session)?.length ?? 0;
  }

  /** Jobs of a tenant that were taken and have not ended. */
  runningOf(tenant: string | null): number {
    return this.#runningOfTenant.get(tenant) ?? 0;
  }

  push(job: Job): void {
    const group = this.#tenants.get(job.tenant) ?? { sessions: new Map<string, Job[]>(), waiting: 0 };
    const jobs = group.sessions.get(job.session) ?? [];
    jobs.push(job);
    group.sessions.set(job.session, jobs);
    group.waiting += 1;
    this.#tenants.set(job.tenant, group);
    this.#size += 1;
  }

  /** Takes the next job, which then counts as running. @param mayRun whether a tenant may take another place */
  take(mayRun: (tenant: string | null) => boolean): Job | undefined {
    const tenant = fewest(this.#tenants.keys(), (name) => (mayRun(name) ? this.runningOf(name) : null));
    const group = tenant === undefined ? undefined : this.#tenants.get(tenant);
    if (tenant === undefined || group === undefined) return undefined;
    const session = fewest(group.sessions.keys(), (name) => this.#runningOfSession.get(keyOf(tenant, name)) ?? 0);
    const job = session === undefined ? undefined : group.sessions.get(session)?.[0];
    if (job === undefined) return undefined;
    this.remove(job);
    toTheEnd(group.sessions, job.session);
    toTheEnd(this.#tenants, tenant);
    add(this.#runningOfTenant, tenant, 1);
    add(this.#runningOfSession, keyOf(tenant, job.session), 1);
    return job;
  }

  /** A job that was taken has ended. */
  ended({ tenant, session }: QueuedJob): void {
    add(this.#runningOfTenant, tenant, -1);
    add(this.#runningOfSession, keyOf(tenant, session), -1);
  }

  /** Whether it was queued. */
  remove(job: QueuedJob): boolean {
    const group = this.#tenants.get(job.tenant);
    const jobs = group?.sessions.get(job.session);
    const at = jobs?.findIndex(({ id }) => id === job.id) ?? -1;
    if (group === undefined || jobs === undefined || at < 0) return false;
    jobs.splice(at, 1);
    if (jobs.length === 0) group.sessions.delete(job.session);
    group.waiting -= 1;
    if (group.waiting === 0) this.#tenants.delete(job.tenant);
    this.#size -= 1;
    return true;
  }

  find(id: string): Job | undefined {
    for (const { sessions } of this.#tenants.values()) {
      for (const jobs of sessions.values()) {
        const job = jobs.find((queued) => queued.id === id);
        if (job !== undefined) return job;
      }
    }
    return undefined;
  }

  /** Removes and returns all queued jobs. */
  clear(): Job[] {
    const jobs = [...this.#tenants.values()].flatMap(({ sessions }) => [...sessions.values()].flat());
    this.#tenants.clear();
    this.#size = 0;
    return jobs;
  }
}

/** The first name with the lowest count. @param countOf null: it is not eligible */
function fewest<Name>(names: Iterable<Name>, countOf: (name: Name) => number | null): Name | undefined {
  let least: { readonly name: Name; readonly count: number } | null = null;
  for (const name of names) {
    const count = countOf(name);
    if (count !== null && (least === null || count < least.count)) least = { name, count };
  }
  return least?.name;
}

function toTheEnd<Key, Value>(map: Map<Key, Value>, key: Key): void {
  const value = map.get(key);
  if (value === undefined) return;
  map.delete(key);
  map.set(key, value);
}

function add<Key>(counts: Map<Key, number>, key: Key, more: number): void {
  const count = (counts.get(key) ?? 0) + more;
  if (count <= 0) counts.delete(key);
  else counts.set(key, count);
}

/** Names of tenants have no line breaks. */
function keyOf(tenant: string | null, session: string): string {
  return `${tenant ?? ''}\n${session}`;
}
