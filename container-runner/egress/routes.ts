/**
 * Requests of tools, sent by the runner (X2): the Worker asks for the addresses of a name, judges them, and has the
 * request sent to them. So no other answer of the name can come between the judgement and the connection, which the
 * Worker's own `fetch` has no way to prevent. Redirects are the Worker's: it judges each hop.
 */
import { Buffer } from 'node:buffer';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isIP } from 'node:net';
import { pipeline } from 'node:stream';

import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context, Hono } from 'hono';
import { z } from 'zod';

import { parseBody, sessionId } from '../jobs/job.ts';
import { limits } from '../limits.ts';
import { Refusal } from '../problem.ts';
import { mayTake, tenantOf } from '../share.ts';
import type { Resolve } from './resolve.ts';
import { AddressRefused, type Incoming, SendFault, type Sender } from './send.ts';

export interface Egress {
  readonly resolve: Resolve;
  readonly sender: Sender;
}

/** Status and headers of the answer, as base64url of JSON; its body is the body. */
const HEAD = 'x-cortex-egress';
/** What frames a message or names its server is this side's. */
const REFUSED_HEADERS =
  /^(host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|http2-settings|proxy-.*)$/i;

const host = z
  .string()
  .max(limits.hostChars)
  .regex(/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/i, 'must be a name');
const resolveRequest = z.strictObject({ session: sessionId, host });
const sendRequest = z.strictObject({
  session: sessionId,
  url: z
    .url({ protocol: /^https?$/ })
    .max(limits.egressUrlChars)
    .transform((text) => new URL(text)),
  method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']),
  headers: z.record(z.string(), z.string()).superRefine((headers, context) => {
    const names = Object.keys(headers);
    const wrong =
      names.length > limits.egressHeaders
        ? `more than ${limits.egressHeaders}`
        : names.map(wrongHeader(headers)).find(Boolean);
    if (wrong !== undefined && wrong !== null) context.addIssue({ code: 'custom', message: wrong });
  }),
  body: z.string().nullable(),
  addresses: z
    .array(z.string().refine((text) => isIP(text) !== 0, 'must be addresses'))
    .min(1)
    .max(limits.egressAddresses),
  timeout_ms: z.int().min(1).max(limits.maxTimeoutMs),
  max_bytes: z.int().min(1).max(limits.egressBytes),
});

export function addEgressRoutes(app: Hono, egress: Egress | null): void {
  /** What is under way. */
  const atWork = new Set<{ readonly session: string; readonly tenant: string | null }>();

  app.post('/egress/resolve', async (c) => {
    const { resolve } = switchedOn(egress);
    const { session, host: name } = parseBody(await c.req.text(), resolveRequest);
    return await within(session, tenantOf(c.req.query('tenant')), async () => {
      try {
        return c.json({ addresses: await resolve(name) });
      } catch (fault) {
        throw failed(`the name has no address: ${messageOf(fault)}`, true);
      }
    });
  });

  app.post('/egress', async (c) => {
    const { sender } = switchedOn(egress);
    const request = parseBody(await c.req.text(), sendRequest);
    const end = enter(request.session, tenantOf(c.req.query('tenant')));
    const timeout = AbortSignal.timeout(request.timeout_ms);
    try {
      const answer = await sender.send({
        ...request,
        maxBytes: request.max_bytes,
        signal: AbortSignal.any([timeout, c.req.raw.signal]),
      });
      answer.body.once('close', end);
      return answerOf(c, answer);
    } catch (fault) {
      end();
      if (timeout.aborted) throw new Refusal('egress_timeout', `no answer within ${request.timeout_ms} ms`);
      if (fault instanceof AddressRefused) throw new Refusal('egress_refused', fault.message);
      throw failed(messageOf(fault), fault instanceof SendFault && fault.beforeDispatch);
    }
  });

  /** @throws Refusal `busy` */
  function enter(session: string, tenant: string | null): () => void {
    const count = (matches: (one: { session: string; tenant: string | null }) => boolean): number =>
      [...atWork].filter(matches).length;
    const inSession = count((one) => one.session === session);
    const own = count((one) => one.tenant === tenant);
    const shares = { own, used: atWork.size, most: limits.egressRunning };
    if (inSession >= limits.egressPerSession || !mayTake(tenant, shares)) {
      const ofKey = tenant === null ? '' : `, ${own} of this API key, which must leave as many free`;
      throw new Refusal(
        'busy',
        `${atWork.size} requests are under way, ${inSession} of them of this session${ofKey} (allowed: ${limits.egressRunning} and ${limits.egressPerSession})`,
        { 'retry-after': String(limits.retryAfterSeconds) },
      );
    }
    const one = { session, tenant };
    atWork.add(one);
    return () => void atWork.delete(one);
  }

  async function within<T>(session: string, tenant: string | null, work: () => Promise<T>): Promise<T> {
    const end = enter(session, tenant);
    try {
      return await work();
    } finally {
      end();
    }
  }
}

function switchedOn(egress: Egress | null): Egress {
  if (egress === null) throw new Refusal('egress_off', 'It is switched off here (RUNNER_EGRESS=0)');
  return egress;
}

/** Piped by hand: a body that fails after its beginning ends the connection, and the caller sees that it is not whole. */
function answerOf(c: Context, { status, headers, body }: Incoming): Response {
  const { outgoing } = c.env as Partial<HttpBindings>;
  if (outgoing === undefined) throw new Error('The runner is served by @hono/node-server');
  outgoing.writeHead(200, {
    [HEAD]: Buffer.from(JSON.stringify({ status, headers }), 'utf8').toString('base64url'),
    'content-type': 'application/octet-stream',
    'cache-control': 'no-store',
  });
  // a caller waits for the head, not for the first bytes of the body
  outgoing.flushHeaders();
  pipeline(body, outgoing, () => undefined);
  return RESPONSE_ALREADY_SENT;
}

function wrongHeader(headers: Readonly<Record<string, string>>): (name: string) => string | null {
  return (name) => {
    if (REFUSED_HEADERS.test(name)) return `${name} may not be set`;
    try {
      validateHeaderName(name);
      validateHeaderValue(name, headers[name] ?? '');
      return null;
    } catch (fault) {
      return messageOf(fault);
    }
  };
}

function failed(detail: string, beforeDispatch: boolean): Refusal {
  return new Refusal('egress_failed', detail, {}, { before_dispatch: beforeDispatch });
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}
