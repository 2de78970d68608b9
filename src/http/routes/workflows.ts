/**
 * Starts workflows manually, by webhook and by event (M6). Each run is a separate session, which can be resumed and
 * cancelled like any other execution.
 */
import { Hono } from 'hono';
import { EngineError } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { LogFields, Logger } from '../../domain/log.ts';
import type { ResolvedWorkflow } from '../../domain/manifests/resolved.ts';
import type { WorkflowDefinition } from '../../domain/manifests/workflow.ts';
import type { StartedBy } from '../../domain/ports/children.ts';
import type { SessionRecord } from '../../domain/session.ts';
import { readTraceparent, TRACEPARENT, writeTraceparent } from '../../domain/trace.ts';
import type { WorkMeter } from '../../domain/work.ts';
import { checkInputs } from '../../engine/workflow/workflow-inputs.ts';
import { firstOwner, ownerOf } from '../api-keys.ts';
import type { ApiKey } from '../api-keys.ts';
import { parseBody, readJson, readText } from '../body.ts';
import { webhookSignature } from '../headers.ts';
import { operation, readHeader } from '../openapi/describe.ts';
import type { EdgeEnv, Gateway } from '../gateway.ts';
import { formatQuery, readQuery, schedulesQuery, webhookQuery } from '../query.ts';
import * as runsAnswers from '../responses/runs.ts';
import * as workflowsAnswers from '../responses/workflows.ts';
import { eventBody, validate, workflowBody } from '../schemas.ts';

/** The caller's span, if it is valid (O1): these routes need an API key. */
function tracedBy(header: string | undefined): StartedBy {
  const parent = readTraceparent(header);
  return parent === null ? {} : { trace: writeTraceparent(parent) };
}

/** One schedule with its next start times, soonest first: epoch milliseconds. */
export interface ScheduleOutlook {
  readonly workflow: string;
  readonly cron: string;
  /** IANA name. */
  readonly timezone: string;
  readonly inputs: JsonObject;
  readonly next: readonly number[];
}

export interface WorkflowHost {
  readonly now: () => number;
  readonly newSessionId: () => Promise<string>;
  /** Derives the session id from a start key, so that the same start gives the same session. */
  readonly sessionIdOf: (start: string) => Promise<string>;
  readonly find: (name: string, owner: string | null) => Promise<ResolvedWorkflow | null>;
  readonly list: (owner: string | null) => Promise<readonly WorkflowDefinition[]>;
  /**
   * The secret of a workflow's manifest (X3) for this key; null if there is none. `common`: includes the operator's.
   */
  readonly secret: (name: string, owner: string | null, common: boolean) => string | null;
  /** Runs an evaluation with this work limit, in its turn among expensive work. */
  readonly paced: <T>(owner: string | null, steps: number, work: (meter: WorkMeter) => T) => Promise<T>;
  /** Starts a workflow's session, once per session id; resolves to the id of its run. */
  readonly start: (record: SessionRecord, inputs: JsonObject, how?: StartedBy) => Promise<string>;
  /** The schedules of this namespace, with the next `count` times of each. */
  readonly schedules: (owner: string | null, count: number) => Promise<readonly ScheduleOutlook[]>;
  /** Creates a workflow's session without starting it. */
  readonly create: (record: SessionRecord) => Promise<void>;
}

export function recordOf(host: WorkflowHost, name: string, owner: string | null, sessionId: string): SessionRecord {
  return {
    session_id: sessionId,
    agent: name,
    workflow: name,
    user_id: null,
    owner,
    kind: 'execution',
    metadata: {},
    created_at: host.now(),
  };
}

export async function requireWorkflow(
  host: WorkflowHost,
  name: string,
  owner: string | null,
): Promise<WorkflowDefinition> {
  const found = await host.find(name, owner);
  if (found !== null) return found.workflow;
  const known = (await host.list(owner)).map((workflow) => workflow.name);
  const message = `No workflow is called "${name.slice(0, limits.excerptChars)}" (known: ${known.join(', ') || 'none'})`;
  throw new EngineError('unknown_workflow', message, { known });
}

