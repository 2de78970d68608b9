/** One host: the real session over the world's ports, and its alarm. */
import { bundled } from '../../support/bundled.ts';
// Loaded now: the engine imports it when a feed is added, which takes real time.
import '../../../src/catalog/schema/feed.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { FairQueue, ThreadShare } from '../../../src/domain/fair-queue.ts';
import type { Logger } from '../../../src/domain/log.ts';
import type { MemoryPolicy } from '../../../src/domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import { incarnationIn } from '../../../src/domain/session.ts';
import type { SessionRecord } from '../../../src/domain/session.ts';
import { DirectoryOutbox } from '../../../src/engine/session/directory-outbox.ts';
import { limits } from '../../../src/domain/limits.ts';
import { objectNotes } from '../../../src/engine/session/object-notes.ts';
import { SessionDeletion } from '../../../src/engine/session/session-deletion.ts';
import { listedSession } from '../../../src/engine/session/run-listing.ts';
import { SessionAlarm } from '../../../src/engine/session/session-alarm.ts';
import type { Session } from '../../../src/engine/session/session.ts';
import type { ActionCall, Executor } from '../../../src/executors/executor.ts';
import { createExecutors } from '../../../src/executors/registry.ts';
import { createSessionApp, eventSource } from '../../../src/http/session-app.ts';
import type { EventSource } from '../../../src/http/sse.ts';
import { filesOfOutput } from '../../../src/journal/artifacts.ts';
import { artifactIdOf, runIdOf, runNumberOf } from '../../../src/journal/run-id.ts';
import type { TelemetryOutbox } from '../../../src/telemetry/outbox.ts';
import { localSession } from '../../../testing/local-session.ts';
import { feedOf, toolOf } from '../../support/definitions.ts';
import { EVERYTHING } from '../../support/otlp.ts';
import { IDEMPOTENT_CONCURRENCY } from '../history.ts';
import type { AgentSettings } from '../history.ts';
import { seededOf } from '../seeded.ts';
import { NoAnswer } from './directory.ts';
import type { WorldDirectory } from './directory.ts';
import type { WorldCollector } from './collector.ts';
import { DiskFailure } from './disk-failure.ts';
import { HostGone, Life } from './life.ts';
import type { ScriptedModel } from './model.ts';
import { POLICIES } from './policies.ts';
import { EPOCH_MS, SESSION_ID } from './stage.ts';
import type { Stage } from './stage.ts';
import { HIDDEN } from './targets.ts';
import type { Targets } from './targets.ts';

const RECORD: SessionRecord = {
  session_id: SESSION_ID,
  agent: 'assistant',
  user_id: null,
  owner: null,
  kind: 'chat',
  metadata: {},
  created_at: EPOCH_MS,
};

/** Ignores entries for lists outside of the session. */
const NO_LIST = { isBehind: false, sync: (): Promise<void> => Promise.resolve() };

/** A session has nothing elsewhere here, but other objects would be asked. */
const FORGET_MS = 3;

/** A session in the memory of its host. */
interface Opened {
  /** Its number, from 0. */
  readonly incarnation: number;
  readonly session: Session;
  readonly events: EventSource;
  /** Its routes; made when a client needs them. */
  app: ReturnType<typeof createSessionApp> | null;
}

interface Surroundings {
  readonly model: ScriptedModel;
  readonly targets: Targets;
  /** The index of all sessions; null: there is none. */
  readonly directory: WorldDirectory | null;
  /** Of traces; null: nothing is exported. */
  readonly collector: WorldCollector | null;
  /** Called before the storage of a session is deleted. */
  readonly beforeDeletion: (host: Host) => void;
}

export class Host {
  readonly life: Life;
  holds = 0;
  readonly #stage: Stage;
  readonly #around: Surroundings;
  readonly #alarm: SessionAlarm;
  readonly #deletion: SessionDeletion;
  /** Sessions whose end is wanted. */
  readonly #leaving = new Set<object>();
  #opened: Opened;
  #outbox: DirectoryOutbox | null;
  #telemetry: TelemetryOutbox | null;

