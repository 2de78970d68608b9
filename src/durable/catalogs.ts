/** The catalogue object of a namespace, and the copies of its definitions that a session keeps. */
import { bundled } from './project.ts';
import { shapesIn } from '../catalog/store/learned-shapes.ts';
import { PinTable } from '../catalog/store/pin-table.ts';
import type { PinnedTexts } from '../catalog/store/pin-table.ts';
import { fromPinned, toPinned } from '../catalog/store/pinned.ts';
import { mcpToolsIn, withPinnedMcp } from '../catalog/store/pinned-mcp.ts';
import type { McpTools } from '../catalog/store/pinned-mcp.ts';
import { withSecrets } from '../catalog/check/secrets.ts';
import { limits } from '../domain/limits.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../domain/manifests/tool.ts';
import type { WorkflowDefinition } from '../domain/manifests/workflow.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { SessionRecord } from '../domain/session.ts';
import type { LearnedShapes } from '../domain/shape.ts';
import { within } from '../domain/sleep.ts';
import { undescribedTargets } from '../domain/undescribed-targets.ts';
import type { ManifestHost } from '../http/manifest-host.ts';
import { scopeOf } from '../settings/secrets.ts';
import { objectName } from '../domain/owner.ts';
import type { McpAccess } from './mcp.ts';
import type { CatalogRpc, Env, Remote } from './env.ts';
import { valueOf } from './reply.ts';
import type { Reply } from './reply.ts';
import { durableSql } from './sql-storage.ts';

function catalogFor(env: Env, owner: string | null): Remote<CatalogRpc> {
  return env.CATALOGS.getByName(objectName(owner));
}

/**
 * After a change: updates the schedule of the namespace's own workflows; the Worker schedules the bundled ones (M6).
 */
async function changed<T>(env: Env, owner: string | null, change: Promise<Reply<T>>): Promise<T> {
  const answer = valueOf(await change);
  await env.SCHEDULES.getByName(objectName(owner)).follow(owner);
  return answer;
}

export function manifestHost(env: Env): ManifestHost {
  const of = (owner: string | null): Remote<CatalogRpc> => catalogFor(env, owner);
  return {
    list: async (owner, kind) => valueOf(await of(owner).list(owner, kind)),
    get: async (owner, ref, wanted) => valueOf(await of(owner).get(owner, ref, wanted)),
    put: (owner, ref, text) => changed(env, owner, of(owner).put(owner, ref, text)),
    remove: (owner, ref) => changed(env, owner, of(owner).remove(owner, ref)),
    upload: (owner, files) => changed(env, owner, of(owner).upload(owner, files)),
    replace: (owner, files) => changed(env, owner, of(owner).replace(owner, files)),
    validate: async (owner, files) => valueOf(await of(owner).validate(owner, files)),
    exposed: async (owner) => valueOf(await of(owner).exposed(owner)),
    graph: async (owner) => valueOf(await of(owner).graph(owner)),
  };
}

/**
 * Names of bundled manifests are reserved, so these are found here. Null if the name is unknown.
 *
 * @throws EngineError the catalogue's error
 */
async function current(
  env: Env,
  clock: Clock,
  owner: string | null,
  kind: 'agent' | 'workflow',
  name: string,
  scope?: string,
): Promise<PinnedTexts | null> {
  const common = kind === 'agent' ? bundled().agent(name, scope) : bundled().workflow(name, scope);
  if (common === null) return valueOf(await catalogFor(env, owner).resolve(kind, name, scope));
  return { text: toPinned(common), shapes: await shapesOf(env, clock, owner, undescribedTargets(common)) };
}

/**
 * Without shapes, a prompt says less; so a message does not fail because of them, and waits at most
 * `limits.learnedShapesWaitMs`.
 */
async function shapesOf(
  env: Env,
  clock: Clock,
  owner: string | null,
  targets: readonly string[],
): Promise<string | null> {
  if (targets.length === 0) return null;
  try {
    return await within(catalogFor(env, owner).shapes(targets).then(valueOf), limits.learnedShapesWaitMs, clock, null);
  } catch {
    return null;
  }
}

/** Stores what a run of the namespace has learned about results (L4). */
export async function learnShapes(env: Env, owner: string | null, shapes: LearnedShapes): Promise<void> {
  valueOf(await catalogFor(env, owner).learn(shapes));
}

function resolvedFrom({ text, shapes, mcp = null }: PinnedTexts): ResolvedAgent | ResolvedWorkflow {
  const resolved = { ...fromPinned(text), ...shapesIn(shapes) };
  return 'agent' in resolved ? withPinnedMcp(resolved, mcp) : resolved;
}

