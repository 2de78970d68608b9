/** The MCP servers of agents, as reached from this Worker (E5). */
import { notAllowed } from '../catalog/check/secrets.ts';
import type { McpTools } from '../catalog/store/pinned-mcp.ts';
import type { McpServerDefinition } from '../domain/manifests/mcp-server.ts';
import type { ToolDefinition } from '../domain/manifests/tool.ts';
import type { ResolvedAgent } from '../domain/manifests/resolved.ts';
import type { McpEndpoint, McpServers } from '../domain/ports/mcp.ts';
import { takenNames } from '../domain/taken-names.ts';
import { Connections } from '../executors/mcp/connections.ts';
import type { McpTarget } from '../executors/mcp/connection.ts';
import { mcpTools } from '../executors/mcp/definitions.ts';
import type { ServerList } from '../executors/mcp/definitions.ts';
import type { McpNetwork } from '../executors/mcp/http.ts';
import { McpLists } from '../executors/mcp/lists.ts';
import type { Reach } from '../executors/mcp/lists.ts';
import { McpSession } from '../executors/mcp/servers.ts';
import type { Egress } from '../executors/outbound/egress.ts';
import { secretFor } from '../settings/secrets.ts';
import type { Settings } from '../settings/settings.ts';
import type { Env } from './env.ts';
import type { Network } from './network.ts';
import { platformClock } from './platform.ts';

/** Shared by all objects of this isolate. */
const lists = new McpLists(platformClock);

export interface McpAccess {
  /**
   * The tools of the agent's servers as they list them now; null if it has no servers. Never rejects.
   *
   * @param earlier the tools of the run before, for servers that do not answer
   */
  toolsOf(
    resolved: ResolvedAgent,
    owner: string | null,
    earlier?: () => readonly ToolDefinition[],
  ): Promise<McpTools | null>;
}

/** @param egress undefined if the platform sends the requests */
export function mcpAccess(
  env: Env,
  { allowHosts }: Pick<Settings, 'allowHosts'>,
  { tools }: Pick<Network, 'tools'>,
  egress: Egress | undefined,
): McpAccess {
  const network: McpNetwork = { fetch: tools, allowHosts, egress, clock: platformClock };
  /** The latest tools, and what they were made of: checking the schemas of a thousand tools takes a while. */
  let latest: { readonly of: readonly unknown[]; readonly tools: McpTools } | null = null;
  return {
    async toolsOf(resolved, owner, earlier = () => []) {
      const { mcpServers: servers = [], secrets } = resolved.agent;
      if (servers.length === 0) return null;
      const bundled = resolved.bundled?.subject === true;
      const found = new Map<string, ServerList>();
      const problems: string[] = [];
      const find = async (server: McpServerDefinition): Promise<void> => {
        const { name, url, auth } = server;
        const refusal = auth === null ? null : notAllowed(auth, secrets);
        const target = refusal ?? targetOf(env, owner, { url, auth, bundled });
        if (typeof target === 'string') {
          problems.push(`The MCP server "${name}" needs a secret that is not available: ${target}`);
          return;
        }
        const { list, problem } = await lists.find(server, { owner, url, auth, bundled }, { target, network });
        if (list !== null) found.set(name, list);
        if (problem !== null) problems.push(problem);
      };
      await Promise.all(servers.map(find));
      problems.sort();
      const kept = found.size < servers.length ? earlier() : [];
      const of = [resolved, ...servers.map(({ name }) => found.get(name)), ...problems, ...kept];
      if (latest !== null && isSame(latest.of, of)) return latest.tools;
      const taken = new Set(takenNames(resolved).keys());
      const defined = mcpTools(servers, found, { taken, bundled, earlier: kept });
      latest = { of, tools: { tools: defined.tools, problems: [...problems, ...defined.problems] } };
      return latest.tools;
    },
  };
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index]);
}

/** The calls of one session. */
export function mcpServersOf(
  env: Env,
  { allowHosts }: Pick<Settings, 'allowHosts'>,
  { tools }: Pick<Network, 'tools'>,
  egress: Egress | undefined,
  owner: () => string | null,
): McpServers {
  const reachOf = ({ url, auth, bundled }: McpEndpoint): Reach => ({ owner: owner(), url, auth, bundled });
  const connections = new Connections({
    network: { fetch: tools, allowHosts, egress, clock: platformClock },
    target: (endpoint) => targetOf(env, owner(), endpoint),
    known: (endpoint) => lists.known(reachOf(endpoint)),
    learn: (endpoint, known) => lists.learn(reachOf(endpoint), known),
    forget: (endpoint) => lists.forget(reachOf(endpoint)),
    changed: (endpoint) => lists.changed(reachOf(endpoint)),
  });
  return new McpSession(connections);
}

/** @returns why the secret is not available */
function targetOf(
  env: Env,
  owner: string | null,
  { url, auth, bundled }: Pick<McpEndpoint, 'url' | 'auth' | 'bundled'>,
): McpTarget | string {
  if (auth === null) return { url, token: null };
  const read = secretFor(env, owner, bundled)(auth);
  return read.ok ? { url, token: read.value } : read.reason;
}