  constructor(stage: Stage, number: number, around: Surroundings) {
    this.#stage = stage;
    this.#around = around;
    const life = new Life(stage, number);
    this.life = life;
    this.#opened = this.#open();
    this.#outbox = this.#openOutbox();
    this.#telemetry = this.#openTelemetry();
    this.#deletion = new SessionDeletion({
      current: () => this.session,
      forget: async () => {
        await this.#telemetry?.close();
        await this.#pause(FORGET_MS);
      },
      clear: async () => {
        await this.#pause(stage.syncMs);
        life.meet('write', 'everything');
        const notes = this.#outbox?.close() ?? [];
        around.beforeDeletion(this);
        stage.sessionDeleted(this.#leaving.has(this.session), notes, stage.hostNow + limits.watchdogMs);
      },
      reopen: () => {
        if (life.isOver) return;
        this.#outbox?.close();
        this.#opened = this.#open();
        this.#outbox = this.#openOutbox();
        this.#telemetry = this.#openTelemetry();
      },
    });
    this.#alarm = new SessionAlarm({
      session: () => this.session,
      clock: life.clock,
      setAlarm: (at) => {
        life.enter();
        life.meet('write', 'alarm');
        stage.setAlarm(at);
        return Promise.resolve();
      },
      keepAlive: (work) => this.#keepAlive(work),
      isServed: () => true,
      approvals: () => NO_LIST,
      telemetry: () => this.#telemetry,
      directory: () => ({ dueAt: this.#outbox?.dueAt ?? null, update: () => this.#outbox?.update() ?? null }),
      forgetRelics: () => Promise.resolve(),
      destroy: (session) => this.delete(session),
      log: this.#logOf(stage.incarnation),
    });
  }

  /** Whether everything that has ended was exported. */
  get hasExported(): boolean {
    return this.#telemetry?.dueAt == null;
  }

  get session(): Session {
    return this.#opened.session;
  }

  get events(): EventSource {
    return this.#opened.events;
  }

  /** The routes of the session. */
  get app(): ReturnType<typeof createSessionApp> {
    const { session, incarnation, events } = this.#opened;
    const log = this.#logOf(incarnation);
    return (this.#opened.app ??= createSessionApp({
      session,
      events,
      clock: this.life.clock,
      destroy: () => this.delete(session),
      // Refusals, such as that of a full session, are expected.
      log: (event, details) => {
        if (event !== 'request_failed') log(event, details);
      },
    }));
  }

  /** Number of its session, from 0. */
  get incarnation(): number {
    return this.#opened.incarnation;
  }

  /** Deletes a session, if it is still there. */
  async delete(session: Pick<Session, 'close'>): Promise<void> {
    this.#leaving.add(session);
    await this.#deletion.delete(session);
    if (!this.life.isOver) this.#alarm.updateLists();
  }

  #openOutbox(): DirectoryOutbox | null {
    const { directory } = this.#around;
    if (directory === null) return null;
    return new DirectoryOutbox({
      storage: objectNotes(() => this.session.notes, this.life.notes),
      current: () => listedSession(this.session),
      index: () => directory.of(this.life),
      clock: this.life.clock,
    });
  }

  #openTelemetry(): TelemetryOutbox | null {
    const { collector } = this.#around;
    return collector === null
      ? null
      : collector.outboxOf(this.life, this.session, this.#logOf(this.#stage.incarnation));
  }

  async #pause(ms: number): Promise<void> {
    this.life.enter();
    await this.life.wait(ms);
  }

  /** Everything that this session causes is noted as its own, also after its deletion. */
  #open(): Opened {
    const { life } = this;
    const { model, targets } = this.#around;
    const stage = this.#stage;
    const { incarnation } = stage;
    const resolved = agentOf(stage.history.agent);
    const agent = stage.broken.agent?.(resolved) ?? resolved;
    const { clock, sql } = life;
    const { expiryMs } = stage.history.agent;
    const session = localSession(sql, {
      host: { life: life.number, frozen: [] },
      clock,
      share: new ThreadShare(new FairQueue(clock), () => null),
      newApprovalId: () => `apr_${String(stage.nextApproval++).padStart(32, '0')}`,
      executors: withTargets(targets.execute(life, incarnation)),
      runner: targets.runner(life, incarnation),
      codeTools: targets.codeTools(life, incarnation),
      children: targets.children(life, incarnation),
      resolve: () => agent,
      modelFor: () => model.provider(life, incarnation),
      hold: (work) => this.#alarm.hold(work),
      sampling: this.#around.collector === null ? null : EVERYTHING,
      ...(expiryMs === null ? {} : { expiryMs }),
      log: this.#logOf(incarnation),
    });
    session.listen((batch) => {
      // What a host sends after its end is lost.
      if (life.isOver) return;
      for (const event of batch ?? []) if (event.seq !== null) this.#seen(event, incarnation);
      if (this.#around.directory !== null || this.#around.collector !== null) this.#alarm.published(batch);
    });
    return { incarnation, session, events: this.#eventsOf(session), app: null };
  }

  /** What its readers and the clients of other protocols get. */
  #eventsOf(session: Session): EventSource {
    const { batch: passed, event: read = (event: SessionEvent): SessionEvent => event } = this.#stage.broken;
    const source = eventSource(session, this.life.clock);
    return {
      ...source,
      events: (after) => source.events(after).map(read),
      listen: (listener) =>
        source.listen((batch) => {
          const arrived = batch === null || passed === undefined ? batch : passed(batch);
          if (batch === null || arrived !== null) listener(arrived?.map(read) ?? null);
        }),
    };
  }

  #seen(event: SessionEvent, incarnation: number): void {
    const stage = this.#stage;
    const { runs, approvals, artifacts, calls } = stage.seenOf(incarnation);
    if (event.run_id !== runIdOf(stage.identity(incarnation), runNumberOf(event.run_id))) {
      stage.note({ type: 'earlier_answer', key: event.run_id }, incarnation);
    }
    runs.add(event.run_id);
    if (event.type === 'approval_requested') approvals.add(event.data.approval_id);
    if (event.type === 'action_completed' && filesOfOutput(event.data.output).length > 0) {
      artifacts.add(artifactIdOf(incarnationIn(event.run_id), event.seq ?? 0, 1));
    }
    if (event.type === 'client_tool_called') {
      calls.add(event.data.call_id);
      stage.callShown(event.data.call_id, event.action_id);
    }
    const isDurable = incarnation === stage.incarnation && (event.seq ?? 0) <= stage.disk.durableSeq;
    stage.note({ type: 'published', event, isDurable }, incarnation);
  }

  #logOf(incarnation: number): Logger {
    return (event, { run_id: runId, message, fault }) => {
      if (event === 'work_quarantined' && runId !== undefined) this.#stage.abandoned.add(runId);
      const isExpected = event === 'run_failed' || event === 'work_quarantined' || event === 'telemetry_dropped';
      if (!isExpected) this.#report(fault ?? message ?? event, incarnation);
    };
  }

  /** Creates the session, if it does not exist. */
  async ensure(): Promise<void> {
    if (this.session.exists) return;
    const history = { messages: seededOf(this.#stage.history.seeded), files: new Map<string, Uint8Array>() };
    try {
      await this.#alarm.precede();
      // No other request comes between the platform's own writes.
      if (this.session.exists) return;
      const record = { ...RECORD, incarnation: this.#stage.nextIncarnation() };
      const stored = this.session.create(record, {}, history);
      // If the host ends in the next line, the rejection is not awaited.
      stored.catch(() => undefined);
      this.#alarm.updateLists();
      await Promise.all([stored, this.#alarm.arm()]);
    } catch (fault) {
      if (!this.life.isOver) this.#stage.noteStored();
      throw fault;
    }
  }

  /** The alarm has fired. @throws if it could not be handled, so that it fires again */
  async fire(): Promise<void> {
    await this.#alarm.fire();
  }

  #keepAlive(work: Promise<unknown>): void {
    this.holds += 1;
    const { incarnation } = this.#stage;
    work.catch((fault: unknown) => this.#report(fault, incarnation)).finally(() => (this.holds -= 1));
  }

  /** An error of the engine; none is expected while the disk works. */
  #report(fault: unknown, incarnation: number): void {
    if (this.life.isOver || this.life.hasFailed) return;
    if (fault instanceof HostGone || fault instanceof DiskFailure || fault instanceof NoAnswer) return;
    const message = fault instanceof Error ? (fault.stack ?? '') : String(fault);
    this.#stage.note({ type: 'work_failed', message }, incarnation);
  }
}

const isCode = ({ tool: called }: ActionCall): boolean => called?.implementation.type === 'code';

/** The executors; tools that would call an endpoint call their target. */
function withTargets(callTarget: Executor['execute']): ReturnType<typeof createExecutors> {
  const executors = createExecutors();
  const { tool: real } = executors;
  return {
    ...executors,
    tool: {
      execute: async (call, context) => await (isCode(call) ? real.execute(call, context) : callTarget(call, context)),
      recover: async (call, context) => (isCode(call) ? ((await real.recover?.(call, context)) ?? null) : null),
    },
  };
}

function tool(name: string, effects: ToolDefinition['effects'], changes: Partial<ToolDefinition> = {}): ToolDefinition {
  return toolOf(
    { type: 'http', url: 'https://tool.example', method: 'POST', headers: {} },
    { name, effects, ...changes },
  );
}

const TOOLS = [
  tool('pure', 'pure'),
  tool('idempotent', 'idempotent', {
    concurrency: IDEMPOTENT_CONCURRENCY,
    parameters: { type: 'object', properties: { limit: { type: 'integer', default: 5 } } },
  }),
  tool('unsafe', 'unsafe'),
  tool('late', 'unsafe', { dispatch: 'after_generation' }),
  toolOf({ type: 'code', bindings: [], secrets: [] }, { name: 'code', effects: 'unsafe' }),
  toolOf({ type: 'client' }, { name: 'client', effects: 'unsafe', parameters: { type: 'object' } }),
];

const FEED = feedOf('news', {
  when: 'periodic',
  intervalMs: 5_000,
  cacheTtlMs: 1_000,
  source: { type: 'tool', name: 'pure', action: null, params: { token: 'feed' } },
});

function memoryOf({ summarizeAfter }: AgentSettings): MemoryPolicy {
  if (summarizeAfter === undefined) return { maxTurns: null, summarizeAfter: null };
  return { maxTurns: null, summarizeAfter, summary: { by: 'model', tokens: 200, template: null } };
}

function agentOf(settings: AgentSettings): ResolvedAgent {
  const found = bundled.agent('assistant');
  if (found === null) throw new Error('the bundled catalogue has no assistant');
  const { agent } = found;
  return {
    ...found,
    tools: new Map(TOOLS.map((definition) => [definition.name, definition])),
    agent: {
      ...agent,
      imports: { ...agent.imports, tools: TOOLS.map(({ name }) => name), agents: ['helper'] },
      capabilities: ['python'],
      redact: [HIDDEN.source],
      loop: {
        ...agent.loop,
        mode: settings.supervised ? 'supervised' : 'autonomous',
        maxIterations: settings.maxIterations,
        maxParallelActions: settings.maxParallelActions,
        failFast: settings.failFast,
      },
      budgets: {
        ...agent.budgets,
        actions: settings.maxActions,
        modelCalls: settings.modelCalls,
        seconds: settings.seconds,
      },
      feeds: settings.feed ? [FEED] : [],
      memory: memoryOf(settings),
      ...(settings.policies ? { policies: POLICIES } : {}),
    },
  };
}
