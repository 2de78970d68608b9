/**
 * The lists of tools of MCP servers, kept for as long as each server says (E5).
 *
 * Owns the lists that this isolate knows. Does not own connections for calls, or which tools an agent gets from a list.
 *
 * Invariants:
 *  1. A list is shared only between agents of one owner that reach the server in the same way.
 *  2. A server that does not answer costs a bounded wait, once in a while; its last list counts meanwhile.
 *  3. Requests are never shared: what one caller waits for is its own request.
 */
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { McpServerDefinition } from '../../domain/manifests/mcp-server.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { within } from '../../domain/sleep.ts';
import { ConnectFault, connectTo } from './connection.ts';
import type { KnownServer, McpTarget } from './connection.ts';
import type { ListedTool, ServerList } from './definitions.ts';
import { failureOfServer } from './failures.ts';
import type { McpNetwork } from './http.ts';

/** Who reaches a server, and how: what is known about it is shared between those who reach it in the same way. */
export interface Reach {
  readonly owner: string | null;
  readonly url: string;
  readonly auth: string | null;
  readonly bundled: boolean;
}

/** Where a list comes from now. */
export interface ListSource {
  readonly target: McpTarget;
  readonly network: McpNetwork;
}

interface Kept {
  readonly list: ServerList;
  readonly listedAt: number;
  freshUntil: number;
}

interface Entry {
  readonly reach: string;
  kept: Kept | null;
  failedUntil: number;
  problem: string | null;
}

export interface FoundList {
  /** Null: its tools are not available. */
  readonly list: ServerList | null;
  /** What is wrong with the server, or null. */
  readonly problem: string | null;
}

export class McpLists {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  /** Which protocol a server speaks, and since when this is known. */
  readonly #known = new Map<string, { readonly server: KnownServer; readonly at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The list of a server, at most as old as the server allows. Waits at most `limits.mcpListWaitMs`, and
   * `limits.mcpRefreshMs` if an older list is known. Never rejects.
   */
  async find(
    { name, tools }: Pick<McpServerDefinition, 'name' | 'tools'>,
    reach: Reach,
    source: ListSource,
  ): Promise<FoundList> {
    const entry = this.#entry(reach, tools);
    const now = this.#clock.now();
    if (entry.kept !== null && now < entry.kept.freshUntil) return { list: entry.kept.list, problem: null };
    const usable = (): ServerList | null => this.#usable(entry);
    if (now < entry.failedUntil) return { list: usable(), problem: entry.problem };
    const waitMs = usable() === null ? limits.mcpListWaitMs : limits.mcpRefreshMs;
    const isDone = await within(
      this.#refresh({ name, tools, reach }, entry, source).then(() => true),
      waitMs,
      this.#clock,
      false,
    );
    if (isDone) return { list: usable(), problem: entry.problem };
    const problem = `The MCP server "${name}" did not list its tools within ${waitMs / 1_000} s`;
    entry.failedUntil = this.#clock.now() + limits.mcpListRetryMs;
    entry.problem = problem;
    return { list: usable(), problem };
  }

  /** The server has said that its list has changed: the next run asks for it. */
  changed(reach: Reach): void {
    const id = idOf(reach);
    for (const { reach: own, kept } of this.#entries.values()) if (own === id && kept !== null) kept.freshUntil = 0;
  }

  /** Which protocol the server speaks, if it is known. */
  known(reach: Reach): KnownServer | null {
    const known = this.#known.get(idOf(reach));
    return known !== undefined && this.#clock.now() - known.at < limits.mcpKnownMs ? known.server : null;
  }

  learn(reach: Reach, server: KnownServer): void {
    if (this.known(reach) !== null || JSON.stringify(server).length > limits.mcpKnownChars) return;
    this.#known.set(idOf(reach), { server, at: this.#clock.now() });
    const [oldest] = this.#known.keys();
    if (this.#known.size > limits.mcpListsKept && oldest !== undefined) this.#known.delete(oldest);
  }

  /** It may speak another protocol than before. */
  forget(reach: Reach): void {
    this.#known.delete(idOf(reach));
  }

  #usable({ kept }: Entry): ServerList | null {
    return kept !== null && this.#clock.now() - kept.listedAt < limits.mcpListStaleMs ? kept.list : null;
  }

  async #refresh(
    { name, tools, reach }: Pick<McpServerDefinition, 'name' | 'tools'> & { readonly reach: Reach },
    entry: Entry,
    { target, network }: ListSource,
  ): Promise<void> {
    const abort = new AbortController();
    const cancelTimer = this.#clock.schedule(limits.mcpListWaitMs, () => {
      abort.abort(new DOMException('the time limit was reached', 'TimeoutError'));
    });
    try {
      const { list, ttlMs, server } = await listOf(target, network, {
        known: this.known(reach),
        signal: abort.signal,
        allowed: tools,
      });
      const now = this.#clock.now();
      this.learn(reach, server);
      entry.kept = { list, listedAt: now, freshUntil: now + ttlMs };
      entry.problem = null;
      entry.failedUntil = 0;
    } catch (fault) {
      const why = abort.signal.aborted
        ? `did not list its tools within ${limits.mcpListWaitMs / 1_000} s`
        : `has not listed its tools: ${failureOfServer(name, fault, null).error.message}`;
      this.forget(reach);
      entry.problem = `The MCP server "${name}" ${why}`;
      entry.failedUntil = this.#clock.now() + limits.mcpListRetryMs;
    } finally {
      cancelTimer();
    }
  }

  #entry(reach: Reach, tools: readonly string[] | null): Entry {
    const id = JSON.stringify([idOf(reach), tools]);
    const entry = this.#entries.get(id) ?? { reach: idOf(reach), kept: null, failedUntil: 0, problem: null };
    // The latest one is last.
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > limits.mcpListsKept && oldest !== undefined) this.#entries.delete(oldest);
    return entry;
  }
}

