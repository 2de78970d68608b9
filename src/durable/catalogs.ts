/** The catalogue object of a namespace, and the copies of its definitions that a session keeps. */
import { bundled } from './project.ts';
import { shapesIn } from '../catalog/store/learned-shapes.ts';
import { waitUntil } from 'cloudflare:workers';
import { DefinitionCache } from '../catalog/store/definition-cache.ts';
import type { CachedTexts, Checked, DefinitionTexts } from '../catalog/store/definition-cache.ts';
import { checkedIn, PinTable } from '../catalog/store/pin-table.ts';
import type { PinnedTexts } from '../catalog/store/pin-table.ts';
import { fromPinned, toPinned } from '../catalog/store/pinned.ts';
import { mcpToolsIn, withPinnedMcp } from '../catalog/store/pinned-mcp.ts';
import type { McpTools } from '../catalog/store/pinned-mcp.ts';
import { withSecrets } from '../catalog/check/secrets.ts';
import type { ExposedManifests } from '../domain/catalog.ts';
import { derived } from '../domain/derived.ts';
import { limits } from '../domain/limits.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../domain/manifests/tool.ts';
import type { WorkflowDefinition } from '../domain/manifests/workflow.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { RecentTexts } from '../domain/recent-texts.ts';
import type { SessionRecord } from '../domain/session.ts';
import type { LearnedShapes } from '../domain/shape.ts';
import { within } from '../domain/sleep.ts';
import { undescribedTargets } from '../domain/undescribed-targets.ts';
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
      const ask = async (): Promise<DefinitionTexts> => ({
        text: JSON.stringify(valueOf(await of(owner).exposed(owner))),
        shapes: null,
      });
      const { texts } = await definitions.find({ owner, key: 'exposed', ask, behind });
      return JSON.parse(texts?.text ?? NOTHING_EXPOSED) as ExposedManifests;
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
type Found = { readonly texts: DefinitionTexts; readonly checked: Checked | null };

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
  clock: Clock,
  wanted: Wanted,
  known: () => CachedTexts | null = () => null,
  seen = 0,
): Promise<Found | null> {
  const { owner, kind, name, scope } = wanted;
  const common = kind === 'agent' ? bundled().agent(name, scope) : bundled().workflow(name, scope);
  if (common !== null) {
    const shapes = await shapesOf(env, clock, owner, undescribedTargets(common));
    return { texts: { text: pinnedText(common), shapes }, checked: null };
  }
  const ask = async (): Promise<DefinitionTexts | null> =>
    valueOf(await catalogFor(env, owner).resolve(kind, name, scope));
  const { texts, ...checked } = await definitions.find({ owner, key: cacheKey(wanted), known, seen, ask, behind });
  return texts === null ? null : { texts, checked };
}

/** The isolate's copy of an agent, for the session that is created for it; null: it has none, or the agent is bundled. */
export function copyOf(record: SessionRecord): CachedTexts | null {
  return definitions.peek(record.owner, cacheKey(wantedBy(record)));
}

/** Takes over the copy that came with a new session. */
export function takeCopy(record: SessionRecord, copy: CachedTexts): void {
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

/**
 * Without shapes, a prompt says less; so a message does not fail because of them. The first one waits at most
 * `limits.learnedShapesWaitMs`, later ones use the isolate's copy.
 */
async function shapesOf(
  env: Env,
  clock: Clock,
  owner: string | null,
  targets: readonly string[],
): Promise<string | null> {
  if (targets.length === 0) return null;
  const ask = async (): Promise<DefinitionTexts> => ({
    text: '',
    shapes: valueOf(await catalogFor(env, owner).shapes(targets)),
  });
  const found = definitions
    .find({ owner, key: `shapes/${JSON.stringify(targets)}`, ask, behind })
    .then(({ texts }) => texts?.shapes ?? null);
  try {
    return await within(found, limits.learnedShapesWaitMs, clock, null);
  } catch {
    return null;
  }
}

/** Stores what a run of the namespace has learned about results (L4). */
export async function learnShapes(env: Env, owner: string | null, shapes: LearnedShapes): Promise<void> {
  valueOf(await catalogFor(env, owner).learn(shapes));
  definitions.refreshSoon(owner);
}

/** The pinned text of a bundled definition. */
const pinnedText = derived(toPinned);

/** Between the parts of a key. JSON texts contain no such character. */
const PART_END = '\0';

/** The definitions in pinned texts that were used last, by all parts of such a text. */
const definitionsIn = new RecentTexts((key): ResolvedAgent | ResolvedWorkflow => {
  const [text = '', shapes = '', mcp = ''] = key.split(PART_END);
  const definition = { ...fromPinned(text), ...shapesIn(shapes === '' ? null : shapes) };
  return 'agent' in definition ? withPinnedMcp(definition, mcp === '' ? null : mcp) : definition;
});

/** The same object for the same texts, as long as the isolate keeps it. */
function resolvedFrom({ text, shapes, mcp = null }: PinnedTexts): ResolvedAgent | ResolvedWorkflow {
  const isPlain = shapes === null && mcp === null;
  return definitionsIn.of(isPlain ? text : [text, shapes ?? '', mcp ?? ''].join(PART_END));
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
  const found = await current(env, clock, { owner, kind: 'agent', name });
  const resolved = found === null ? null : resolvedFrom(found.texts);
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
  const found = await current(env, clock, { owner, kind: 'workflow', name });
  const resolved = found === null ? null : resolvedFrom(found.texts);
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
  /** The definitions of the latest text with MCP servers: their tools are known by this object. */
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
    const wanted = wantedBy(record);
    const latest = [...this.#inUse()].at(-1) ?? null;
    const seen = latest === null ? 0 : (checkedIn(latest)?.revision ?? 0);
    const found = await current(this.#env, this.#clock, wanted, () => this.#copyOf(latest), seen);
    if (found === null) return null;
    const { texts, checked } = found;
    return this.#table.store({ ...texts, mcp: await this.#mcpOf(texts, wanted.owner) }, checked);
  }

  /** What the latest run of this session has: after a pause, its object is in an isolate without copies (Z1). */
  #copyOf(pin: string | null): CachedTexts | null {
    const checked = pin === null ? null : checkedIn(pin);
    const texts = pin === null || checked === null ? null : this.#table.read(pin);
    return checked === null || texts === null
      ? null
      : { ...checked, texts: { text: texts.text, shapes: texts.shapes } };
  }

  /** The tools of the agent's MCP servers as JSON; null if it has none. */
  async #mcpOf({ text }: PinnedTexts, owner: string | null): Promise<string | null> {
    // Most agents have none: their text is not parsed for every message.
    if (!text.includes('"mcpServers":')) return null;
    if (this.#latest?.text !== text) this.#latest = { text, resolved: resolvedFrom({ text, shapes: null }) };
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
