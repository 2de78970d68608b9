/** The MCP server of the benchmark, in a process of its own: tools that wait, and return their text. */
import type { McpServer } from '@modelcontextprotocol/server';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { startToolServer } from '../../test/mcp/servers/tool-server.ts';

const NAMES = ['search', 'math', 'work'] as const;

function tools(server: McpServer): void {
  for (const name of NAMES) {
    server.registerTool(
      name,
      {
        description: 'Waits delay_ms and returns q.',
        inputSchema: z.object({
          delay_ms: z.number().optional(),
          q: z.string().optional(),
          of: z.string().optional(),
        }),
        annotations: { readOnlyHint: true },
      },
      async ({ delay_ms: ms = 0, q = '' }) => {
        if (ms > 0) await delay(ms);
        return { content: [{ type: 'text', text: q }], structuredContent: { q } };
      },
    );
  }
}

const servers = await Promise.all(
  (['modern', 'legacy'] as const).map((speaks) =>
    startToolServer({ speaks, tools, hasStandardTools: false, ttlMs: 600_000 }),
  ),
);
process.send?.(servers.map(({ url }) => url));
process.on('disconnect', () => process.exit(0));
