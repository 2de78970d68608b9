/** The catalogue object of a namespace, and the copies of its definitions that a session keeps. */
import { bundled } from './project.ts';
import { waitUntil } from 'cloudflare:workers';
import { DefinitionCache } from '../catalog/store/definition-cache.ts';
import type { CachedText, Checked } from '../catalog/store/definition-cache.ts';
import { checkedIn, PinTable } from '../catalog/store/pin-table.ts';
import type { PinnedTexts } from '../catalog/store/pin-table.ts';
import { fromPinned, toPinned } from '../catalog/store/pinned.ts';
import { mcpToolsIn, withPinnedMcp } from '../catalog/store/pinned-mcp.ts';
import type { McpTools } from '../catalog/store/pinned-mcp.ts';
import { withSecrets } from '../catalog/check/secrets.ts';
import type { ExposedManifests } from '../domain/catalog.ts';
import { derived } from '../domain/derived.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../domain/manifests/tool.ts';
import type { WorkflowDefinition } from '../domain/manifests/workflow.ts';
import { RecentTexts } from '../domain/recent-texts.ts';
import type { SessionRecord } from '../domain/session.ts';
import type { ManifestHost } from '../http/manifest-host.ts';
import { scopeOf } from '../settings/secrets.ts';
import { objectName } from '../domain/owner.ts';
import type { McpAccess } from './mcp.ts';
import type { CatalogRpc, Changed, Env, Remote } from './env.ts';
import { platformClock } from './platform.ts';
import { valueOf } from './reply.ts';
import { durableSql } from './sql-storage.ts';

function catalogFor(env: Env, owner: string | null): Remote<CatalogRpc> {
  return env.CATALOGS.getByName(objectName(owner));
}

/** Shared by all objects and requests of this isolate (Z1). */
const definitions = new DefinitionCache(platformClock);

/** What this isolate knows of changes of catalogues. */
export const catalogRevisions = {
  /** The latest change that is known; 0: none is. */
  of: (owner: string | null): number => definitions.revision(owner),
  /** From here on, the namespace's manifests are those of this change, or of a later one. */
  require: (owner: string | null, revision: number): void => definitions.require(owner, revision),
  /** The same for the number that another object knows. */
  changed: (owner: string | null, revision: number): void => definitions.changed(owner, revision),
};

/** Work that nothing waits for. */
function behind(work: Promise<void>): void {
  waitUntil(work);
}

/**
 * After a change: updates the schedule of the namespace's own workflows; the Worker schedules the bundled ones (M6).
 */
async function changed<T>(env: Env, owner: string | null, change: Promise<Changed<T>>): Promise<T> {
  const reply = await change;
  if (reply.type === 'ok' && reply.revision !== undefined) definitions.changed(owner, reply.revision);
  const answer = valueOf(reply);
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
    exposed: async (owner) => {
      const ask = async (): Promise<string> => JSON.stringify(valueOf(await of(owner).exposed(owner)));
      const { text } = await definitions.find({ owner, key: 'exposed', ask, behind });
      return JSON.parse(text ?? NOTHING_EXPOSED) as ExposedManifests;
    },
    graph: async (owner) => valueOf(await of(owner).graph(owner)),
  };
}

const NOTHING_EXPOSED = JSON.stringify({ agents: [], tools: [], workflows: [] } satisfies ExposedManifests);

/** Identifies a definition in its catalogue. */
interface Wanted {
  readonly owner: string | null;
  readonly kind: 'agent' | 'workflow';
  readonly name: string;
  readonly scope?: string | undefined;
}

/** The definition that a run of it has, and when the catalogue was asked for it; null: it was not asked. */
type Found = { readonly text: string; readonly checked: Checked | null };

function cacheKey({ kind, name, scope }: Wanted): string {
  return scope === undefined ? `${kind}/${name}` : `${kind}/${name}/${scope}`;
}

/**
 * Names of bundled manifests are reserved, so these are found here. Others are read through the copies of this isolate and
 * of the session (Z1). Null if the name is unknown.
 *
 * @param known the session's copy
 * @param seen the latest change that the session has used a definition of
 * @throws EngineError the catalogue's error
 */
async function current(
  env: Env,
  wanted: Wanted,
  known: () => CachedText | null = () => null,
  seen = 0,
): Promise<Found | null> {
  const { owner, kind, name, scope } = wanted;
  const common = kind === 'agent' ? bundled().agent(name, scope) : bundled().workflow(name, scope);
  if (common !== null) return { text: pinnedText(common), checked: null };
  const ask = async (): Promise<string | null> => valueOf(await catalogFor(env, owner).resolve(kind, name, scope));
  const { text, ...checked } = await definitions.find({ owner, key: cacheKey(wanted), known, seen, ask, behind });
  return text === null ? null : { text, checked };
}

