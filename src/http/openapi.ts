/** The OpenAPI 3.1 document (H4), from the same schemas that validate requests. */
import * as z from 'zod';
import * as answers from './responses.ts';
import {
  artifactsQuery,
  deleteQuery,
  eventsQuery,
  executeQuery,
  executionsQuery,
  filesQuery,
  healthQuery,
  manifestQuery,
  messageQuery,
  noQuery,
  planQuery,
  queryParameters,
  routeKey,
  runsQuery,
  schedulesQuery,
  tokensQuery,
  transcriptQuery,
  webhookQuery,
} from './query.ts';
import type { Query } from './query.ts';
import {
  approvalBody,
  cancelBody,
  createSessionBody,
  eventBody,
  executeBody,
  manifestFilesBody,
  messageBody,
  planBody,
  tokenBody,
  workflowBody,
} from './schemas.ts';

interface Route {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** In OpenAPI's form, `/agent/{name}/session`. */
  readonly path: string;
  readonly summary: string;
  readonly body?: z.ZodType;
  /** Also takes protocol text as it is. */
  readonly plainText?: boolean;
  /** Takes YAML; `folder`: or several files as a form or as JSON. */
  readonly yaml?: 'one' | 'folder';
  /** What it takes in its query; nothing where it is left out. */
  readonly query?: Query;
  readonly answer: 'json' | 'jsonl' | 'sse' | 'sse_or_json' | 'file' | 'none';
  readonly status?: number;
  /** What a JSON answer holds. */
  readonly response?: z.ZodType;
  /** Other statuses with the same answer. */
  readonly further?: readonly number[];
}

