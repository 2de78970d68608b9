/** The secret of a server: to whom it is sent, and when not (E5, X3). */
import { expect, test } from 'vitest';
import type { Env } from '../../src/durable/env.ts';
import { mcpAccess } from '../../src/durable/mcp.ts';
import type { ResolvedAgent } from '../../src/domain/manifests/resolved.ts';
import { bundled } from '../support/bundled.ts';
import { startHostileServer } from './servers/hostile-server.ts';

test.each<[allowed: readonly string[], isSent: boolean]>([
  [[], true],
  [['TOOL_SRV'], true],
  [['TOOL_OTHER'], false],
])('[E5][X3] an agent that allows the secrets %j sends the token of its server: %s', async (secrets, isSent) => {
  await using server = await startHostileServer();
  const assistant = bundled.agent('assistant');
  if (assistant === null) throw new Error('the bundled catalog has no assistant');
  const { url } = server;
  const mcpServers = [
    { name: 'srv', url, auth: 'TOOL_SRV', tools: null, prefix: null, trust: false, approval: 'never', timeoutMs: null },
  ] as const;
  const resolved: ResolvedAgent = { ...assistant, agent: { ...assistant.agent, mcpServers, secrets } };
  const access = mcpAccess({ TOOL_SRV: 'the-token' } as unknown as Env, { allowHosts: [server.host] }, undefined);
  const found = await access.toolsOf(resolved, null);
  const tokens = new Set(server.recording.requests.map(({ headers }) => headers.authorization));
  expect([...tokens]).toEqual(isSent ? ['Bearer the-token'] : []);
  const problem = expect.stringMatching(/^The MCP server "srv" needs a secret .*: TOOL_SRV is not among the "secrets"/);
  expect(found).toMatchObject({ tools: { length: isSent ? 1 : 0 }, problems: isSent ? [] : [problem] });
});