/** The isolate's copy of an agent, for the session that is created for it; null: it has none, or the agent is bundled. */
export function copyOf(record: SessionRecord): CachedText | null {
  return definitions.peek(record.owner, cacheKey(wantedBy(record)));
}

/** Takes over the copy that came with a new session. */
export function takeCopy(record: SessionRecord, copy: CachedText): void {
  definitions.take(record.owner, cacheKey(wantedBy(record)), copy);
}

function wantedBy({
  agent,
  workflow,
  scope,
  owner,
}: Pick<SessionRecord, 'agent' | 'workflow' | 'scope' | 'owner'>): Wanted {
  return { owner, kind: workflow === undefined ? 'agent' : 'workflow', name: workflow ?? agent, scope };
}

/** The pinned text of a bundled definition. */
const pinnedText = derived(toPinned);

/** Between the parts of a key. JSON texts contain no such character. */
const PART_END = '\0';

/** The definitions in pinned texts that were used last, by all parts of such a text. */
const definitionsIn = new RecentTexts((key): ResolvedAgent | ResolvedWorkflow => {
  const [text = '', mcp = ''] = key.split(PART_END);
  const definition = fromPinned(text);
  return 'agent' in definition ? withPinnedMcp(definition, mcp === '' ? null : mcp) : definition;
});

/** The same object for the same texts, as long as the isolate keeps it. */
function resolvedFrom({ text, mcp = null }: PinnedTexts): ResolvedAgent | ResolvedWorkflow {
  return definitionsIn.of(mcp === null ? text : [text, mcp].join(PART_END));
}

/** Without the tools of its MCP servers. */
export async function agentOf(env: Env, owner: string | null, name: string): Promise<ResolvedAgent | null> {
  const common = bundled().agent(name);
  if (common !== null) return common;
  const found = await current(env, { owner, kind: 'agent', name });
  const resolved = found === null ? null : resolvedFrom(found);
  return resolved !== null && 'agent' in resolved ? resolved : null;
}

/** The same for workflows. */
export async function workflowOf(env: Env, owner: string | null, name: string): Promise<ResolvedWorkflow | null> {
  const common = bundled().workflow(name);
  if (common !== null) return common;
  const found = await current(env, { owner, kind: 'workflow', name });
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
  readonly #table: PinTable;
  readonly #mcp: McpAccess;
  readonly #inUse: () => Iterable<string>;
  /** The definitions of the latest text with MCP servers: their tools are known by this object. */
  #latest: { readonly text: string; readonly resolved: ResolvedAgent | ResolvedWorkflow } | null = null;
  #latestMcp: { readonly tools: McpTools; readonly json: string } | null = null;

  /** @param inUse pins of the open runs and of the latest run */
  constructor(
    env: Env,
    storage: DurableObjectStorage,
    { inUse, mcp }: { readonly inUse: () => Iterable<string>; readonly mcp: McpAccess },
  ) {
    this.#env = env;
    this.#mcp = mcp;
    this.#inUse = inUse;
    this.#table = new PinTable(durableSql(storage), inUse);
  }

  /** Stores the current definition of the session's agent or workflow. @returns its pin; null if there is none */
  async pin(record: Pick<SessionRecord, 'agent' | 'workflow' | 'scope' | 'owner'>): Promise<string | null> {
    const wanted = wantedBy(record);
    const latest = [...this.#inUse()].at(-1) ?? null;
    const seen = latest === null ? 0 : (checkedIn(latest)?.revision ?? 0);
    const found = await current(this.#env, wanted, () => this.#copyOf(latest), seen);
    if (found === null) return null;
    const { text, checked } = found;
    return this.#table.store({ text, mcp: await this.#mcpOf(text, wanted.owner) }, checked);
  }

  /** What the latest run of this session has: after a pause, its object is in an isolate without copies (Z1). */
  #copyOf(pin: string | null): CachedText | null {
    const checked = pin === null ? null : checkedIn(pin);
    const texts = pin === null || checked === null ? null : this.#table.read(pin);
    return checked === null || texts === null ? null : { ...checked, text: texts.text };
  }

  /** The tools of the agent's MCP servers as JSON; null if it has none. */
  async #mcpOf(text: string, owner: string | null): Promise<string | null> {
    // Most agents have none: their text is not parsed for every message.
    if (!text.includes('"mcpServers":')) return null;
    if (this.#latest?.text !== text) this.#latest = { text, resolved: resolvedFrom({ text }) };
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