/** Every route of the system; a test checks that this table and the routers agree. */
export const ROUTES: readonly Route[] = [
  {
    method: 'get',
    path: '/health',
    summary: 'Whether the system is up, and what is active',
    query: healthQuery,
    answer: 'json',
    response: answers.health,
    further: [503],
  },
  { method: 'get', path: '/openapi.json', summary: 'This document', answer: 'json', response: answers.document },
  {
    method: 'get',
    path: '/executors',
    summary: 'Action types, where they run and whether they are available',
    answer: 'json',
    response: answers.executors,
  },
  { method: 'get', path: '/agents', summary: 'Agents in the catalogue', answer: 'json', response: answers.agents },
  {
    method: 'get',
    path: '/manifests',
    summary: 'Everything in the catalogue',
    answer: 'json',
    response: answers.manifests,
  },
  {
    method: 'post',
    path: '/manifests',
    summary: 'Put manifests in, one or a folder; what does not load is reported, the rest is taken (role admin)',
    yaml: 'folder',
    query: filesQuery,
    answer: 'json',
    response: answers.manifestReport,
    further: [207],
    status: 201,
  },
  {
    method: 'put',
    path: '/manifests',
    summary:
      'Make the catalogue what this folder is, with the files that its manifests name; what is not in it goes. All or nothing (role admin)',
    yaml: 'folder',
    query: filesQuery,
    answer: 'json',
    response: answers.manifestReplacement,
  },
  {
    method: 'post',
    path: '/manifests/validate',
    summary: 'What putting them in would say; nothing changes',
    yaml: 'folder',
    query: filesQuery,
    answer: 'json',
    response: answers.manifestCheck,
  },
  {
    method: 'get',
    path: '/manifests/graph',
    summary: 'Who uses what; as text with `Accept: text/plain`',
    answer: 'json',
    response: answers.manifestGraph,
  },
  {
    method: 'get',
    path: '/manifests/{kind}',
    summary: 'One kind: agent, tool, relic, workflow, monument',
    answer: 'json',
    response: answers.manifests,
  },
  {
    method: 'get',
    path: '/manifests/{kind}/{name}',
    summary: 'One manifest with its versions; as it was written with `Accept: application/yaml`',
    query: manifestQuery,
    answer: 'json',
    response: answers.manifestDetail,
  },
  {
    method: 'put',
    path: '/manifests/{kind}/{name}',
    summary: 'Put one manifest in, or a new version of it (role admin)',
    yaml: 'one',
    answer: 'json',
    response: answers.manifestChange,
    further: [200],
    status: 201,
  },
  {
    method: 'delete',
    path: '/manifests/{kind}/{name}',
    summary: 'Take one manifest out (role admin)',
    answer: 'none',
    status: 204,
  },
  {
    method: 'post',
    path: '/agent/{name}/session',
    summary: 'Create a session with an agent',
    body: createSessionBody,
    answer: 'json',
    response: answers.createdSession,
    status: 201,
  },
  { method: 'get', path: '/agent/session/{id}', summary: 'The session', answer: 'json', response: answers.session },
  {
    method: 'delete',
    path: '/agent/session/{id}',
    summary: 'Cancel what runs and delete everything',
    query: deleteQuery,
    answer: 'none',
    status: 204,
  },
  {
    method: 'post',
    path: '/agent/session/{id}/message',
    summary: 'Send a message; answers with the run’s events, or with one document',
    body: messageBody,
    query: messageQuery,
    answer: 'sse_or_json',
    response: answers.runResult,
  },
  {
    method: 'post',
    path: '/agent/session/{id}/tokens',
    summary: 'A token for a browser: this session only, for a time, with the scopes read, message, approve',
    body: tokenBody,
    query: tokensQuery,
    answer: 'json',
    response: answers.token,
    status: 201,
  },
  {
    method: 'get',
    path: '/agent/session/{id}/events',
    summary: 'All events of the session, then live ones; resumable with Last-Event-ID',
    query: eventsQuery,
    answer: 'sse',
  },
  {
    method: 'get',
    path: '/agent/session/{id}/history',
    summary: 'Messages and answers, in order: the newest page, or the one before a run',
    query: runsQuery,
    answer: 'json',
    response: answers.history,
  },
  {
    method: 'get',
    path: '/agent/session/{id}/export',
    summary: 'The whole session, one JSON text a line: its record, its runs, all events, its variables',
    answer: 'jsonl',
  },
  {
    method: 'get',
    path: '/agent/session/{id}/transcript',
    summary: 'Completed runs as training examples in the chat format, one run a line',
    query: transcriptQuery,
    answer: 'jsonl',
  },
  {
    method: 'get',
    path: '/agent/session/{id}/artifacts',
    summary: 'Large outputs and files of actions',
    query: artifactsQuery,
    answer: 'json',
    response: answers.artifacts,
  },
  {
    method: 'get',
    path: '/agent/session/{id}/artifacts/{artifact}',
    summary: 'One of them, as it is; takes Range',
    answer: 'file',
  },
  {
    method: 'get',
    path: '/agent/session/{id}/feeds',
    summary: 'Context feeds: their definitions, latest values, and what went wrong',
    answer: 'json',
    response: answers.feeds,
  },
  {
    method: 'get',
    path: '/agent/session/{id}/state',
    summary: 'Session variables',
    answer: 'json',
    response: answers.state,
  },
  {
    method: 'get',
    path: '/agent/session/{id}/runs',
    summary: 'Runs of the session, in order: the newest page, or the one before a run',
    query: runsQuery,
    answer: 'json',
    response: answers.runs,
  },
  {
    method: 'get',
    path: '/agent/session/{id}/runs/{run}',
    summary: 'One run as a document',
    answer: 'json',
    response: answers.runResult,
  },
  {
    method: 'post',
    path: '/agent/session/{id}/cancel',
    summary: 'Cancel what runs and what waits',
    body: cancelBody,
    answer: 'json',
    response: answers.cancelled,
  },
  {
    method: 'get',
    path: '/agent/session/{id}/approvals/{approval}',
    summary: 'What a person is asked: the whole call as it will run, its size and digest, and what was decided',
    answer: 'json',
    response: answers.approval,
  },
  {
    method: 'post',
    path: '/agent/session/{id}/approvals/{approval}',
    summary: 'Answer an approval request; the first answer counts, 409 for one that comes later',
    body: approvalBody,
    answer: 'json',
    response: answers.decision,
  },
  {
    method: 'get',
    path: '/workflows',
    summary: 'Workflows: their triggers, inputs and steps',
    answer: 'json',
    response: answers.workflows,
  },
  {
    method: 'get',
    path: '/schedules',
    summary: 'Scheduled workflows of this key, soonest first, each with its next times',
    query: schedulesQuery,
    answer: 'json',
    response: answers.schedules,
  },
  {
    method: 'post',
    path: '/workflows/{name}/runs',
    summary: 'Run a workflow; its outputs are the answer',
    body: workflowBody,
    answer: 'sse_or_json',
    response: answers.runResult,
  },
  {
    method: 'post',
    path: '/events/{event}',
    summary: 'Start every workflow that waits for this event',
    body: eventBody,
    answer: 'json',
    response: answers.startedByEvent,
    status: 202,
  },
  {
    method: 'post',
    path: '/webhooks/{name}',
    summary: 'Start a workflow by a signed request, without a key: `x-cortex-signature: t=<seconds>,v1=<hex>`',
    query: webhookQuery,
    answer: 'json',
    response: answers.startedByWebhook,
    status: 202,
  },
  {
    method: 'post',
    path: '/execute/direct',
    summary: 'Run protocol text without a model',
    body: executeBody,
    plainText: true,
    query: executeQuery,
    answer: 'sse_or_json',
    response: answers.runResult,
  },
  {
    method: 'post',
    path: '/execute/streaming_protocol',
    summary: 'The same; a text/plain body may still be arriving',
    body: executeBody,
    plainText: true,
    query: executeQuery,
    answer: 'sse_or_json',
    response: answers.runResult,
  },
  {
    method: 'post',
    path: '/plan',
    summary: 'What protocol text would do: actions, waves, estimates; nothing runs',
    body: planBody,
    plainText: true,
    query: planQuery,
    answer: 'json',
    response: answers.plan,
  },
  {
    method: 'get',
    path: '/executions',
    summary: 'Executions, newest first',
    query: executionsQuery,
    answer: 'json',
    response: answers.executions,
  },
  {
    method: 'get',
    path: '/executions/{id}',
    summary: 'One execution as a document',
    answer: 'json',
    response: answers.runResult,
  },
  {
    method: 'post',
    path: '/executions/{id}/cancel',
    summary: 'Cancel an execution',
    body: cancelBody,
    answer: 'json',
    response: answers.cancelled,
  },
];

