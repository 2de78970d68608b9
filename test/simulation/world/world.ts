/**
 * Runs one history against the real session, and observes it. The result depends on the history only.
 *
 * Invariants:
 *  1. At most one host lives at a time, as the platform guarantees.
 *  2. A host starts when a client or a reader asks for the session, or when the alarm fires; never by itself.
 *  3. The alarm fires until it was handled: a host that ends during it is followed by another one.
 */
import type { SessionEvent } from '../../../src/domain/event.ts';
import { limits } from '../../../src/domain/limits.ts';
import { runIdOf } from '../../../src/journal/run-id.ts';
import type { History } from '../history.ts';
import type { Observation, Replacement, RunEnd, Sizes } from '../observation.ts';
import { Clients } from './clients.ts';
import { Host } from './host.ts';
import { markedIn, ScriptedModel } from './model.ts';
import { Reader } from './readers.ts';
import { Stage } from './stage.ts';
import { Targets } from './targets.ts';

/** More steps mean that the world never comes to rest. */
const MOST_STEPS = 30_000;
/** After this time without a plan, only the session's expiry and idle feeds are left. */
const MOST_MS = 12 * 3_600_000;
const ALARM_RETRY_MS = 100;
const ORPHANS = `SELECT seq, field FROM chunks WHERE
  (field IN ('data', 'state') AND seq NOT IN (SELECT seq FROM events)) OR
  (field = 'prompt' AND seq NOT IN (SELECT id FROM prompts)) OR
  (field = 'seeded' AND seq NOT IN (SELECT id FROM seeded)) OR
  (field = 'input' AND -seq NOT IN (SELECT run FROM runs))`;
/** Open runs that wait, or that have ended and whose background actions have not. */
const WAITING = `SELECT run FROM runs WHERE open = 1 AND status NOT IN ('queued', 'running')`;
/** Open runs that do not wait, or have continued: then the last thing about their waiting is not that it began. */
const WORKING = `SELECT run FROM runs WHERE open = 1 AND (status IN ('queued', 'running') OR status = 'waiting' AND 'agent_waiting' IS NOT
  (SELECT type FROM events WHERE events.run = runs.run AND type NOT IN ('action_completed', 'action_failed',
    'action_retrying', 'action_started', 'context_feed_updated') ORDER BY seq DESC LIMIT 1))`;
/** Actions that have started, or will be repeated, and have not ended; not those that wait for a client. */
const WORKING_ACTIONS = `SELECT type FROM (SELECT type, MAX(seq) FROM events WHERE type LIKE 'action_%' OR type LIKE 'client_%'
  GROUP BY run, iteration, action_id) WHERE type IN ('action_started', 'action_retrying')`;
/** A quiet session has nothing due for this time. */
const QUIET_MS = 500;

export async function runHistory(history: History): Promise<Observation> {
  const world = new World(history);
  try {
    return await world.run();
  } finally {
    world.close();
  }
}

class World {
  readonly #stage: Stage;
  readonly #model: ScriptedModel;
  readonly #targets: Targets;
  readonly #clients: Clients;
  readonly #readers: Reader[] = [];
  readonly #replacements: Replacement[] = [];
  #host: Host | null = null;
  #lives = 0;
  #mostTimers = 0;
  #isDeleted = false;
  /** The journal before the deletion; null if no host was running to read it. */
  #deletedEvents: readonly SessionEvent[] | null = null;
  #isClosed = false;
  #cancelAlarm = (): void => undefined;

  constructor(history: History) {
    this.#stage = new Stage(history);
    this.#model = new ScriptedModel(this.#stage);
    this.#targets = new Targets(this.#stage);
    this.#clients = new Clients(this.#stage, () => this.#live());
    this.#stage.callShown = (call, token) => this.#clients.seeCall(call, token);
    this.#stage.alarmChanged = () => this.#watchAlarm();
  }

  async run(): Promise<Observation> {
    this.#plan();
    const stuck = await this.#rest();
    return await this.#observe(stuck);
  }

  close(): void {
    this.#isClosed = true;
    this.#host?.life.end('the world ends', 1);
    this.#stage.disk.close();
  }

