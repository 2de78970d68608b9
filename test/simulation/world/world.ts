/**
 * Runs one history against the real session, and observes it. The result depends on the history only.
 *
 * Invariants:
 *  1. At most one host lives at a time, as the platform guarantees.
 *  2. A host starts when a client or a reader asks for the session, or when the alarm fires; never by itself.
 *  3. The alarm fires until it was handled: a host that ends during it is followed by another one.
 */
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { History, Request } from '../history.ts';
import type { Listed, ListedRun, Listing, Observation, SeenPlace, Sizes, Exported } from '../observation.ts';
import type { BrokenPorts } from './broken-ports.ts';
import { Clients } from './clients.ts';
import { exported } from '../../support/otlp.ts';
import { spanTexts, WorldCollector } from './collector.ts';
import { WorldDirectory } from './directory.ts';
import { Examination } from './examination.ts';
import { Host } from './host.ts';
import { markedIn } from './marks.ts';
import { ScriptedModel } from './model.ts';
import { Reader } from './readers.ts';
import { messageOf, Rows } from './rows.ts';
import { Stage } from './stage.ts';
import { Targets } from './targets.ts';
import { turn } from './turn.ts';

/** More steps mean that the world never comes to rest. */
const MOST_STEPS = 30_000;
/** After this time without a plan, only the session's expiry and idle feeds are left. */
const MOST_MS = 12 * 3_600_000;
const ALARM_RETRY_MS = 100;
/** A quiet session has nothing due for this time. */
const QUIET_MS = 500;
/** All runs of a history. */
const MOST_RUNS = 1_000;
/** The collector's failures last less than the repeats of an export, and the delays are limited. */
const EXPORTED_WITHIN_MS = 3_600_000;
/** After everything else, and after the faults of the index. */
const LISTED_WITHIN_MS = 2 * 3_600_000;

export async function runHistory(history: History, broken: BrokenPorts = {}): Promise<Observation> {
  const world = new World(history, broken);
  try {
    return await world.run();
  } finally {
    world.close();
  }
}

/** A session that was deleted, as it was before. */
interface DeletedSession {
  readonly incarnation: number;
  readonly events: readonly SessionEvent[];
  readonly runs: SeenRuns;
}

class World {
  readonly #stage: Stage;
  readonly #rows: Rows;
  readonly #model: ScriptedModel;
  readonly #targets: Targets;
  readonly #clients: Clients;
  readonly #directory: WorldDirectory | null;
  readonly #collector: WorldCollector | null;
  readonly #readers: Reader[] = [];
  readonly #deleted: DeletedSession[] = [];
  #host: Host | null = null;
  #lives = 0;
  #mostTimers = 0;
  /** There is no session, and no client wants one. */
  #isDeleted = false;
  /** Sessions that will be made again. */
  #creations = 0;
  #isClosed = false;
  /** When everything but the index was over. */
  #overAt: number | null = null;
  #cancelAlarm = (): void => undefined;

  constructor(history: History, broken: BrokenPorts) {
    this.#stage = new Stage(history, broken);
    this.#rows = new Rows(this.#stage.disk);
    this.#model = new ScriptedModel(this.#stage);
    this.#targets = new Targets(this.#stage);
    this.#clients = new Clients(this.#stage, () => this.#live());
    this.#directory = this.#stage.hasIndex ? new WorldDirectory(this.#stage) : null;
    this.#collector = this.#stage.hasCollector ? new WorldCollector(this.#stage) : null;
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
    return this.#isDeleted ? null : this.#start();
  }