/** Without the tools of its MCP servers. */
export async function agentOf(
  env: Env,
  clock: Clock,
  owner: string | null,
  name: string,
): Promise<ResolvedAgent | null> {
  const common = bundled().agent(name);
  if (common !== null) return { ...common, ...shapesIn(await shapesOf(env, clock, owner, undescribedTargets(common))) };
  const found = await current(env, clock, owner, 'agent', name);
  const resolved = found === null ? null : resolvedFrom(found);
  return resolved !== null && 'agent' in resolved ? resolved : null;
}

/** The same for workflows. */
export async function workflowOf(
  env: Env,
  clock: Clock,
  owner: string | null,
  name: string,
): Promise<ResolvedWorkflow | null> {
  const common = bundled().workflow(name);
  if (common !== null) return common;
  const found = await current(env, clock, owner, 'workflow', name);
  const resolved = found === null ? null : resolvedFrom(found);
  return resolved !== null && 'workflow' in resolved ? resolved : null;
}

/** All workflows of the namespace by name, including the bundled ones. */
export async function workflowsOf(env: Env, owner: string | null): Promise<WorkflowDefinition[]> {
  const all = await catalogFor(env, owner).workflows();
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The definitions used by the runs of one session, in the session's own storage (M4, J2). */
export class PinnedManifests {
  readonly #env: Env;
  readonly #clock: Clock;
  readonly #table: PinTable;
  readonly #mcp: McpAccess;
  readonly #inUse: () => Iterable<string>;
  /** The definitions of the latest text, which is the same for most messages. */
  #latest: { readonly text: string; readonly resolved: ResolvedAgent | ResolvedWorkflow } | null = null;

  #latestMcp: { readonly tools: McpTools; readonly json: string } | null = null;

  /** @param inUse pins of the open runs and of the latest run */
  constructor(
    env: Env,
    storage: DurableObjectStorage,
    { clock, inUse, mcp }: { readonly clock: Clock; readonly inUse: () => Iterable<string>; readonly mcp: McpAccess },
  ) {
    this.#env = env;
    this.#clock = clock;
    this.#mcp = mcp;
    this.#inUse = inUse;
    this.#table = new PinTable(durableSql(storage), inUse);
  }

  /** Stores the current definition of the session's agent or workflow. @returns its pin; null if there is none */
  async pin(record: Pick<SessionRecord, 'agent' | 'workflow' | 'scope' | 'owner'>): Promise<string | null> {
    const { agent, workflow, scope, owner } = record;
    const kind = workflow === undefined ? 'agent' : 'workflow';
    const found = await current(this.#env, this.#clock, owner, kind, workflow ?? agent, scope);
    return found === null ? null : this.#table.store({ ...found, mcp: await this.#mcpOf(found, owner) });
  }

  /** The tools of the agent's MCP servers as JSON; null if it has none. */
  async #mcpOf({ text }: PinnedTexts, owner: string | null): Promise<string | null> {
    // Most agents have none: their text is not parsed for every message.
    if (!text.includes('"mcpServers":')) return null;
    if (this.#latest?.text !== text) this.#latest = { text, resolved: fromPinned(text) };
    const { resolved } = this.#latest;
    if (!('agent' in resolved)) return null;
    const found = await this.#mcp.toolsOf(resolved, owner, () => this.#latestMcpTools());
    if (found === null) return null;
    if (this.#latestMcp?.tools !== found) this.#latestMcp = { tools: found, json: JSON.stringify(found) };
    return this.#latestMcp.json;
  }

  /** The tools of MCP servers that the latest run has. */
  #latestMcpTools(): readonly ToolDefinition[] {
    const pin = [...this.#inUse()].at(-1);
    const text = pin === undefined ? null : (this.#table.read(pin)?.mcp ?? null);
    return text === null ? [] : mcpToolsIn(text).tools;
  }

  /** @param pin the result of `pin`; null means the bundled manifests of this deployment */
  agent(name: string, pin: string | null, owner: string | null): ResolvedAgent | null {
    const found = pin === null ? bundled().agent(name) : this.#read(pin);
    if (found === null || !('agent' in found)) return null;
    return withSecrets(found, found.agent.secrets, scopeOf(this.#env, owner));
  }

  workflow(name: string, pin: string | null, owner: string | null): ResolvedWorkflow | null {
    const found = pin === null ? bundled().workflow(name) : this.#read(pin);
    if (found === null || !('workflow' in found)) return null;
    return withSecrets(found, [], scopeOf(this.#env, owner));
  }

  #read(pin: string): ResolvedAgent | ResolvedWorkflow | null {
    const found = this.#table.read(pin);
    return found === null ? null : resolvedFrom(found);
  }
}
