/** Routes of other protocols in the Worker (E1 to E3). The protocol's adapter reads each request. */
import { Hono } from 'hono';
import type { Context } from 'hono';
import { EngineError } from '../../domain/errors.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { agUi, readRun } from '../../surfaces/ag-ui/index.ts';
import { aiSdk, readChat, readMessages, readStop, readStream } from '../../surfaces/ai-sdk/index.ts';
import {
  openai,
  readCancelResponse,
  readChatCompletion,
  readResponse,
  readRetrieveResponse,
} from '../../surfaces/openai/index.ts';
import type { Surface, SurfaceInput, SurfaceRequest } from '../../surfaces/surface.ts';
import { readJson } from '../body.ts';
import type { EdgeEnv } from '../gateway.ts';
import { idempotencyKey, retryCount, sessionName } from '../headers.ts';
import type { RequestHeader } from '../headers.ts';
import type { LargeBodies } from '../large-bodies.ts';
import { operation, readHeader } from '../openapi/describe.ts';
import type { RouteDescription } from '../openapi/document.ts';
import type { OperationName } from '../operations.ts';
import { aiQuery, noQuery, readQuery, responseQuery } from '../query.ts';
import { requireAgentOf } from '../routes/sessions.ts';
import { surfaceBody, surfaceDocument, surfaceFrame, surfaceMessages } from '../responses/surfaces.ts';
import { answer, requireSurfaceAgent } from './edge-surface.ts';
import type { SurfaceOptions } from './edge-surface.ts';

export interface SurfaceRoutesOptions extends SurfaceOptions {
  /** Large bodies of the isolate. Default: they are not counted. */
  readonly bodies?: LargeBodies;
}

/** Requests of one namespace with large bodies are read one after the other. */
const READING = 'surface';

export function surfaceRoutes(options: SurfaceRoutesOptions): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();

  const serve = (
    name: OperationName,
    description: RouteDescription,
    surface: Surface,
    read: (input: SurfaceInput) => SurfaceRequest,
  ): void => {
    const header = (c: Context, one: RequestHeader): string | null =>
      description.headers?.includes(one) === true ? readHeader(c, one) : null;
    operation(app, name, description, async (c: Context<EdgeEnv>) => {
      const caller = c.get('principal');
      const params = c.req.param();
      // A token for other agents is refused before anything is read.
      if (params['name'] !== undefined) requireSurfaceAgent(caller, params['name']);
      const input: SurfaceInput = {
        body: description.body === undefined ? null : await bodyOf(options, c),
        params,
        query: readQuery(description.query ?? noQuery, c.req.url, 'ignored'),
        key: header(c, idempotencyKey),
        session: header(c, sessionName),
        isKey: caller.token === null,
      };
      const isRepeated = Number(header(c, retryCount) ?? '0') > 0;
      return await answer(options, surface, { request: c.req.raw, caller, isRepeated }, read(input));
    });
  };

  const stream = { response: surfaceFrame, media: 'events', run: true } as const;

  serve('POST /ai/:name/chat', { ...stream, body: surfaceBody, query: aiQuery }, aiSdk, readChat);
  serve('GET /ai/:name/chat/:chat/stream', { ...stream, further: [204], query: aiQuery }, aiSdk, readStream);
  serve('GET /ai/:name/chat/:chat/messages', { response: surfaceMessages, query: aiQuery }, aiSdk, readMessages);
  serve('POST /ai/:name/chat/:chat/stop', { status: 204 }, aiSdk, readStop);

  serve('POST /agui/:name', { ...stream, body: surfaceBody }, agUi, readRun);

  serve(
    'POST /v1/chat/completions',
    {
      body: surfaceBody,
      response: surfaceDocument,
      media: 'events',
      run: true,
      headers: [idempotencyKey, sessionName, retryCount],
    },
    openai,
    readChatCompletion,
  );

  const document = { response: surfaceDocument, media: 'events', run: true } as const;
  serve(
    'POST /v1/responses',
    { ...document, body: surfaceBody, headers: [idempotencyKey, retryCount] },
    openai,
    readResponse,
  );
  serve('GET /v1/responses/:response', { ...document, query: responseQuery }, openai, readRetrieveResponse);
  serve('POST /v1/responses/:response/cancel', { response: surfaceDocument }, openai, readCancelResponse);

  const models = async (c: Context<EdgeEnv>): Promise<string[]> => {
    const { owner, token } = c.get('principal');
    if (token?.type === 'session') throw new EngineError('forbidden', 'A session token is valid for its session only');
    const all = (await options.gateway.agents(owner)).map(({ name }) => name);
    return token?.type === 'user' ? all.filter((name) => token.agents?.includes(name) !== false) : all;
  };
  operation(app, 'GET /v1/models', { response: surfaceDocument }, async (c) =>
    c.json({ object: 'list', data: (await models(c)).map(modelOf) }),
  );
  operation(app, 'GET /v1/models/:model', { response: surfaceDocument }, async (c) => {
    const principal = c.get('principal');
    if (principal.token !== null) requireAgentOf(principal.token, c.req.param('model'));
    const {
      agent: { name },
    } = await options.gateway.requireAgent(c.req.param('model'), principal.owner);
    return c.json(modelOf(name));
  });
  return app;
}

const modelOf = (id: string): object => ({ id, object: 'model', created: 0, owned_by: 'cortex-edge' });

async function bodyOf({ bodies }: SurfaceRoutesOptions, c: Context<EdgeEnv>): Promise<Json> {
  if (bodies === undefined) return (await readJson(c.req.raw, limits.messageBodyBytes)) as Json;
  const of = { session: READING, owner: c.get('principal').owner };
  return await bodies.hold(
    of,
    async (place) =>
      (await readJson(c.req.raw, limits.messageBodyBytes, async (bytes) => await place.received(bytes))) as Json,
  );
}
