/** Protocol text without a model: executions and dry runs. Every execution is a separate session (H1). */
import { Hono } from 'hono';
import type { Context } from 'hono';
import type { MergedPage } from '../../domain/list-page.ts';
import { EngineError } from '../../domain/errors.ts';
import type { ExecutionEntry, ExecutionsPage } from '../../domain/execution.ts';
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { incarnationIn } from '../../domain/session.ts';
import type { ExecutionKind } from '../../domain/session.ts';
import { planText } from '../../dry-run/dry-run.ts';
import type { Caller } from '../access.ts';
import { readProtocolBody, readText } from '../body.ts';
import { operation } from '../openapi/describe.ts';
import { forwardBody } from '../forward-body.ts';
import { unknownExecution } from '../gateway.ts';
import type { EdgeEnv, Gateway } from '../gateway.ts';
import { executeQuery, executionsQuery, planQuery, readQuery } from '../query.ts';
import * as answers from '../responses/runs.ts';
import { cancelBody, executeBody, planBody, validate } from '../schemas.ts';

/** A page of one namespace, newest first. @throws EngineError `directory_unavailable` */
export type ExecutionsOf = (owner: string | null, page: ExecutionsPage) => Promise<MergedPage<ExecutionEntry>>;

interface ExecutionRoutesOptions {
  readonly gateway: Gateway;
  /** Executions of one namespace, newest first. */
  readonly executions: ExecutionsOf;
}

export function executionRoutes({ gateway, executions }: ExecutionRoutesOptions): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();

  const execute = async (c: Context<EdgeEnv>): Promise<Response> => {
    const request = c.req.raw;
    const principal = c.get('principal');
    const { format: _format, ...query } = readQuery(executeQuery, request.url);
    const { search } = new URL(request.url);
    const posted = await readProtocolBody(request);
    if ('streamed' in posted) {
      const name = query.agent ?? 'assistant';
      await gateway.requireAgent(name, principal.owner);
      const session = { agent: name, user_id: null, metadata: {}, kind: 'execution' } as const;
      const record = await gateway.createSession(principal, session, {});
      return await gateway.forward(record.session_id, `/-/execute-stream${search}`, request, principal);
    }
    if ('json' in posted) onlyWithText(query);
    const raw =
      'json' in posted
        ? posted.json
        : { protocol_text: posted.text, agent: query.agent, stream: query.stream !== 'false' };
    const named = isJsonObject(raw) ? raw['agent'] : undefined;
    const { agent } = await gateway.requireAgent(typeof named === 'string' ? named : 'assistant', principal.owner);
    const body = validate(executeBody, raw);
    const metadata = typeof body.session_id === 'string' ? { session_id: body.session_id } : {};
    const { redact = [] } = agent;
    const session = { agent: body.agent, user_id: null, metadata, kind: 'execution', redact } as const;
    const record = await gateway.createSession(principal, session, body.context ?? {});
    const headers = new Headers(request.headers);
    headers.set('content-type', 'application/json');
    headers.delete('content-length');
    const forwarded = new Request(request.url, { method: 'POST', headers, body: JSON.stringify(body) });
    return await gateway.forward(record.session_id, `/-/execute${search}`, forwarded, principal);
  };
  const execution = {
    body: executeBody,
    plainText: true,
    query: executeQuery,
    response: answers.runResult,
    run: true,
    media: 'events',
  } as const;
  operation(app, 'POST /execute/direct', { ...execution }, execute);
  operation(app, 'POST /execute/streaming_protocol', { ...execution }, execute);

  operation(
    app,
    'POST /plan',
    { body: planBody, plainText: true, query: planQuery, response: answers.plan },
    async (c) => {
      const query = readQuery(planQuery, c.req.url);
      const posted = await readProtocolBody(c.req.raw);
      if ('json' in posted) onlyWithText(query);
      const raw =
        'json' in posted
          ? posted.json
          : { protocol_text: 'text' in posted ? posted.text : await readText(c.req.raw), agent: query.agent };
      const body = validate(planBody, raw);
      if (body.protocol_text.length > limits.planChars) {
        throw new EngineError('body_too_large', `The text is longer than ${limits.planChars} characters`);
      }
      const owner = c.get('principal').owner;
      const agent = body.agent === undefined ? null : await gateway.requireEquippedAgent(body.agent, owner);
      return c.json(planText(body.protocol_text, agent));
    },
  );

  operation(app, 'GET /executions', { query: executionsQuery, response: answers.executions }, async (c) => {
    const { status = null, limit = limits.pageRows, before, ...rest } = readQuery(executionsQuery, c.req.url);
    const kind = kindOf(rest);
    const [at = '', id = ''] = before?.split('-', 2) ?? [];
    const { entries, next } = await executions(c.get('principal').owner, {
      limit,
      before: before === undefined ? null : { at: Number(at), id },
      status,
      kind,
    });
    return c.json({ executions: entries, next: next === null ? null : `${next.at}-${next.id}` });
  });
  operation(app, 'GET /executions/:id', { response: answers.runResult }, (c) => {
    const id = c.req.param('id');
    const path = id.startsWith('run_') ? `/runs/${encodeURIComponent(id)}` : '/-/latest-run';
    return toExecution(id, path, c.req.raw, c.get('principal'));
  });
  operation(app, 'POST /executions/:id/cancel', { body: cancelBody, response: answers.cancelled }, async (c) =>
    forwardBody(c.req.raw, limits.bodyBytes, (request) =>
      toExecution(c.req.param('id'), '/cancel', request, c.get('principal')),
    ),
  );

  const toExecution = async (id: string, path: string, request: Request, principal: Caller): Promise<Response> => {
    const response = await gateway.forward(
      await gateway.requireExecution(id),
      path,
      request,
      principal,
      // A run's id is never taken for a run of a later session with the same id.
      id.startsWith('run_') ? (incarnationIn(id) ?? '') : null,
    );
    if (response.status === 404) throw unknownExecution(id);
    return response;
  };

  return app;
}

const KIND_OF_ENTITY = { agent: 'chat', tool: 'execution', workflow: 'workflow' } as const;

/** @throws EngineError `invalid_request` if both names are given */
function kindOf(given: {
  readonly kind?: ExecutionKind;
  readonly entity_type?: keyof typeof KIND_OF_ENTITY;
}): ExecutionKind | null {
  const { kind, entity_type: entity } = given;
  if (kind !== undefined && entity !== undefined) {
    throw new EngineError('invalid_request', '"kind" and "entity_type" are the same parameter; give one of them');
  }
  return entity === undefined ? (kind ?? null) : KIND_OF_ENTITY[entity];
}

/** @throws EngineError `invalid_request` for a parameter that belongs in a JSON body */
function onlyWithText(query: Readonly<Record<string, unknown>>): void {
  const [name] = Object.keys(query);
  if (name === undefined) return;
  const message = `"${name}" in the URL requires a text/plain body; in JSON it is a member of the body`;
  throw new EngineError('invalid_request', message);
}
