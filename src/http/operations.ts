/**
 * All operations of the HTTP surface: method and path, who may call them, and what they do (T1).
 *
 * This table alone decides about access. Routes are registered from it (openapi/describe.ts), the Worker checks each
 * request against it (access.ts), and the OpenAPI document and docs/http.md are made from it. Requests and responses are
 * described with the handlers, in routes/.
 */
import { TrieRouter } from 'hono/router/trie-router';
import type { SurfaceName } from '../surfaces/surface.ts';

/** What a token may allow. `branch`: fork and retry. `tools`: pass client tools and answer their calls. */
export const SCOPES = ['read', 'message', 'approve', 'tools', 'files', 'branch', 'view'] as const;
export type Scope = (typeof SCOPES)[number];

export interface Operation {
  readonly summary: string;
  /**
   * A token with any of these scopes may call it, as may every API key. Default: API keys only. Session tokens are for
   * the operations of their session; user tokens for all that have scopes.
   */
  readonly scopes?: readonly Scope[];
  /** A session token may not call it, whatever its scopes are: its result is another session. */
  readonly makesSession?: true;
  /** `admin`: only keys with this role. `prompts`: the same, unless `DEBUG_PROMPTS` is set. */
  readonly role?: 'admin' | 'prompts';
  /** The protocol, if it is not our own: user tokens must be for it. */
  readonly surface?: SurfaceName;
  /** Without a key: by `anyone`, or with a `signature` that the handler checks. */
  readonly open?: 'anyone' | 'signature';
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** For what tokens with `view` may read as well: their answers leave out thoughts and feeds (view.ts). */
const READ = ['read', 'view'] as const;

/** Files that people and programs share. */
const FILES = ['read', 'files'] as const;

/** Who may send a message may know to whom. */
const MODELS = ['read', 'message'] as const;

/** Of operations whose paths fit the same request, the first one counts. */
export const OPERATIONS = {
  // Sessions
  'POST /agent/:name/session': { scopes: ['message'], summary: 'Create a session with an agent' },
  'GET /sessions': {
    scopes: ['read'],
    summary: 'List the sessions of this namespace, or of the token’s user, newest activity first',
  },
  'GET /agent/session/:id': { scopes: READ, summary: 'Get the session' },
  'DELETE /agent/session/:id': {
    summary: 'Cancel all runs of the session and delete it; answers with JSON for `Accept: application/json`',
  },
  'POST /agent/session/:id/message': {
    scopes: ['message'],
    summary: 'Send a message; the response is a stream of the run’s events, or one document',
  },
  'POST /agent/session/:id/runs/:run/retry': {
    scopes: ['branch'],
    summary:
      'Send the message of a run again, changed where given, or run one of its actions again; answers like a message',
  },
  'POST /agent/session/:id/fork': {
    scopes: ['branch'],
    makesSession: true,
    summary: 'Create a session with the conversation up to the end of a run',
  },
  'POST /agent/session/:id/head': {
    scopes: ['branch'],
    summary: 'Choose the run that the next message follows',
  },
  'POST /agent/session/:id/cancel': { scopes: ['message'], summary: 'Cancel running and queued runs' },
  'GET /agent/session/:id/events': {
    scopes: READ,
    summary: 'Stream all events of the session, then live ones; resumable with Last-Event-ID',
  },
  'GET /agent/session/:id/history': {
    scopes: READ,
    summary:
      'List messages and answers of a branch in order: the newest page, or the page before a run or a seeded message',
  },
  'GET /agent/session/:id/runs': {
    scopes: READ,
    summary: 'List runs of the session in order: the newest page, or the page before a run',
  },
  'GET /agent/session/:id/runs/:run': { scopes: READ, summary: 'Get one run' },
  'GET /agent/session/:id/runs/:run/prompt': {
    role: 'prompts',
    summary: 'Get the messages that a run sent to the model; requires an admin key, or DEBUG_PROMPTS',
  },
  'GET /agent/session/:id/artifacts': {
    scopes: ['read', 'files', 'view'],
    summary: 'List artifacts: large outputs and files of actions',
  },
  'GET /agent/session/:id/artifacts/:artifact': {
    scopes: ['read', 'files', 'view'],
    summary: 'Download an artifact, or a range of it',
  },
  'GET /agent/session/:id/content/:sha256': {
    scopes: FILES,
    summary: 'Download a file of a message by the SHA-256 in its part, or a range of it',
  },
  'GET /agent/session/:id/files': {
    scopes: FILES,
    summary: 'List the files of the workspace in the order of their paths, or get all of them as a ZIP file',
  },
  'GET /agent/session/:id/files/:path': {
    scopes: FILES,
    summary: 'Download a file of the workspace, or a range of it; the path may have several levels',
  },
  'PUT /agent/session/:id/files/:path': {
    scopes: ['files'],
    summary: 'Write a file of the workspace: the body is its content, of any type',
  },
  'DELETE /agent/session/:id/files/:path': {
    scopes: ['files'],
    summary: 'Delete a file of the workspace, or a folder with everything in it',
  },
  'GET /agent/session/:id/feeds': {
    scopes: ['read'],
    summary: 'List context feeds: definitions, latest values and errors',
  },
  'GET /agent/session/:id/state': { scopes: READ, summary: 'Get the session variables' },
  'GET /agent/session/:id/export': {
    scopes: READ,
    summary:
      'Export the whole session, one JSON value per line: its record, seeded history, runs, files, events and variables',
  },
  'GET /agent/session/:id/transcript': {
    summary: 'Export completed runs as training examples in the chat format, one run per line',
  },

  // Facts about users
  'GET /agent/:name/memory': {
    scopes: ['read'],
    summary: 'List the facts that an agent keeps about a user',
  },
  'DELETE /agent/:name/memory': {
    scopes: ['message'],
    summary: 'Delete all facts that an agent keeps about a user',
  },
  'PUT /agent/:name/memory/:key': {
    scopes: ['message'],
    summary: 'Write a fact about a user, which replaces the fact with this key',
  },
  'DELETE /agent/:name/memory/:key': {
    scopes: ['message'],
    summary: 'Delete one fact about a user',
  },

  // Other protocols
  'POST /ai/:name/chat': {
    scopes: ['message'],
    surface: 'ai-sdk',
    summary: 'Send a message, results or decisions with the AI SDK; the response is a UI message stream',
  },
  'GET /ai/:name/chat/:chat/stream': {
    scopes: ['read'],
    surface: 'ai-sdk',
    summary:
      'Stream the run that is active, waits or has just ended, from its beginning with the AI SDK; 204 if there is none',
  },
  'GET /ai/:name/chat/:chat/messages': {
    scopes: ['read'],
    surface: 'ai-sdk',
    summary: 'List the last messages of the chat for the AI SDK, without the answer of a run that is active or waits',
  },
  'POST /ai/:name/chat/:chat/stop': {
    scopes: ['message'],
    surface: 'ai-sdk',
    summary: 'Cancel running and queued runs of the chat',
  },
  'POST /agui/:name': {
    scopes: ['message'],
    surface: 'ag-ui',
    summary:
      'Run an agent with AG-UI: a message, results of tools or answers to interrupts; the response is its events',
  },
  'GET /v1/models': { scopes: MODELS, surface: 'openai', summary: 'List the agents as models of OpenAI’s API' },
  'GET /v1/models/:model': { scopes: MODELS, surface: 'openai', summary: 'Get one agent as a model of OpenAI’s API' },
  'POST /v1/chat/completions': {
    scopes: ['message'],
    surface: 'openai',
    summary:
      'Answer a conversation with OpenAI’s chat completions: `model` is the agent; as a stream with `"stream": true`',
  },
  'POST /v1/responses': {
    scopes: ['message'],
    surface: 'openai',
    summary:
      'Send a message, results or decisions with OpenAI’s Responses API: `model` is the agent; as a stream with `"stream": true`',
  },
  'GET /v1/responses/:response': {
    scopes: ['read'],
    surface: 'openai',
    summary: 'Get a response, or stream its frames from its beginning or after a number',
  },
  'POST /v1/responses/:response/cancel': {
    scopes: ['message'],
    surface: 'openai',
    summary: 'Cancel the run of a response',
  },
  'POST /mcp': {
    // Each of its methods needs its own: surfaces/mcp/mcp-calls.ts.
    scopes: ['read', 'message', 'files'],
    surface: 'mcp',
    summary:
      'Call agents, tools and workflows with the Model Context Protocol, 2026-07-28 or 2025-11-25; results may be streams',
  },

  // Tokens
  'POST /tokens': {
    summary: 'Create a token for a user: it creates sessions with agents, and uses the sessions of this user only',
  },
  'POST /agent/session/:id/tokens': { summary: 'Create a token for this session only' },

  // Approvals
  'GET /approvals': {
    summary: 'List the approval requests of all sessions that wait for a decision, oldest first',
  },
  'GET /agent/session/:id/approvals': {
    scopes: ['read', 'approve', 'view'],
    summary: 'List the approval requests that wait for a decision, oldest first, with those of its sub-agents',
  },
  'GET /agent/session/:id/approvals/:approval': {
    scopes: ['read', 'approve', 'view'],
    summary: 'Get an approval request: the complete call, its size and digest, and the decision',
  },
  'POST /agent/session/:id/approvals/:approval': {
    scopes: ['approve'],
    summary: 'Decide an approval request; the first decision counts, later ones get 409',
  },

  // Client tools
  'POST /agent/session/:id/calls/:call': {
    scopes: ['tools'],
    summary: 'Settle a call of a client tool; the same result again is accepted, another one gets 409',
  },

  // Programs
  'POST /execute/direct': { summary: 'Run protocol text without a model' },
  'POST /execute/streaming_protocol': {
    summary: 'Run protocol text without a model; a text/plain body may be streamed',
  },
  'POST /plan': { summary: 'Plan protocol text without running it: actions, waves, estimates' },
  'GET /executions': {
    summary: 'List ended and waiting runs of all sessions, newest first: executions, workflows and messages',
  },
  'GET /executions/:id': { summary: 'Get one execution' },
  'POST /executions/:id/cancel': { summary: 'Cancel an execution' },

  // Workflows
  'GET /workflows': { summary: 'List workflows: triggers, inputs and steps' },
  'GET /schedules': {
    summary: 'List the scheduled workflows of this namespace, soonest first, each with its next start times',
  },
  'POST /workflows/:name/runs': { summary: 'Run a workflow; the response contains its outputs' },
  'POST /events/:event': { summary: 'Start every workflow with a trigger for this event' },
  'POST /webhooks/:name': {
    open: 'signature',
    summary: 'Start a workflow with a signed request instead of a key; the body is a JSON object with its inputs',
  },

  // Manifests
  'GET /manifests': { summary: 'List all manifests in the catalogue' },
  'GET /manifests/graph': {
    summary: 'Get the dependency graph of the catalogue; as text with `Accept: text/plain`',
  },
  'POST /manifests/validate': { summary: 'Validate manifests without storing them' },
  'PUT /manifests': {
    role: 'admin',
    summary: 'Replace the catalogue with a folder of manifests and the files that they name; all or nothing',
  },
  'POST /manifests': {
    role: 'admin',
    summary: 'Upload one manifest or a folder; manifests that do not load are reported, the others are stored',
  },
  'GET /manifests/:kind': { summary: 'List manifests of one kind: agent, tool, relic, workflow, skill, monument' },
  'GET /manifests/:kind/:name': {
    summary: 'Get one manifest with its versions; its source with `Accept: application/yaml`',
  },
  'PUT /manifests/:kind/:name': { role: 'admin', summary: 'Upload one manifest, or a new version of it' },
  'DELETE /manifests/:kind/:name': { role: 'admin', summary: 'Delete one manifest' },

  // System
  'GET /health': { open: 'anyone', summary: 'Get the status of the system and its active parts' },
  'GET /openapi.json': { summary: 'Get this document' },
  'GET /executors': { summary: 'List action types, where they run and whether they are available' },
  'GET /agents': { summary: 'List the agents in the catalogue' },
  'GET /agents/:name/prompt': {
    summary:
      'Get the system prompt that a session of an agent gets now; with token counts for `Accept: application/json`',
  },
  'GET /agents/:name/grammar': {
    summary: "Get the grammar of an agent's protocol text; with notes for `Accept: application/json`",
  },
} as const satisfies Readonly<Record<`${Method} /${string}`, Operation>>;

/** Method and path, as in the table. */
export type OperationName = keyof typeof OPERATIONS;

/** Where the routes of one session begin. */
export const SESSION_PATH = '/agent/session/:id';

const router = new TrieRouter<OperationName>();
for (const name of Object.keys(OPERATIONS) as OperationName[]) {
  const [method = '', path = ''] = name.split(' ');
  router.add(method, routedPath(path), name);
}

/** The path as the routers take it: `:path` at its end is the rest of it, with slashes, and may have line breaks. */
export function routedPath(path: string): string {
  return path.replace(/:path$/, ':path{[^]+}');
}

/** @param path decoded, as the routers read it. @returns null if there is no such operation */
export function findOperation(method: string, path: string): OperationName | null {
  // Hono answers HEAD like GET. A session's router gets `/` for its root with and without a final slash.
  const asked = path.replace(/^(\/agent\/session\/[^/]+)\/$/, '$1');
  return router.match(method === 'HEAD' ? 'GET' : method, asked)[0][0]?.[0] ?? null;
}