/** Routes for callers with a key. */
export function workflowRoutes(host: WorkflowHost, gateway: Gateway): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();

  operation(app, 'GET /workflows', { response: workflowsAnswers.workflows }, async (c) => {
    const workflows = await host.list(c.get('principal').owner);
    return c.json({
      workflows: workflows.map(({ name, version, summary, trigger, inputs, steps }) => ({
        name,
        version,
        summary,
        trigger: trigger.type === 'webhook' ? { type: trigger.type } : { ...trigger },
        inputs,
        steps: steps.map((step) => ({ name: step.name, type: step.type, target: step.target })),
      })),
    });
  });

  operation(app, 'GET /schedules', { query: schedulesQuery, response: workflowsAnswers.schedules }, async (c) => {
    const { count = 5 } = readQuery(schedulesQuery, c.req.url);
    const schedules = await host.schedules(c.get('principal').owner, count);
    const soonest = schedules.toSorted((a, b) => (a.next[0] ?? Infinity) - (b.next[0] ?? Infinity));
    return c.json({ schedules: soonest });
  });

  operation(
    app,
    'POST /workflows/:name/runs',
    { body: workflowBody, query: formatQuery, response: runsAnswers.runResult, run: true, media: 'events' },
    async (c) => {
      const principal = c.get('principal');
      const workflow = await requireWorkflow(host, c.req.param('name'), principal.owner);
      const body = validate(workflowBody, await readJson(c.req.raw));
      checkInputs(workflow, body.inputs);
      const record = recordOf(host, workflow.name, principal.owner, await host.newSessionId());
      await host.create(record);
      const headers = new Headers(c.req.raw.headers);
      headers.delete('content-length');
      const request = new Request(c.req.url, { method: 'POST', headers, body: JSON.stringify(body) });
      return await gateway.forward(record.session_id, `/-/workflow${new URL(c.req.url).search}`, request, principal);
    },
  );

  /** Starts every workflow with a trigger for this event. */
  operation(
    app,
    'POST /events/:event',
    { body: eventBody, status: 202, response: workflowsAnswers.startedByEvent },
    async (c) => {
      const { owner } = c.get('principal');
      const event = c.req.param('event');
      const { data } = validate(eventBody, await readJson(c.req.raw));
      const waiting = (await host.list(owner)).filter(
        ({ trigger }) => trigger.type === 'event' && trigger.event === event,
      );
      for (const workflow of waiting) {
        await host.paced(owner, limits.schemaSteps, (meter) => checkInputs(workflow, data, meter));
      }
      const runs: { workflow: string; session_id: string; run_id: string }[] = [];
      // One after another: many at once would block the thread and delay other evaluations.
      for (const { name } of waiting) {
        const record = recordOf(host, name, owner, await host.newSessionId());
        const run = await host.start(record, data, tracedBy(c.req.header(TRACEPARENT)));
        runs.push({ workflow: name, session_id: record.session_id, run_id: run });
      }
      return c.json({ event, runs }, 202);
    },
  );

  return app;
}

/**
 * Routes for callers without a key, who sign their requests: `x-cortex-signature: t=<seconds>,v1=<hex>` is the
 * HMAC-SHA256 of `<seconds>.<body>` under the secret named by the manifest. A repeated delivery starts no second run.
 * `?owner=` names the namespace that owns the workflow; default: that of the first admin key. The log has the reason for
 * a refusal; the response does not reveal which workflows exist.
 */
export function webhookRoutes(host: WorkflowHost, keys: readonly ApiKey[], log: Logger): Hono {
  const app = new Hono();
  operation(
    app,
    'POST /webhooks/:name',
    { headers: [webhookSignature], query: webhookQuery, status: 202, response: workflowsAnswers.startedByWebhook },
    async (c) => {
      const { owner: namespace } = readQuery(webhookQuery, c.req.url);
      const owner = namespace === undefined ? firstOwner(keys) : ownerOf(keys, namespace);
      const name = c.req.param('name');
      const refuse = (code: string, message: string, error: EngineError = unverified()): never => {
        log('webhook_refused', { ...whose, code, message });
        throw error;
      };
      let whose: LogFields = {};
      // A namespace without a key has no catalogue, and none is created.
      const found = owner === undefined ? null : await host.find(name, owner);
      const text = await readText(c.req.raw);
      if (owner === undefined || found === null || found.workflow.trigger.type !== 'webhook') {
        return refuse('unknown_webhook', 'no workflow with this name has a webhook trigger');
      }
      whose = { workflow: name, ...(owner === null ? {} : { namespace: owner }) };
      // The operator's secret must not start the workflow for every namespace: others have their own secrets.
      const common = found.bundled?.subject === true && owner === firstOwner(keys);
      const secret = host.secret(found.workflow.trigger.secret, owner, common);
      if (secret === null) return refuse('missing_secret', `${found.workflow.trigger.secret} is not set`);
      const given = /^t=(\d{1,15}),v1=([0-9a-f]{64})$/.exec(readHeader(c, webhookSignature) ?? '');
      const [, seconds = '', signature = ''] = given ?? [];
      if (given === null) return refuse('no_signature', 'the header x-cortex-signature is missing or malformed');
      if (Math.abs(host.now() / 1_000 - Number(seconds)) > limits.webhookSeconds) {
        return refuse('old_signature', `the time of the signature differs by more than ${limits.webhookSeconds} s`);
      }
      if (!(await verified(secret, `${seconds}.${text}`, signature))) {
        return refuse('wrong_signature', 'the signature is wrong');
      }
      const inputs = acceptedInputs(found.workflow, text, (error) =>
        refuse(error.code, 'the body does not match the inputs of the workflow', error),
      );
      const sessionId = await host.sessionIdOf(`webhook ${owner ?? ''} ${name} ${signature}`);
      const run = await host.start(recordOf(host, name, owner, sessionId), inputs, { trigger: 'webhook' });
      return c.json({ session_id: sessionId, run_id: run }, 202);
    },
  );
  return app;
}

function unverified(): EngineError {
  return new EngineError('unauthorized', 'The webhook is unknown, or its signature is missing, wrong or too old');
}

function acceptedInputs(workflow: WorkflowDefinition, text: string, refuse: (error: EngineError) => never): JsonObject {
  try {
    const inputs = inputsOf(text);
    checkInputs(workflow, inputs);
    return inputs;
  } catch (fault) {
    if (fault instanceof EngineError) return refuse(fault);
    throw fault;
  }
}

function inputsOf(text: string): JsonObject {
  const parsed = parseBody(text);
  if (isJsonObject(parsed)) return parsed;
  throw new EngineError('invalid_json', 'A webhook body must be a JSON object or empty');
}

const encoder = new TextEncoder();

async function verified(secret: string, text: string, signature: string): Promise<boolean> {
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'verify',
  ]);
  const bytes = Uint8Array.from(signature.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return await crypto.subtle.verify('HMAC', key, bytes, encoder.encode(text));
}
