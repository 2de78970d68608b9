/**
 * The client of Cortex Edge: for browsers, Node and Workers, without dependencies.
 *
 * ```ts
 * const client = new Client({ url: 'https://cortex.example', token: () => getToken() });
 * const session = await client.createSession('assistant');
 * const run = await session.send('Where am I?', {
 *   clientTools: {
 *     get_location: { description: 'Where the user is', run: async () => ({ city: await locate() }) },
 *   },
 *   onApproval: ({ name, parameters }) => confirm(`Run ${name} ${JSON.stringify(parameters)}?`),
 * });
 * for await (const message of run.messages()) show(visibleText(message), message.actions);
 * console.log(await run.text());
 * ```
 *
 * `run.events()` gives the events themselves. Both survive lost connections; after a reload, continue with
 * `client.session(id).run(runId, { clientTools, onApproval })`.
 */
export { BaseClient, Client } from './client.ts';
export { CortexError } from './error.ts';
export { fold } from '../view/reduce.ts';
export { emptyView as emptyMessage, hasEnded, visibleText } from '../view/run-view.ts';
export type { AbortOptions } from './abort-options.ts';
export type { ClientOptions, CreateSessionOptions } from './client.ts';
export type { TokenSource } from './connection.ts';
export type { CortexErrorInit } from './error.ts';
export type { System } from './system.ts';
export type { ClientTool, ClientToolContext, ClientTools, RunClientTool } from './declarations.ts';
export type { Decision, OnApproval } from './approvals.ts';
export type {
  Approval,
  Artifact,
  ArtifactPage,
  CallResult,
  ContentPart,
  FileSource,
  HistoryMessage,
  HistoryPage,
  MessagePart,
  OpenApproval,
  Question,
  OpenCall,
  RunDocument,
  SessionDocument,
  ToolDeclaration,
} from './documents.ts';
export type { Action, Asked, Attempt, Block, Failure, Iteration, RunView as Message, Wait } from '../view/run-view.ts';
export type { Run, RunOptions } from './run.ts';
export type {
  DownloadOptions,
  ForkOptions,
  HistoryOptions,
  PageOptions,
  RerunOptions,
  RetryOptions,
  SendOptions,
  Session,
  SessionTokenOptions,
} from './session.ts';
export type { ActionMode, ActionType } from '../domain/action.ts';
export type {
  EventData,
  EventHead,
  EventOf,
  EventType,
  JournaledEventType,
  LiveEventType,
  SessionEvent,
} from '../domain/event.ts';
export type { Clock } from '../domain/ports/clock.ts';
export type { RunStatus } from '../domain/session.ts';
export type {
  AgentEntry,
  AgentPrompt,
  ApprovalPage,
  CodeAndMessage,
  ExecutionEntry,
  ExecutionFilter,
  ExecutionKind,
  ExecutionPage,
  Feed,
  HealthDocument,
  ManifestCheck,
  ManifestChoice,
  ManifestDocument,
  ManifestEntry,
  ManifestGraph,
  ManifestIssue,
  ManifestKind,
  Plan,
  RunPage,
  RunPrompt,
  ScheduleEntry,
  Scope,
  SessionEntry,
  SessionFilter,
  SessionListPage,
  SessionToken,
  WorkflowEntry,
} from './system-documents.ts';
export type { Json, JsonObject } from '../domain/json.ts';
