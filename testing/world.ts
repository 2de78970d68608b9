/**
 * The sessions of one test: the one that it opens, and those of its sub-agents and workflows.
 *
 * Owns what they share: the time, the model, the stores of relics. Does not own the flow of a test (open-session.ts).
 */
import type { Catalog } from '../src/catalog/catalog.ts';
import { withSecrets } from '../src/catalog/check/secrets.ts';
import { readSecret } from '../src/domain/secrets.ts';
import type { ToolContext } from '../src/code-tools/define-tool.ts';
import type { SessionEvent } from '../src/domain/event.ts';
import type { ModelDelta, ModelProvider, ModelRequest } from '../src/domain/ports/model.ts';
import type { OutboundFetch } from '../src/domain/ports/outbound.ts';
import type { SessionRecord } from '../src/domain/session.ts';
import type { Project } from '../src/durable/project.ts';
import type { OpenApproval } from '../src/engine/actions/approval-list.ts';
import { redactor } from '../src/engine/session/redact.ts';
import type { Session } from '../src/engine/session/session.ts';
import { createOutboundFetch } from '../src/executors/outbound/outbound.ts';
import { childSessions } from './children.ts';
import type { HostedSession, SessionHost } from './hosted-session.ts';
import { testCodeTools } from './code-tools.ts';
import { TestRelics } from './edge-relics.ts';
import { testExecutors } from './executors.ts';
import { localSession } from './local-session.ts';
import { openNodeSql } from './node-sql.ts';
import { isScript, readOptions } from './options.ts';
import type { SessionOptions } from './options.ts';
import { ScriptReader, unscripted } from './scripted.ts';
import { TestFacts } from './user-facts.ts';
import { VirtualTime } from './virtual-time.ts';

/** What a model was sent, and by which agent. */
export interface SentRequest extends ModelRequest {
  readonly from: string;
}

/** Open approvals of one session that are listed. */
const LISTED_APPROVALS = 1_000;
const DEFAULT_NOW = Date.UTC(2026, 0, 1);

export class TestWorld implements SessionHost {
  readonly time: VirtualTime;
  readonly requests: SentRequest[] = [];
  /** Errors that the runtime has logged: mistakes of the runtime, not of the project. */
  readonly faults: unknown[] = [];
  readonly sessions = new Map<string, HostedSession>();
  readonly #catalog: Catalog;
  readonly #project: Project;
  readonly #options: SessionOptions;
  readonly #relics: TestRelics;
  readonly #facts: TestFacts;
  readonly #fetch: OutboundFetch;
  readonly #scripts = new Map<string, ScriptReader>();
  #approvals = 0;

  constructor(project: Project, options: SessionOptions) {
    this.#catalog = readOptions(project, options);
    this.#project = project;
    this.#options = options;
    this.time = new VirtualTime(options.now?.getTime() ?? DEFAULT_NOW);
    this.#relics = new TestRelics(this.time.clock);
    this.#facts = new TestFacts(this.time.clock);
    this.#fetch = createOutboundFetch({
      fetch: (url, init) => this.#answer(url, init),
      allowHosts: options.allowHosts ?? [],
      clock: this.time.clock,
    });
  }

  /** A session without its record: it is created next. */
  open(record: SessionRecord): HostedSession {
    const { clock } = this.time;
    const { secrets = {}, tools = {}, actions = {}, env = {} } = this.#options;
    const scope = { owner: null, owners: [], lookup: (name: string) => secrets[name] ?? null };
    const { session_id: id, agent, user_id: userId, scope: within } = record;
    const whose = (): ToolContext['session'] => ({ id, agent, userId, namespace: null });
    const session = localSession(openNodeSql(), {
      clock,
      newApprovalId: () => {
        this.#approvals += 1;
        return `apr_${this.#approvals.toString(16).padStart(32, '0')}`;
      },
      executors: testExecutors({ tools, actions }, { session: whose, time: this.time }),
      fetch: this.#fetch,
      readHtml: async () => {
        throw new Error('Only the Worker reads HTML: answer with text or JSON, or replace the tool');
      },
      edgeRelics: this.#relics,
      codeTools: testCodeTools({
        tools: this.#project.tools,
        env,
        secret: (name) => readSecret(name, { ...scope, bundled: true }, scope.lookup),
        session: record,
        fetch: this.#fetch,
        time: this.time,
      }),
      userFacts: this.#facts,
      children: childSessions(this, record),
      resolve: (name) => {
        const found = this.#catalog.agent(name, within);
        return found === null ? null : withSecrets(found, found.agent.secrets, scope);
      },
      workflow: (name) => {
        const found = this.#catalog.workflow(name, within);
        return found === null ? null : withSecrets(found, [], scope);
      },
      modelFor: (resolved) => this.#model(resolved.agent.name),
      redact: redactor(Object.values(secrets)),
      log: (event, fields) => {
        if (event === 'internal_error') this.faults.push(fields.fault);
      },
    });
    const events: SessionEvent[] = [];
    session.listen((batch) => void events.push(...(batch ?? [])));
    const hosted = { session, events };
    this.sessions.set(id, hosted);
    return hosted;
  }

  /** Open requests for approval of all sessions, oldest first. */
  approvals(): OpenApproval[] {
    return [...this.sessions.values()]
      .flatMap(({ session }) => session.openApprovals({ limit: LISTED_APPROVALS, after: null }))
      .sort((a, b) => a.requested_at - b.requested_at || (a.approval_id < b.approval_id ? -1 : 1));
  }

  /** When a session must be woken, epoch milliseconds. A session that has expired stays. */
  wakeAt(): number | null {
    const times = this.#kept().map((session) => session.nextWake() ?? Infinity);
    const first = Math.min(...times, Infinity);
    return Number.isFinite(first) ? first : null;
  }

  async wake(): Promise<void> {
    const now = this.time.clock.now();
    await Promise.all(
      this.#kept().map(async (session) => ((session.nextWake() ?? Infinity) <= now ? session.wake() : null)),
    );
  }

  #kept(): Session[] {
    const now = this.time.clock.now();
    const all = [...this.sessions.values()].map(({ session }) => session);
    return all.filter((session) => session.exists && session.expiresAt > now);
  }

  #model(agent: string): ModelProvider {
    const { time, requests } = this;
    const next = (request: ModelRequest): Promise<readonly ModelDelta[]> => this.#script(agent).next(request);
    return {
      name: 'scripted',
      async *stream(request) {
        requests.push({ ...request, from: agent });
        yield* await time.hold(`the scripted model of "${agent}"`, request.signal, () => next(request));
      },
    };
  }

  /** @throws EngineError `model_rejected` if the test gives the agent no model */
  #script(agent: string): ScriptReader {
    const { model = {} } = this.#options;
    const isShared = isScript(model);
    const key = isShared ? '' : agent;
    const known = this.#scripts.get(key);
    if (known !== undefined) return known;
    const given = isShared ? model : Object.hasOwn(model, agent) ? model[agent] : undefined;
    if (given === undefined) throw unscripted(agent, isShared ? [] : Object.keys(model));
    const reader = new ScriptReader(given, agent);
    this.#scripts.set(key, reader);
    return reader;
  }

  async #answer(url: string, init: RequestInit): Promise<Response> {
    const { fetch } = this.#options;
    if (fetch === undefined) {
      throw new Error('the test answers no requests: pass fetch: async (url, init) => new Response(…) to openSession');
    }
    return await this.time.hold(`fetch of ${url}`, init.signal ?? null, () => fetch(url, init));
  }
}