  /** The current host, started if necessary: the alarm starts one also if the session was deleted. */
  #start(): Host | null {
    while (this.#host === null || this.#host.life.isOver) {
      this.#lives += 1;
      if (this.#lives > 1) {
        this.#stage.noteStored();
        this.#stage.noteFiles();
      }
      try {
        this.#host = new Host(this.#stage, this.#lives, {
          model: this.#model,
          targets: this.#targets,
          directory: this.#directory,
          collector: this.#collector,
          beforeDeletion: (host) => this.#beforeDeletion(host),
        });
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
      time.after(request.at, () => this.#carryOut(index, request));
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
        case 'runner':
          time.after(fault.at, () => this.#targets.fleet?.lose(fault.runner, fault.forMs));
          break;
        case 'index':
        case 'collector':
          // Both look at the time (directory.ts, collector.ts); the world must not end before.
          time.after(fault.at, () => undefined);
          break;
        case 'crash':
        case 'write':
        case 'statement':
        case 'sync':
      }
    }
  }

  #carryOut(index: number, request: Request): void {
    switch (request.type) {
      case 'cancel':
        return void this.#clients.cancel();
      case 'delete':
        return void this.#delete(request);
      case 'head':
        return void this.#clients.moveHead(request);
      case 'fork':
        return void this.#clients.fork(request);
      case 'reader': {
        const reader = new Reader(this.#stage, `reader ${index}`, request, () => this.#live());
        this.#readers.push(reader);
        return void reader.follow();
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
        // A host that its alarm has just woken is at work. One that stays kept is reported in the end.
        const isAtWork = this.#host?.life.isOver === false && this.#host.holds > 0;
        if (!isAtWork && this.#isOver() && this.#isListed() && this.#isExported()) return null;
      }
      // The session's expiry would delete what is left.
      if (time.now > MOST_MS || (time.next ?? 0) > MOST_MS) {
        return this.#isOver() ? null : `after ${MOST_MS} ms: ${this.#openWork()}`;
      }
      if (!time.step()) return this.#isOver() ? null : `nothing will happen any more: ${this.#openWork()}`;
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
    if (time.now < latest || this.#clients.open + this.#creations > 0) return false;
    if (this.#isDeleted) return true;
    const host = this.#host;
    const isBusy = host !== null && !host.life.isOver && host.session.busy;
    return this.#rows.openRuns.length === 0 && !isBusy;
  }

  /** Whether the index has caught up; true if it must have. The invariant decides. */
  #isListed(): boolean {
    if (this.#directory === null) return true;
    const { time, history } = this.#stage;
    this.#overAt ??= time.now;
    const faultsEnd = Math.max(...history.faults.map((fault) => (fault.type === 'index' ? fault.at + fault.forMs : 0)));
    if (time.now > Math.max(this.#overAt, faultsEnd) + LISTED_WITHIN_MS) return true;
    if (this.#directory.underway > 0) return false;
    const { listed } = this.#directory;
    if (this.#isDeleted) return listed.length + this.#directory.runs.length === 0;
    const incarnation = this.#stage.identity(this.#stage.incarnation).incarnation ?? '';
    const [first, ...others] = listed;
    if (others.length > 0 || first?.incarnation !== incarnation || first.entry.status !== 'idle') return false;
    if (first.entry.updated_at !== (this.#rows.lastActivity ?? first.entry.created_at)) return false;
    const statuses = this.#directory.runs.map(({ status }) => status).toSorted();
    return String(statuses) === String(this.#rows.runs.map(({ status }) => status).toSorted());
  }

  /** Whether the collector has everything; true if it must have. The invariant decides. */
  #isExported(): boolean {
    if (this.#collector === null || this.#isDeleted) return true;
    const { time, history } = this.#stage;
    this.#overAt ??= time.now;
    const ends = history.faults.map((fault) => (fault.type === 'collector' ? fault.at + fault.forMs : 0));
    if (time.now > Math.max(this.#overAt, ...ends) + EXPORTED_WITHIN_MS) return true;
    // A host that has ended is started by its alarm.
    return this.#host !== null && !this.#host.life.isOver && this.#host.hasExported;
  }

  /** Of a session at rest. */
  async #exported(): Promise<Exported | null> {
    const session = this.#live()?.session;
    if (this.#collector === null || session === undefined || !session.exists) return null;
    const { bodies } = await exported(session);
    return { expected: spanTexts(bodies), received: this.#collector.received };
  }

  /**
   * @param listed what the directory had at the end
   * @param listedRuns what the index of executions had then
   */
  #listing(listed: readonly Listed[] | null, listedRuns: readonly ListedRun[]): Listing | null {
    if (listed === null) return null;
    const session = this.#live()?.session;
    const entry = session?.directoryEntry ?? null;
    const expected = entry === null ? null : { incarnation: session?.record.incarnation ?? '', entry };
    return { expected, listed, expectedRuns: this.#runsAtRest(), listedRuns };
  }

  #runsAtRest(): ListedRun[] {
    const session = this.#live()?.session;
    if (session?.exists !== true) return [];
    return session
      .runs(MOST_RUNS)
      .filter(({ status }) => status !== 'queued' && status !== 'running')
      .map(({ runId: id, status }) => ({ id, status }))
      .toSorted((one, other) => (one.id < other.id ? -1 : 1));
  }

  #openWork(): string {
    return `${this.#rows.openWork}; ${this.#clients.open} requests have no answer`;
  }

  /** People look at the list of requests from time to time. */
  #seeApprovals(): void {
    const { supervised, policies } = this.#stage.history.agent;
    if (!supervised && !policies) return;
    for (const { id, token } of this.#rows.approvals) this.#clients.seeApproval(id, token);
  }

  /** Clients that have missed an event find the calls in the document of the run. */
  #seeCalls(): void {
    if (!this.#stage.hasClientCalls) return;
    for (const { id, token } of this.#rows.calls) this.#clients.seeCall(id, token);
  }

  /** Whether it waits is decided by the journal: a session that does not rest would say that it is running. */
  #lookParked(): void {
    const host = this.#host;
    // A stream has a timer.
    if (host === null || host.life.isOver || !this.#rows.isWaiting || this.#clients.isReading) return;
    this.#stage.note({ type: 'parked', timers: host.life.timers, holds: host.holds });
  }

  async #delete({ againMs, exportMs }: Extract<Request, { type: 'delete' }>): Promise<void> {
    await this.#clients.delete(exportMs);
    if (againMs === null) return;
    this.#creations += 1;
    this.#stage.time.after(againMs, () => {
      this.#creations -= 1;
      void this.#createAgain();
    });
  }

  /** The clients of the deleted session do the same again. */
  async #createAgain(): Promise<void> {
    if (!this.#isDeleted) return;
    this.#isDeleted = false;
    const { time, history } = this.#stage;
    // What is planned for later reaches the new session anyway, also if its creation takes long.
    const { now } = time;
    await this.#clients.create();
    const { incarnation } = this.#stage;
    for (const [index, request] of history.requests.entries()) {
      if (request.type === 'reader' && request.at <= now) this.#carryOut(index, request);
    }
    for (const [index, script] of history.messages.entries()) {
      if (script.at > now) continue;
      time.after(index, () => {
        // It may have been deleted again.
        if (this.#stage.incarnation === incarnation) void this.#clients.again(index, script);
      });
    }
  }

  /** After a client's request, or because the session has expired. */
  #beforeDeletion(host: Host): void {
    const { incarnation } = this.#stage;
    this.#deleted.push({ incarnation, events: allEvents(host), runs: runsOf(host) });
    this.#isDeleted = true;
  }

  #watchAlarm(): void {
    this.#cancelAlarm();
    const { alarm } = this.#stage.disk;
    if (alarm === null || (this.#isDeleted && this.#directory === null)) return;
    const waitMs = this.#stage.untilHostTime(alarm);
    this.#cancelAlarm = this.#stage.time.after(waitMs, () => void this.#fire(alarm));
  }

  async #fire(alarm: number): Promise<void> {
    // Only the record is examined now: nothing expires.
    if (this.#stage.isCalm) return;
    const host = this.#start();
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
    const sessions: Observation[] = [];
    for (const { incarnation, events, runs } of this.#deleted) {
      const isWhole = stuck === null;
      const nothing = { runs: [], sizes: null, listing: null, exported: null, replacements: [] };
      const seen = { stuck, events, isWhole, ...nothing, ...runs };
      sessions.push(this.#seen(incarnation, [...sessions], seen));
    }
    const { incarnation } = this.#stage;
    const last = sessions.at(-1);
    const listed = this.#directory?.listed ?? null;
    const listedRuns = this.#directory?.runs ?? [];
    if (this.#isDeleted && last !== undefined)
      return stuck === null ? { ...last, listing: this.#listing(listed, listedRuns) } : last;
    if (stuck !== null) {
      const facts = this.#stage.factsOf(incarnation);
      const events = facts.flatMap((fact) => (fact.type === 'published' ? [fact.event] : []));
      const nothing = { runs: [], sizes: null, listing: null, exported: null, ...NO_RUNS, replacements: [] };
      const seen = { stuck, events, isWhole: false, ...nothing };
      return this.#seen(incarnation, sessions, seen);
    }
    this.#stage.isCalm = true;
    this.#stage.noteFiles();
    const sizes = this.#sizes();
    this.#host?.life.end('replaced', 1);
    const examined = new Examination(this.#stage, this.#rows, () => this.#live());
    const replacements = [await examined.replace('at the end')];
    // Of a host that no fault of the history ends.
    const listing = this.#listing(listed, listedRuns);
    const spans = await this.#exported();
    if (!this.#stage.hasDiskFailed) replacements.push(await examined.replayEnded());
    const host = this.#live();
    const events = host === null ? [] : allEvents(host);
    const seen = host === null ? NO_RUNS : runsOf(host);
    const { runs, variables, workspace } = this.#rows;
    const stored = host === null ? {} : { variables, workspace };
    const rest = { runs, sizes, listing, exported: spans, ...seen, ...stored, replacements };
    return this.#seen(incarnation, sessions, { stuck, events, isWhole: true, ...rest });
  }

  #seen(
    incarnation: number,
    earlier: readonly Observation[],
    rest: Pick<
      Observation,
      'stuck' | 'events' | 'isWhole' | 'runs' | 'sizes' | 'listing' | 'exported' | keyof SeenRuns | 'replacements'
    >,
  ): Observation {
    return {
      history: this.#stage.history,
      earlier,
      facts: this.#stage.factsOf(incarnation),
      isDeleted: this.#deleted.some((deleted) => deleted.incarnation === incarnation),
      readers: this.#readers.filter((reader) => reader.incarnation === incarnation),
      clients: this.#clients.ofProtocols.filter((client) => client.incarnation === incarnation),
      ...rest,
    };
  }

  #sizes(): Sizes {
    return {
      rows: this.#stage.disk.rows(),
      mostTimers: this.#mostTimers,
      timersLeft: this.#host?.life.timers ?? 0,
      staleNotes: this.#staleNotes(),
      orphans: this.#rows.orphans,
      holdsLeft: this.#host?.life.isOver === false ? this.#host.holds : 0,
    };
  }

  #staleNotes(): number {
    // A failed write may have been the deletion of a note.
    if (this.#host === null || this.#host.life.isOver || this.#stage.hasDiskFailed) return 0;
    return this.#rows.staleNotes(this.#lives);
  }
}

function allEvents({ session }: Host): SessionEvent[] {
  const events: SessionEvent[] = [];
  for (let page = session.events(0); page.length > 0; page = session.events(events.at(-1)?.seq ?? 0)) {
    events.push(...page);
  }
  return events;
}

type SeenRuns = Pick<Observation, 'messageOf' | 'places' | 'variables' | 'workspace'>;

const NO_RUNS: SeenRuns = { messageOf: new Map(), places: new Map(), variables: null, workspace: null };

/** The message of each run, and its place in the tree of runs. */
function runsOf({ session }: Host): SeenRuns {
  const runs = session.exists ? session.runs(MOST_RUNS) : [];
  return {
    variables: null,
    workspace: null,
    messageOf: new Map(
      runs.map(({ run, input, idempotencyKey: key }) => [run, messageOf(key, JSON.stringify(input)) ?? -1]),
    ),
    places: new Map(
      runs.map(({ run, parent, retryOf, input }): [number, SeenPlace] => [
        run,
        { parent, retryOf, mark: input['type'] === 'message' ? markedIn(JSON.stringify(input)) : null },
      ]),
    ),
  };
}