  /** The current host, started if necessary; null if the session was deleted. */
  #live(): Host | null {
    if (this.#isDeleted) return null;
    while (this.#host === null || this.#host.life.isOver) {
      this.#lives += 1;
      if (this.#lives > 1) {
        this.#stage.noteStored();
        this.#stage.noteFiles();
      }
      try {
        this.#host = new Host(this.#stage, this.#lives, this.#model, this.#targets, () => this.#destroy());
        void this.#host.life.gone.promise.then(() => this.#watchAlarm());
      } catch {
        // It ended while it read its storage; the next one starts at once.
        this.#host = null;
      }
    }
    return this.#host;
  }

  #plan(): void {
    const { time, history } = this.#stage;
    for (const [index, script] of history.messages.entries()) {
      time.after(script.at, () => void this.#clients.message(index, script));
    }
    for (const [index, request] of history.requests.entries()) {
      time.after(request.at, () => {
        switch (request.type) {
          case 'cancel':
            return void this.#clients.cancel();
          case 'delete':
            return void this.#delete();
          case 'reader': {
            const reader = new Reader(this.#stage, `reader ${index}`, request, () => this.#live());
            this.#readers.push(reader);
            return void reader.follow();
          }
        }
      });
    }
    for (const fault of history.faults) {
      switch (fault.type) {
        case 'eviction':
          time.after(fault.at, () => this.#host?.life.end('evicted', fault.keeps));
          break;
        case 'slow_disk':
          time.after(fault.at, () => (this.#stage.syncMs = fault.ms));
          break;
        case 'full_disk':
          time.after(fault.at, () => (this.#stage.isDiskFull = true));
          time.after(fault.at + fault.forMs, () => (this.#stage.isDiskFull = false));
          break;
        case 'clock':
          time.after(fault.at, () => {
            this.#stage.clockErrorMs += fault.byMs;
            this.#watchAlarm();
          });
          break;
        case 'crash':
        case 'write':
        case 'sync':
      }
    }
  }

  /** Runs the world until everything is over. @returns why it never is; null if it is */
  async #rest(): Promise<string | null> {
    const { time } = this.#stage;
    for (let steps = 0; steps < MOST_STEPS; steps += 1) {
      await turn();
      this.#mostTimers = Math.max(this.#mostTimers, this.#host?.life.mostTimers ?? 0);
      const isQuiet = time.next === null || time.next > time.now + QUIET_MS;
      if (isQuiet) {
        this.#seeApprovals();
        this.#seeCalls();
        this.#lookParked();
        if (this.#isOver()) return null;
      }
      // The session's expiry would delete what is left.
      if (time.now > MOST_MS || (time.next ?? 0) > MOST_MS) return `after ${MOST_MS} ms: ${this.#openWork()}`;
      if (!time.step()) return `nothing will happen any more: ${this.#openWork()}`;
    }
    return `after ${MOST_STEPS} steps: ${this.#openWork()}`;
  }

  /** Whether every plan was carried out and nothing is running. */
  #isOver(): boolean {
    const { history, time } = this.#stage;
    const latest = Math.max(
      ...history.messages.map(({ at }) => at),
      ...history.requests.map(({ at }) => at),
      ...history.faults.map((fault) => ('at' in fault ? fault.at : 0)),
    );
    if (time.now < latest || this.#clients.open > 0) return false;
    if (this.#isDeleted) return true;
    const host = this.#host;
    const isBusy = host !== null && !host.life.isOver && host.session.busy;
    return this.#openRuns().length === 0 && !isBusy;
  }

  #openRuns(): number[] {
    return this.#query('runs', `SELECT run FROM runs WHERE open = 1`).map(({ run }) => Number(run));
  }

  #openWork(): string {
    const runs = this.#query('runs', `SELECT run, status FROM runs WHERE open = 1`);
    const list = runs.map(({ run, status }) => `run ${String(run)} is ${String(status)}`).join(', ');
    return `${list === '' ? 'no run is open' : list}; ${this.#clients.open} requests have no answer`;
  }

  #query(table: string, sql: string): Record<string, unknown>[] {
    const { disk } = this.#stage;
    const exists = disk.exec(`SELECT 1 FROM sqlite_master WHERE name = ?`, [table], false).length > 0;
    return exists ? disk.exec(sql, [], false) : [];
  }

  /** People look at the list of requests from time to time. */
  #seeApprovals(): void {
    if (!this.#stage.history.agent.supervised) return;
    const rows = this.#query(
      'events',
      `SELECT json_extract(data, '$.approval_id') AS id FROM events WHERE type = 'approval_requested' AND seq <= ${this.#stage.disk.durableSeq}`,
    );
    for (const { id } of rows) this.#clients.seeApproval(String(id));
  }

  /** Clients that have missed an event find the calls in the document of the run. */
  #seeCalls(): void {
    const rows = this.#query(
      'events',
      `SELECT action_id, COALESCE(data, (SELECT text FROM chunks WHERE chunks.seq = events.seq AND field = 'data' AND part = 0)) AS data
         FROM events WHERE type = 'client_tool_called' AND seq <= ${this.#stage.disk.durableSeq}`,
    );
    for (const { action_id: token, data } of rows) {
      const id = /"call_id":"([^"]+)"/.exec(String(data))?.[1];
      if (id !== undefined) this.#clients.seeCall(id, String(token));
    }
  }

  /** Whether it waits is decided by the journal: a session that does not rest would say that it is running. */
  #lookParked(): void {
    const host = this.#host;
    if (host === null || host.life.isOver || this.#query('runs', WAITING).length === 0) return;
    if (this.#query('runs', WORKING).length > 0 || this.#query('events', WORKING_ACTIONS).length > 0) return;
    this.#stage.note({ type: 'parked', timers: host.life.timers, holds: host.holds });
  }

  async #delete(): Promise<void> {
    if (await this.#clients.close()) await this.#destroy();
  }

  /** Deletes the storage, after a client's request or because the session has expired. */
  async #destroy(): Promise<void> {
    if (this.#isDeleted) return;
    const host = this.#host;
    if (host !== null && !host.life.isOver) this.#deletedEvents = allEvents(host);
    this.#isDeleted = true;
    this.#stage.note({ type: 'deleted' });
    this.#host?.life.end('deleted', 1);
    this.#cancelAlarm();
    this.#stage.disk.clear();
  }

  #watchAlarm(): void {
    this.#cancelAlarm();
    const { alarm } = this.#stage.disk;
    if (alarm === null || this.#isDeleted) return;
    const waitMs = this.#stage.untilHostTime(alarm);
    this.#cancelAlarm = this.#stage.time.after(waitMs, () => void this.#fire(alarm));
  }

  async #fire(alarm: number): Promise<void> {
    // Only the record is examined now: nothing expires.
    if (this.#stage.isCalm) return;
    const host = this.#live();
    if (host === null) return;
    const alarmsSet = this.#stage.disk.alarmsSet;
    const isHandled = await Promise.race([
      host.fire().then(
        () => true,
        () => false,
      ),
      host.life.gone.promise.then(() => false),
    ]);
    if (!isHandled) {
      this.#cancelAlarm();
      this.#cancelAlarm = this.#stage.time.after(ALARM_RETRY_MS, () => void this.#fire(alarm));
    } else if (!this.#isClosed && this.#stage.disk.alarmsSet === alarmsSet) this.#stage.disk.alarm = null;
  }

  async #observe(stuck: string | null): Promise<Observation> {
    const { facts } = this.#stage;
    if (this.#isDeleted || stuck !== null) {
      const published = facts.flatMap((fact) => (fact.type === 'published' ? [fact.event] : []));
      const events = this.#deletedEvents ?? published;
      const isWhole = this.#deletedEvents !== null && stuck === null;
      return this.#seen({ stuck, events, isWhole, runs: [], sizes: null, messageOf: new Map() });
    }
    this.#stage.isCalm = true;
    this.#stage.noteFiles();
    const sizes = this.#sizes();
    this.#host?.life.end('replaced', 1);
    await this.#replace('at the end');
    if (!this.#stage.hasDiskFailed) await this.#replayEnded();
    const host = this.#live();
    const events = host === null ? [] : allEvents(host);
    const messageOf = new Map(
      (host?.session.runs(1_000) ?? []).map(({ run, input }) => [run, markedIn(JSON.stringify(input)) ?? -1]),
    );
    return this.#seen({ stuck, events, isWhole: true, runs: this.#runs(), sizes, messageOf });
  }

  #seen(rest: Pick<Observation, 'stuck' | 'events' | 'isWhole' | 'runs' | 'sizes' | 'messageOf'>): Observation {
    return {
      history: this.#stage.history,
      facts: this.#stage.facts,
      isDeleted: this.#isDeleted,
      readers: this.#readers,
      replacements: this.#replacements,
      ...rest,
    };
  }

  #runs(): RunEnd[] {
    return this.#query('runs', `SELECT run, status, open FROM runs ORDER BY run`).map(({ run, status, open }) => ({
      run: Number(run),
      status: String(status),
      isOpen: Number(open) === 1,
    }));
  }

  #sizes(): Sizes {
    return {
      rows: this.#stage.disk.rows(),
      mostTimers: this.#mostTimers,
      timersLeft: this.#host?.life.timers ?? 0,
      staleNotes: this.#staleNotes(),
      orphans: this.#query('chunks', ORPHANS).length,
      holdsLeft: this.#host?.life.isOver === false ? this.#host.holds : 0,
    };
  }

  #staleNotes(): number {
    // A failed write may have been the deletion of a note.
    if (this.#host === null || this.#host.life.isOver || this.#stage.hasDiskFailed) return 0;
    const sql = `SELECT 1 FROM taken_up JOIN runs ON work = 'run ' || run
      WHERE open = 0 AND aside = 0 AND lives ->> '$[#-1]' = ${this.#lives}`;
    return this.#query('taken_up', sql).length;
  }

  /** Replaces the host while nothing happens: the next one must show the same state. */
  async #replace(when: string): Promise<void> {
    const before = this.#shown();
    this.#host?.life.end('replaced', 1);
    await this.#recovered();
    this.#replacements.push({ when, before, after: this.#shown() });
  }

  /** Replays the record of every ended run: it must lead to the recorded end, and write nothing. */
  async #replayEnded(): Promise<void> {
    const ended = this.#query(
      'runs',
      // A run that never began has no record. One that was recovered too often is not recovered again.
      `SELECT run FROM events WHERE type IN ('agent_completed', 'agent_failed', 'agent_cancelled')
         AND json_extract(data, '$.usage') IS NOT NULL
         AND ${limits.recoveries} > (SELECT COUNT(*) FROM events AS warnings WHERE warnings.run = events.run
           AND type = 'warning' AND data ->> '$.code' = 'run_recovered')`,
    );
    const before = this.#shown();
    this.#host?.life.end('replaced', 1);
    for (const { run } of ended) {
      if (this.#stage.abandoned.has(runIdOf(this.#stage.identity, Number(run)))) continue;
      this.#stage.disk.exec(`UPDATE runs SET open = 1 WHERE run = ?`, [Number(run)], true);
    }
    // Notes about the hosts that were lost would keep a run from being replayed.
    if (this.#query('taken_up', `SELECT 1 FROM taken_up LIMIT 1`).length > 0) {
      this.#stage.disk.exec(`DELETE FROM taken_up`, [], true);
    }
    this.#stage.disk.commit();
    await this.#recovered();
    this.#replacements.push({ when: 'replayed', before, after: this.#shown() });
  }

  /** Recovery may have to wait for its slot. */
  async #recovered(): Promise<void> {
    let isOver = false;
    const recovery = this.#live()?.session.recover();
    if (recovery === undefined) return;
    recovery.catch(() => undefined).finally(() => (isOver = true));
    for (let steps = 0; steps < MOST_STEPS; steps += 1) {
      await turn();
      if ((isOver && this.#host?.session.busy !== true) || !this.#stage.time.step()) break;
    }
  }

  #shown(): unknown {
    const session = this.#live()?.session;
    if (session === undefined || !session.exists) return null;
    return {
      lastSeq: session.lastSeq,
      status: session.status,
      runs: session.runs(1_000).map(({ run, status, firstSeq, lastSeq }) => ({ run, status, firstSeq, lastSeq })),
      approvals: session.openApprovalIds,
      rows: this.#query('runs', `SELECT run, open FROM runs WHERE open = 1`),
    };
  }
}

function allEvents({ session }: Host): SessionEvent[] {
  const events: SessionEvent[] = [];
  for (let page = session.events(0); page.length > 0; page = session.events(events.at(-1)?.seq ?? 0)) {
    events.push(...page);
  }
  return events;
}

/** Everything that needs no time has happened. */
function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
