/** The route of the Model Context Protocol (E4). Its library is loaded with the first request. */
import { Hono } from 'hono';
import type { Context } from 'hono';
import { EngineError } from '../../../domain/errors.ts';
import { limits } from '../../../domain/limits.ts';
import { readJson } from '../../body.ts';
import type { EdgeEnv } from '../../gateway.ts';
import { idempotencyKey, mcpConnection } from '../../headers.ts';
import type { LargeBodies } from '../../large-bodies.ts';
import { operation, readHeader } from '../../openapi/describe.ts';
import { surfaceBody, surfaceDocument } from '../../responses/surfaces.ts';
import type { McpServingOptions } from './mcp-calls.ts';
import type { McpServing } from './mcp-server.ts';

export interface McpRouteOptions extends McpServingOptions {
  /** Large bodies of the isolate. Default: they are not counted. */
  readonly bodies?: LargeBodies;
}

/** Requests of one namespace with large bodies are read one after the other. */
const READING = 'surface';

export function mcpRoute(options: McpRouteOptions): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();
  let serving: Promise<McpServing> | null = null;
  const description = {
    body: surfaceBody,
    response: surfaceDocument,
    media: 'events',
    further: [202],
    headers: [idempotencyKey, mcpConnection],
  } as const;
  operation(app, 'POST /mcp', description, async (c: Context<EdgeEnv>) => {
    const body = await bodyOf(options, c);
    if (Array.isArray(body)) {
      throw new EngineError(
        'invalid_request',
        'Batches of messages are not supported: send one message in each request',
      );
    }
    const key = readHeader(c, idempotencyKey);
    serving ??= import('./mcp-server.ts').then(({ mcpServing }) => mcpServing(options));
    const serve = await serving;
    const connection = readHeader(c, mcpConnection);
    return await serve(body, { caller: c.get('principal'), request: c.req.raw, key, connection });
  });
  return app;
}

async function bodyOf({ bodies }: McpRouteOptions, c: Context<EdgeEnv>): Promise<unknown> {
  if (bodies === undefined) return await readJson(c.req.raw, limits.bodyBytes);
  const of = { session: READING, owner: c.get('principal').owner };
  return await bodies.hold(
    of,
    async (place) => await readJson(c.req.raw, limits.bodyBytes, async (bytes) => await place.received(bytes)),
  );
}
