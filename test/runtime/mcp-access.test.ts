/** The secret of an MCP server: when it is sent with the request for its list (E5, X3). */
import { expect, test, vi } from 'vitest';
import type { Env } from '../../src/durable/env.ts';
import { mcpAccess } from '../../src/durable/mcp.ts';
import type { ResolvedAgent } from '../../src/domain/manifests/resolved.ts';
import { here } from './bindings.ts';

const AGENT = {
  name: 'probe',
  imports: { tools: [], agents: [], workflows: [], relics: [] },
  feeds: [],
  memory: { maxTurns: null, summarizeAfter: null },
  mcpServers: [
    {
      name: 'srv',
      auth: 'TOOL_SRV',
      tools: null,
      prefix: null,
      trust: false,
      approval: 'never',
      timeoutMs: null,
    },
  ],
};

test.each<[allowed: readonly string[], isSent: boolean]>([
  [[], true],
  [['TOOL_SRV'], true],
  [['TOOL_OTHER'], false],
])('[E5][X3] an agent that allows the secrets %j sends the token of its server: %s', async (secrets, isSent) => {
  const env = { ...here, TOOL_SRV: 'the-token' } as Env;
  const names = { tools: new Map(), agents: new Map(), workflows: new Map(), relics: new Map() };
  const resolved = { agent: { ...AGENT, secrets }, ...names, bundled: { subject: true, tools: [] } };
  const sent: (string | null)[] = [];
  const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    sent.push(new Headers(init?.headers).get('authorization'));
    return new Response(null, { status: 500 });
  });
  // A host of its own: lists are kept for all tests of the isolate.
  const url = `https://${isSent ? 'sent' : 'kept'}-${secrets.length}.com/mcp`;
  const servers = AGENT.mcpServers.map((server) => ({ ...server, url }));
  const agent = { ...resolved.agent, mcpServers: servers };
  const found = await mcpAccess(env, { allowHosts: [] }, { tools: fetch }, undefined).toolsOf(
    { ...resolved, agent } as unknown as ResolvedAgent,
    null,
  );
  fetch.mockRestore();
  expect([...new Set(sent)]).toEqual(isSent ? ['Bearer the-token'] : []);
  const why = isSent
    ? /has not listed its tools/
    : /needs a secret .*: TOOL_SRV is not among the "secrets" of the agent$/;
  expect(found?.problems).toEqual([expect.stringMatching(why)]);
});
