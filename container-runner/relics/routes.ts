/** Routes for relics (R5): call, start, list, stop. All need a signed request. */
import type { Context, Hono } from 'hono';

import { parseBody } from '../jobs/job.ts';
import { requireWithinLimits } from '../operator-limits.ts';
import { RunnerError } from '../problem.ts';
import { tenantOf } from '../fair-share.ts';
import { formatTraceparent, parseTraceparent } from '../telemetry/trace-context.ts';
import { callRequest, relicName, relicScope, startRequest } from './definition.ts';
import { RelicUnavailable } from './relic.ts';
import type { RelicListing, Relics } from './relics.ts';
import type { RelicAnswer } from './relic-service.ts';

/** Error codes of calls; branch on the code. */
type CallProblem = 'relic_unavailable' | 'relic_broken' | 'relic_timeout' | 'relic_answer_too_large';

export function addRelicRoutes(app: Hono, relics: Relics): void {
  app.post('/relics/:name/call', async (c) => {
    const name = nameOf(c);
    const { space: scope, relic: spec, call, timeout_ms: timeoutMs } = parseBody(await c.req.text(), callRequest);
    requireWithinLimits({ timeout_ms: timeoutMs }, relics.operatorLimits);
    const relic = await relics.find({ scope, name }, spec, tenantOf(c.req.query('tenant')));
    const trace = parseTraceparent(c.req.header('traceparent'));
    const traced = trace === null ? call : { ...call, traceparent: formatTraceparent(trace) };
    const startedAt = performance.now();
    return late(async () => {
      const answer = await relic.call(traced, timeoutMs);
      return { ...answerJson(answer, name, timeoutMs), ms: Math.round(performance.now() - startedAt) };
    });
  });
  app.post('/relics/:name/start', async (c) => {
    const name = nameOf(c);
    const { space: scope, relic: spec } = parseBody(await c.req.text(), startRequest);
    const relic = await relics.find({ scope, name }, spec, tenantOf(c.req.query('tenant')));
    return late(async () => {
      await relic.start();
      return { state: 'running' };
    });
  });
  app.get('/relics', (c) => {
    const space = c.req.query('space');
    return c.json({ relics: relics.list(space === undefined ? null : scopeOf(c)).map(listingJson) });
  });
  app.delete('/relics', async (c) => {
    const name = c.req.query('name');
    if (name !== undefined) checkName(name);
    const stopped = await relics.stop(scopeOf(c), name ?? null, c.req.query('forget') === 'true');
    return c.json({ stopped });
  });
}

/**
 * Sends the headers at once and the answer later, because a caller has few connections that may wait for headers. Errors
 * after the headers are in the body as `error`.
 */
function late(work: () => Promise<Record<string, unknown>>): Response {
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const encoder = new TextEncoder();
      // white space before JSON is valid, and flushes the headers
      controller.enqueue(encoder.encode('\n'));
      const reply = await work().catch((fault: unknown) => ({ error: problemOf(fault) }));
      try {
        controller.enqueue(encoder.encode(JSON.stringify(reply)));
        controller.close();
      } catch {
        // the caller has disconnected
      }
    },
  });
  return new Response(body, { headers: { 'content-type': 'application/json' } });
}

function answerJson(answer: RelicAnswer, name: string, timeoutMs: number): Record<string, unknown> {
  switch (answer.end) {
    case 'answered':
      return { status: answer.status, type: answer.type, body: answer.body };
    case 'refused':
      return problem('relic_unavailable', `The relic ${name} does not accept connections`, true);
    case 'broken':
      return problem('relic_broken', `The relic ${name} ended the call: ${answer.why}`, false);
    case 'timeout':
      return problem('relic_timeout', `The relic ${name} did not answer within ${timeoutMs / 1_000} s`, false);
    case 'too_large':
      return problem('relic_answer_too_large', `The answer of the relic ${name} is too large`, false);
  }
}

function problem(code: CallProblem, message: string, beforeDispatch: boolean): Record<string, unknown> {
  return { error: { code, message, before_dispatch: beforeDispatch } };
}

function problemOf(fault: unknown): Record<string, unknown> {
  if (fault instanceof RelicUnavailable) {
    return { code: 'relic_unavailable', message: fault.message, before_dispatch: true };
  }
  if (fault instanceof RunnerError) return { code: fault.code, message: fault.message, before_dispatch: true };
  const message = fault instanceof Error ? fault.message : String(fault);
  return { code: 'internal', message, before_dispatch: false };
}

function listingJson(relic: RelicListing): Record<string, unknown> {
  return {
    space: relic.scope,
    name: relic.name,
    level: relic.level,
    state: relic.state,
    restarts: relic.restarts,
    calls: relic.calls,
    started_at: relic.startedAt,
    used_at: relic.usedAt,
    last_words: relic.lastOutput,
  };
}

function nameOf(c: Context): string {
  return checkName(c.req.param('name') ?? '');
}

function checkName(text: string): string {
  const name = relicName.safeParse(text);
  if (!name.success) throw new RunnerError('invalid_request', `name: ${name.error.issues[0]?.message ?? 'not valid'}`);
  return name.data;
}

function scopeOf(c: Context): string {
  const scope = relicScope.safeParse(c.req.query('space'));
  if (!scope.success) throw new RunnerError('invalid_request', 'space: expected a session id or another scope');
  return scope.data;
}
