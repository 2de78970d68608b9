/**
 * One connection to an MCP server: the library's client and transport, with our limits.
 *
 * A server of 2026-07-28 is stateless: its connection costs nothing once its description is known. A server of 2025-11-25
 * begins a session with a handshake, so its connections are worth keeping.
 */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { ClientOptions, ElicitRequest, ElicitResult, PriorDiscovery } from '@modelcontextprotocol/client';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { VERSION } from '../../domain/version.ts';
import { validateJson } from '../validate-parameters.ts';
import { connectionHttp } from './http.ts';
import type { ConnectionHttp, McpNetwork } from './http.ts';

/** Where a connection goes. */
export interface McpTarget {
  readonly url: string;
  /** A bearer token; null: none. */
  readonly token: string | null;
}

/** What is known about a server before a connection: which protocol it speaks. */
export type KnownServer = PriorDiscovery;

type ElicitParams = ElicitRequest['params'];

export interface McpConnection {
  readonly client: Client;
  /** `modern`: 2026-07-28 and later; `legacy`: 2025-11-25 and earlier. */
  readonly era: 'modern' | 'legacy';
  /** For the next connection to the same server. */
  readonly known: KnownServer;
  readonly http: Pick<ConnectionHttp, 'fault' | 'refusal' | 'begin'>;
  /** Who answers the server's questions on this connection; null: every question is declined. */
  onQuestion: ((params: ElicitParams) => Promise<ElicitResult>) | null;
  /** Called when the stream with the answer to the next call has ended, and is not resumed. */
  onStreamEnd: (() => void) | null;
  /** Whether the server has said that its list of tools has changed. */
  readonly listChanged: () => boolean;
  /** The id of the next request: a connection without a session begins with 0. */
  readonly numberFrom: (id: number) => void;
  /** Ends the server's session, if it has one, and all requests. Never rejects. */
  close(): Promise<void>;
}

/** The library's own validator has no limit of work, and the schema is the server's. */
const boundedValidator: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator:
    <T>(schema: unknown) =>
    (input: unknown) => {
      const issue = validateJson(schema as JsonObject, input as Json, 'result');
      return issue === null
        ? { valid: true as const, data: input as T, errorMessage: undefined }
        : { valid: false as const, data: undefined, errorMessage: issue };
    },
};

/** The connection could not be made, or the tools were not listed: no call was sent. */
export class ConnectFault extends Error {
  override readonly name = 'ConnectFault';
  readonly http: McpConnection['http'];

  constructor(cause: unknown, http: McpConnection['http']) {
    super('no connection', { cause });
    this.http = http;
  }
}

/**
 * Connects, with a handshake where the server needs one.
 *
 * @param known of an earlier connection to the same server; null: it is asked which protocol it speaks
 * @throws ConnectFault, or the signal's reason
 */
export async function connectTo(
  { url, token }: McpTarget,
  network: McpNetwork,
  {
    known,
    signal,
    timeoutMs,
  }: { readonly known: KnownServer | null; readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<McpConnection> {
  const http = connectionHttp(network);
  let isChanged = false;
  const client = new Client(
    { name: 'cortex-edge', version: VERSION },
    {
      capabilities: { elicitation: { form: {}, url: {} } },
      versionNegotiation: { mode: 'auto' },
      inputRequired: { autoFulfill: false },
      jsonSchemaValidator: boundedValidator,
      listMaxPages: limits.mcpListPages,
    },
  );
  const connection: Pick<McpConnection, 'onQuestion' | 'onStreamEnd'> = { onQuestion: null, onStreamEnd: null };
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    return (await connection.onQuestion?.(params)) ?? { action: 'decline' };
  });
  client.setNotificationHandler('notifications/tools/list_changed', () => {
    isChanged = true;
  });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: http.fetch,
    requestInit: {
      headers: { 'user-agent': 'cortex-edge', ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
    },
    onInsufficientScope: 'throw',
    reconnectionOptions: {
      initialReconnectionDelay: limits.mcpReconnectMs,
      maxReconnectionDelay: limits.mcpReconnectMaxMs,
      reconnectionDelayGrowFactor: 2,
      maxRetries: limits.mcpReconnects,
    },
    // The server may choose the delay; 0 would be a loop without a pause.
    reconnectionScheduler: (reconnect, delayMs) =>
      network.clock.schedule(Math.max(delayMs, limits.mcpReconnectLeastMs), reconnect),
  });
  // The library tells it for requests of 2026-07-28 only.
  const send = transport.send.bind(transport);
  transport.send = async (message, sent = {}) => {
    if (!isCall(message)) return await send(message, sent);
    // Of this call: its stream may end after the next call has begun.
    const { onStreamEnd } = connection;
    const onRequestStreamEnd = (): void => {
      sent.onRequestStreamEnd?.();
      onStreamEnd?.();
    };
    return await send(message, { ...sent, onRequestStreamEnd });
  };
  try {
    await client.connect(transport, { signal, timeout: timeoutMs, ...(known === null ? {} : { prior: known }) });
  } catch (fault) {
    await client.close().catch(() => {});
    signal.throwIfAborted();
    throw new ConnectFault(fault, http);
  }
  const discover = client.getDiscoverResult();
  const isModern = client.getProtocolEra() === 'modern' && discover !== undefined;
  return Object.assign(connection, {
    client,
    era: isModern ? ('modern' as const) : ('legacy' as const),
    known: isModern ? { kind: 'modern' as const, discover } : { kind: 'legacy' as const },
    http,
    listChanged: () => isChanged,
    numberFrom(id: number) {
      // The library has no option for it; the referee's scenario of repeated calls fails without it.
      if (isModern) Reflect.set(client, '_requestMessageId', id);
    },
    async close() {
      // Ends the request as well: a server that does not answer must not keep the connection.
      const stopTimer = network.clock.schedule(limits.mcpConnectMs, () => void client.close().catch(() => {}));
      try {
        // Servers of sessions keep them until they are told.
        if (transport.sessionId !== undefined) await transport.terminateSession();
      } catch {
        // The server ends it by itself.
      } finally {
        stopTimer();
      }
      await client.close().catch(() => {});
    },
  });
}

function isCall(message: object): boolean {
  return 'method' in message && (message.method === 'tools/call' || message.method === 'resources/read');
}
