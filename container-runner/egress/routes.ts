/**
 * Outbound requests of tools (X2). The Worker asks for the addresses of a name, checks them, and has the request sent to
 * one of them. This prevents DNS rebinding between the check and the connection, which the Worker's own `fetch` cannot
 * prevent. The Worker follows redirects itself and checks each hop.
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
import { RunnerError } from '../problem.ts';
import { hasCapacity, tenantOf } from '../fair-share.ts';
import type { Resolve } from './resolve.ts';
import { BlockedAddressError, type Incoming, SendError, type Sender } from './send.ts';

export interface Egress {
  readonly resolve: Resolve;
  readonly sender: Sender;
}

/** Status and headers of the answer as base64url of JSON; the body is sent as the body. */
const HEAD = 'x-cortex-egress';
/** Headers that this side sets: message framing and the server's name. */
const REFUSED_HEADERS =
  /^(host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|http2-settings|proxy-.*)$/i;

const host = z
  .string()
  .max(limits.hostChars)
  .regex(/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/i, 'must be a host name');
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
    .array(z.string().refine((text) => isIP(text) !== 0, 'must be an IP address'))
    .min(1)
    .max(limits.egressAddresses),
  timeout_ms: z.int().min(1).max(limits.maxTimeoutMs),
  max_bytes: z.int().min(1).max(limits.egressBytes),
});

export function addEgressRoutes(app: Hono, egress: Egress | null): void {
  /** Requests in progress. */
  const atWork = new Set<{ readonly session: string; readonly tenant: string | null }>();

  app.post('/egress/resolve', async (c) => {
    const { resolve } = switchedOn(egress);
    const { session, host: name } = parseBody(await c.req.text(), resolveRequest);
    return await within(session, tenantOf(c.req.query('tenant')), async () => {
      try {
        return c.json({ addresses: await resolve(name) });
      } catch (fault) {
        throw failed(`the name could not be resolved: ${messageOf(fault)}`, true);
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
      if (timeout.aborted) throw new RunnerError('egress_timeout', `no answer within ${request.timeout_ms} ms`);
      if (fault instanceof BlockedAddressError) throw new RunnerError('egress_refused', fault.message);
      throw failed(messageOf(fault), fault instanceof SendError && fault.beforeDispatch);
    }
  });

  /** @throws RunnerError `busy` */
  function enter(session: string, tenant: string | null): () => void {
    const count = (matches: (one: { session: string; tenant: string | null }) => boolean): number =>
      [...atWork].filter(matches).length;
    const inSession = count((one) => one.session === session);
    const own = count((one) => one.tenant === tenant);
    const shares = { own, used: atWork.size, most: limits.egressRunning };
    if (inSession >= limits.egressPerSession || !hasCapacity(tenant, shares)) {
      const ofTenant = tenant === null ? '' : `, ${own} of this namespace (at least as many must remain free)`;
      throw new RunnerError(
        'busy',
        `${atWork.size} requests are in progress, ${inSession} of them of this session${ofTenant} (maximum: ${limits.egressRunning} and ${limits.egressPerSession})`,
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
  if (egress === null) throw new RunnerError('egress_off', 'Outbound requests are disabled (RUNNER_EGRESS=0)');
  return egress;
}

/** Writes to the socket directly: a body that fails halfway closes the connection, so the caller sees a truncated body. */
function answerOf(c: Context, { status, headers, body }: Incoming): Response {
  const { outgoing } = c.env as Partial<HttpBindings>;
  if (outgoing === undefined) throw new Error('The runner is served by @hono/node-server');
  outgoing.writeHead(200, {
    [HEAD]: Buffer.from(JSON.stringify({ status, headers }), 'utf8').toString('base64url'),
    'content-type': 'application/octet-stream',
    'cache-control': 'no-store',
  });
  // the caller waits for the headers, not for the first bytes of the body
  outgoing.flushHeaders();
  pipeline(body, outgoing, () => undefined);
  return RESPONSE_ALREADY_SENT;
}

function wrongHeader(headers: Readonly<Record<string, string>>): (name: string) => string | null {
  return (name) => {
    if (REFUSED_HEADERS.test(name)) return `the header ${name} may not be set`;
    try {
      validateHeaderName(name);
      validateHeaderValue(name, headers[name] ?? '');
      return null;
    } catch (fault) {
      return messageOf(fault);
    }
  };
}

function failed(detail: string, beforeDispatch: boolean): RunnerError {
  return new RunnerError('egress_failed', detail, {}, { before_dispatch: beforeDispatch });
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}