/** What each route takes in its query, by `routeKey`. */
export const QUERIES: ReadonlyMap<string, Query> = new Map(
  ROUTES.map(({ method, path, query }) => [routeKey(method, path), query ?? noQuery]),
);

export function openApiDocument(version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of ROUTES) {
    const item = (paths[route.path] ??= {});
    item[route.method] = operation(route);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Cortex Edge', version, license: { name: 'MIT', identifier: 'MIT' } },
    security: [{ apiKey: [] }, { sessionToken: [] }, { sessionTokenInQuery: [] }, {}],
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer' },
        sessionToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        sessionTokenInQuery: { type: 'apiKey', in: 'query', name: 'token' },
      },
      schemas: answers.componentSchemas(),
    },
  };
}

function operation(route: Route): Record<string, unknown> {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
  const content: Record<string, unknown> = {};
  if (route.body !== undefined) content['application/json'] = { schema: z.toJSONSchema(route.body, { io: 'input' }) };
  if (route.yaml !== undefined) content['application/yaml'] = { schema: { type: 'string' } };
  if (route.yaml === 'folder') {
    content['application/json'] = { schema: z.toJSONSchema(manifestFilesBody, { io: 'input' }) };
    content['multipart/form-data'] = {
      schema: {
        type: 'object',
        additionalProperties: { type: 'string', contentMediaType: 'application/octet-stream' },
      },
    };
  }
  if (route.plainText === true) content['text/plain'] = { schema: { type: 'string' } };
  const responses = [route.status ?? 200, ...(route.further ?? [])].map((status) => [
    String(status),
    responseOf(route),
  ]);
  return {
    summary: route.summary,
    parameters: [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      ...queryParameters(route.query ?? noQuery),
    ],
    ...(Object.keys(content).length === 0 ? {} : { requestBody: { content } }),
    responses: {
      ...(Object.fromEntries(responses) as Record<string, object>),
      default: {
        description: 'A problem, with a stable code',
        content: { 'application/problem+json': { schema: answers.responseSchema(answers.problem) } },
      },
    },
  };
}

/** What a route answers when nothing is wrong. */
function responseOf({ answer, response }: Route): object {
  const event = answers.responseSchema(answers.sessionEvent);
  const content: Record<string, unknown> = {};
  if (answer === 'file') content['application/octet-stream'] = { schema: { type: 'string', format: 'binary' } };
  if (answer === 'jsonl') content['application/jsonl'] = { schema: { type: 'string' } };
  if (response !== undefined) content['application/json'] = { schema: answers.responseSchema(response) };
  if (answer.startsWith('sse')) {
    // The schema is that of each frame's data.
    const schema = { type: 'string', contentMediaType: 'application/json', contentSchema: event };
    content['text/event-stream'] = { schema };
  }
  return { description: 'Done', ...(Object.keys(content).length === 0 ? {} : { content }) };
}
