/**
 * What concerns the whole system instead of one session: its state, its catalogue, its programs. These methods are for
 * API keys.
 */
import type { JsonObject } from '../domain/json.ts';
import type { AbortOptions } from './abort-options.ts';
import type { Connection } from './connection.ts';
import { openRun } from './open-run.ts';
import type { Attend, Run, RunOptions } from './run.ts';
import { Session } from './session.ts';
import type {
  AgentEntry,
  AgentPrompt,
  ApprovalPage,
  ExecutionFilter,
  ExecutionPage,
  HealthDocument,
  ManifestCheck,
  ManifestChoice,
  ManifestDocument,
  ManifestEntry,
  ManifestGraph,
  Plan,
  ScheduleEntry,
  SessionFilter,
  SessionListPage,
  WorkflowEntry,
} from './system-documents.ts';

export class System {
  protected readonly connection: Connection;
  /** For its runs. */
  protected readonly attend: Attend = () => [];

  constructor(connection: Connection) {
    this.connection = connection;
  }

  /** The status of the system; without a key, without details. */
  async health({ signal }: AbortOptions = {}): Promise<HealthDocument> {
    return await this.connection.json('/health', { signal });
  }

  /** Action types: `type`, where they run, whether they are `available`, and if not, the `reason`. */
  async executors(options: AbortOptions = {}): Promise<readonly JsonObject[]> {
    return await this.#list('executors', options);
  }

  /** The agents that can be used. */
  async agents(options: AbortOptions = {}): Promise<readonly AgentEntry[]> {
    return await this.#list('agents', options);
  }

  /** The system prompt that a session of the agent gets now. @throws CortexError `unknown_agent` */
  async prompt(agent: string, { signal }: AbortOptions = {}): Promise<AgentPrompt> {
    const headers = { accept: 'application/json' };
    return await this.connection.json(`/agents/${encodeURIComponent(agent)}/prompt`, { headers, signal });
  }

  /** All manifests of the catalogue. */
  async manifests(options: AbortOptions = {}): Promise<readonly ManifestEntry[]> {
    return await this.#list('manifests', options);
  }

  /** One manifest, with its source. @throws CortexError `unknown_manifest` */
  async manifest(
    kind: string,
    name: string,
    { version, revision, signal }: ManifestChoice & AbortOptions = {},
  ): Promise<ManifestDocument> {
    const path = `/manifests/${encodeURIComponent(kind)}/${encodeURIComponent(name)}`;
    return await this.connection.json(path, { query: { version, revision }, signal });
  }

  /** Which manifest uses which. */
  async manifestGraph({ signal }: AbortOptions = {}): Promise<ManifestGraph> {
    return await this.connection.json('/manifests/graph', { signal });
  }

  /** Validates manifests without storing them. @param files contents by path, such as `agents/mine.yaml` */
  async validateManifests(
    files: Readonly<Record<string, string>>,
    { signal }: AbortOptions = {},
  ): Promise<ManifestCheck> {
    return await this.connection.json('/manifests/validate', { method: 'POST', body: { files }, signal });
  }

  /** Runs of all sessions that have ended or wait, newest first: one page. */
  async executions({ signal, ...filter }: ExecutionFilter & AbortOptions = {}): Promise<ExecutionPage> {
    return await this.connection.json('/executions', { query: { ...filter }, signal });
  }

  /** The directory of sessions, newest activity first: one page. A new session appears a moment later. */
  async sessions({ userId, signal, ...filter }: SessionFilter & AbortOptions = {}): Promise<SessionListPage> {
    return await this.connection.json('/sessions', { query: { ...filter, user_id: userId }, signal });
  }

  /** Requests for approval of all sessions, oldest first: one page. Decide them in `approval.session_id`. */
  async approvals({
    signal,
    ...query
  }: AbortOptions & {
    readonly after?: string | undefined;
    readonly limit?: number | undefined;
  } = {}): Promise<ApprovalPage> {
    return await this.connection.json('/approvals', { query, signal });
  }

  /** The workflows that can be run. */
  async workflows(options: AbortOptions = {}): Promise<readonly WorkflowEntry[]> {
    return await this.#list('workflows', options);
  }

  /** Scheduled workflows, soonest first. @param options.count start times of each, 1 to 99; default 5 */
  async schedules({ signal, ...query }: AbortOptions & { readonly count?: number } = {}): Promise<
    readonly ScheduleEntry[]
  > {
    return await this.#list('schedules', { query, signal });
  }

  /**
   * Runs a workflow in a session of its own, like `session.send()`.
   *
   * The request is not repeated, because each one is a run.
   *
   * @throws CortexError, for example `unknown_workflow`
   */
  async runWorkflow(name: string, inputs: JsonObject = {}, options: RunOptions = {}): Promise<Run> {
    return await this.#run(`/workflows/${encodeURIComponent(name)}/runs`, { inputs }, options);
  }

  /** Plans protocol text without running it. @param options.agent names are looked up for this agent */
  async plan(text: string, { agent, signal }: AbortOptions & { readonly agent?: string } = {}): Promise<Plan> {
    const body = { protocol_text: text, agent };
    return await this.connection.json('/plan', { method: 'POST', body, signal });
  }

  /**
   * Runs protocol text as if a model had written it, in a session of its own, like `session.send()`.
   *
   * The request is not repeated, because each one is a run.
   *
   * @param options.agent whose tools and permissions apply. Default: `assistant`
   * @throws CortexError, for example `unknown_agent`
   */
  async execute(text: string, { agent, ...options }: RunOptions & { readonly agent?: string } = {}): Promise<Run> {
    return await this.#run('/execute/direct', { protocol_text: text, agent }, options);
  }

  async #run(path: string, body: object, options: RunOptions): Promise<Run> {
    const request = { body, signal: options.signal, retries: 0 };
    const { id, sessionId, open } = await openRun(this.connection, path, request);
    return new Session(this.connection, sessionId, this.attend).run(id, options, open);
  }

  /** A list that is the member of the same name of the answer. */
  async #list<T>(name: string, options: Parameters<Connection['json']>[1]): Promise<T> {
    return (await this.connection.json<Record<string, T>>(`/${name}`, options))[name] as T;
  }
}
