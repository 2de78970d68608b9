/** Our MCP client as a session uses it, with one server: lists, definitions and calls, without engine and workerd. */
import type { ActionOutcome } from '../../src/domain/action.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { McpServerDefinition } from '../../src/domain/manifests/mcp-server.ts';
import type { ToolDefinition } from '../../src/domain/manifests/tool.ts';
import type { ToolUpdate } from '../../src/domain/ports/code-tools.ts';
import type { McpCall, McpEndpoint } from '../../src/domain/ports/mcp.ts';
import { Connections } from '../../src/executors/mcp/connections.ts';
import { mcpTools } from '../../src/executors/mcp/definitions.ts';
import { McpLists } from '../../src/executors/mcp/lists.ts';
import type { FoundList } from '../../src/executors/mcp/lists.ts';
import { McpSession } from '../../src/executors/mcp/servers.ts';
import { systemClock } from '../../src/client/pause.ts';

interface McpKitOptions {
  readonly token?: string;
  /** `host:port` of servers. Default: the server's own. */
  readonly allowHosts?: readonly string[];
  /** Of the manifest. */
  readonly server?: Partial<McpServerDefinition>;
  /** Names that already mean something, in lower case. */
  readonly taken?: readonly string[];
  readonly clock?: typeof systemClock;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly answer?: NonNullable<McpCall['answer']>;
  /** Identifies the action. Default: a new one. */
  readonly key?: string;
  readonly timeoutMs?: number;
  readonly progress?: (update: ToolUpdate) => void;
}

export interface McpKit {
  readonly session: McpSession;
  /** The list that a run would pin now. */
  readonly list: () => Promise<FoundList>;
  /** The tools that an agent would get now, and what is wrong with the server. */
  readonly define: () => Promise<{ readonly tools: readonly ToolDefinition[]; readonly problems: readonly string[] }>;
  /** Calls a tool by the name that the server has for it. */
  readonly call: (tool: string, parameters?: JsonObject, options?: CallOptions) => Promise<ActionOutcome>;
  /** Calls a tool as it was defined. */
  readonly callDefined: (
    tool: ToolDefinition,
    parameters?: JsonObject,
    options?: CallOptions,
  ) => Promise<ActionOutcome>;
}

export function mcpKit(url: string, options: McpKitOptions = {}): McpKit {
  const { token = null, allowHosts = [new URL(url).host], server = {}, taken = [], clock = systemClock } = options;
  const definition: McpServerDefinition = {
    name: 'srv',
    url,
    auth: null,
    tools: null,
    prefix: null,
    trust: false,
    approval: 'never',
    timeoutMs: null,
    ...server,
  };
  const endpoint: McpEndpoint = { server: definition.name, url, auth: null, bundled: true };
  const reach = { owner: null, url, auth: null, bundled: true };
  const network = {
    fetch: (input: string, init: RequestInit) => fetch(input, init),
    allowHosts,
    egress: undefined,
    clock,
  };
  const lists = new McpLists(clock);
  const connections = new Connections({
    network,
    target: () => ({ url, token }),
    known: () => lists.known(reach),
    learn: (_, known) => lists.learn(reach, known),
    forget: () => lists.forget(reach),
    changed: () => lists.changed(reach),
  });
  const session = new McpSession(connections);
  const list = async (): Promise<FoundList> => await lists.find(definition, reach, { target: { url, token }, network });
  let calls = 0;

  const send = async (
    tool: string | null,
    schemas: Pick<McpCall, 'inputSchema' | 'outputSchema'>,
    parameters: JsonObject,
    more: CallOptions,
  ): Promise<ActionOutcome> => {
    calls += 1;
    const { signal = new AbortController().signal, key = `run:a${calls}`, progress = () => {}, answer } = more;
    const { timeoutMs = 60_000 } = more;
    const call = {
      endpoint,
      tool,
      parameters,
      ...schemas,
      key,
      timeoutMs,
      ...(answer === undefined ? {} : { answer }),
    };
    return await session.call(call, { signal, progress });
  };

  return {
    session,
    list,
    async define() {
      const found = await list();
      const known = new Map(found.list === null ? [] : [[definition.name, found.list] as const]);
      const { tools, problems } = mcpTools([definition], known, { taken: new Set(taken), bundled: true });
      return { tools, problems: [...(found.problem === null ? [] : [found.problem]), ...problems] };
    },
    call: async (tool, parameters = {}, more = {}) =>
      await send(tool, { inputSchema: { type: 'object' }, outputSchema: null }, parameters, more),
    async callDefined(tool, parameters = {}, more = {}) {
      const { implementation } = tool;
      if (implementation.type !== 'mcp') throw new Error(`"${tool.name}" is no tool of an MCP server`);
      const schemas = { inputSchema: tool.parameters ?? { type: 'object' }, outputSchema: tool.returns };
      return await send(implementation.tool, schemas, parameters, more);
    },
  };
}