function idOf({ owner, url, auth, bundled }: Reach): string {
  return JSON.stringify([owner, bundled, url, auth]);
}

interface Listed {
  readonly list: ServerList;
  readonly ttlMs: number;
  readonly server: KnownServer;
}

/** Asks a server for its tools. @throws ConnectFault, or the signal's reason */
async function listOf(
  target: McpTarget,
  network: McpNetwork,
  {
    known,
    signal,
    allowed,
  }: { readonly known: KnownServer | null; readonly signal: AbortSignal; readonly allowed: readonly string[] | null },
): Promise<Listed> {
  const options = { signal, timeoutMs: limits.mcpListWaitMs };
  const connection = await connectTo(target, network, { known, ...options });
  const { client, http } = connection;
  try {
    http.begin(limits.mcpListBytes);
    const { tools, ttlMs } = await client.listTools(undefined, {
      signal,
      timeout: options.timeoutMs,
      cacheMode: 'bypass',
    });
    const wanted = allowed === null ? tools : tools.filter(({ name }) => allowed.includes(name));
    const kept = keptOf(wanted as unknown as readonly ListedTool[]);
    const list = {
      tools: kept,
      left: wanted.length - kept.length,
      hasResources: client.getServerCapabilities()?.resources !== undefined,
    };
    return { list, ttlMs: ttlOf(ttlMs), server: connection.known };
  } catch (fault) {
    throw new ConnectFault(fault, http);
  } finally {
    void connection.close();
  }
}

/** The tools that are kept: all sessions of the isolate share its memory, and an agent gets no more. */
function keptOf(tools: readonly ListedTool[]): readonly ListedTool[] {
  const kept: ListedTool[] = [];
  let chars = 0;
  for (const tool of tools.slice(0, limits.mcpToolsPerServer)) {
    // A tool is called by its name, which is never cut.
    if (tool.name.length > limits.mcpDescriptionChars) continue;
    const cut = listedTool(tool);
    chars += JSON.stringify(cut).length;
    if (chars > limits.mcpToolsChars) break;
    kept.push(cut);
  }
  return kept;
}

/** What is kept of a listed tool: texts are cut. */
function listedTool(tool: ListedTool): ListedTool {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  return {
    name,
    ...(title === undefined ? {} : { title: title.slice(0, limits.mcpDescriptionChars) }),
    ...(description === undefined ? {} : { description: description.slice(0, limits.mcpDescriptionChars) }),
    inputSchema: bounded(inputSchema) ?? { type: 'object' },
    ...(outputSchema === undefined ? {} : { outputSchema: bounded(outputSchema) ?? undefined }),
    ...(isJsonObject(annotations) ? { annotations: hintsOf(annotations) } : {}),
  };
}

/** Only what has an effect. */
function hintsOf({ readOnlyHint = null, idempotentHint = null }: JsonObject): JsonObject {
  return { readOnlyHint: readOnlyHint === true, idempotentHint: idempotentHint === true };
}

function bounded(schema: ListedTool['inputSchema']): ListedTool['inputSchema'] | null {
  return JSON.stringify(schema).length <= limits.mcpSchemaChars ? schema : null;
}

/** The spec's `ttlMs`; servers of 2025-11-25 do not have it. */
function ttlOf(ttlMs: unknown): number {
  if (typeof ttlMs !== 'number' || !Number.isFinite(ttlMs)) return limits.mcpListTtlMs;
  return Math.min(Math.max(0, ttlMs), limits.mcpListTtlMaxMs);
}
