/** The unchanged client of the Model Context Protocol, in one of its modes (E4). */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { CallToolResult, ClientCapabilities, ElicitRequest, ElicitResult } from '@modelcontextprotocol/client';

export const MODES = {
  auto: { mode: 'auto' },
  legacy: { mode: 'legacy' },
  pinned: { mode: { pin: '2026-07-28' } },
} as const;
export type Mode = keyof typeof MODES;

export interface McpClientOptions {
  readonly url: string;
  readonly mode: Mode;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: (url: string | URL, init?: RequestInit) => Promise<Response>;
  /** How the person at the client answers. Default: there is none. */
  readonly decide?: (request: ElicitRequest) => ElicitResult;
  readonly capabilities?: ClientCapabilities;
}

export async function connect({
  url,
  mode,
  key,
  headers = {},
  decide,
  capabilities,
  ...options
}: McpClientOptions): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    {
      versionNegotiation: MODES[mode],
      capabilities: { ...capabilities, ...(decide === undefined ? {} : { elicitation: { form: {} } }) },
    },
  );
  if (decide !== undefined) client.setRequestHandler('elicitation/create', (request) => decide(request));
  const authorization: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
    requestInit: { headers: { ...authorization, ...headers } },
  });
  await client.connect(transport);
  return client;
}

/** The text of a result. */
export function textOf({ content }: CallToolResult): string {
  return content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n');
}
