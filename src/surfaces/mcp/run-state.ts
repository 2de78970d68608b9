/**
 * The result of a run as a result of a tool of the Model Context Protocol, folded from the run's events (E4).
 *
 * An agent's answer is text with a `structuredContent` that names the session and the run. A tool's output, and the outputs of
 * a workflow, are text and, if they are an object, also `structuredContent`. Images and sounds that the run made are blocks of
 * the content up to a limit; other artifacts are links to resources.
 *
 * Invariants:
 *  1. Only a run that has completed is a success.
 *  2. Thoughts and feeds are never in a result.
 */
import { base64Of } from '../../domain/base64.ts';
import { endsWait } from '../../domain/event.ts';
import type { EventOf, EventType, SessionEvent } from '../../domain/event.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RunStatus } from '../../domain/session.ts';
import type { FoldedRun } from '../surface.ts';
import { RUN_META, textBlock } from './outcome.ts';
import type { McpApproval, McpContent, McpOutcome, McpResult } from './outcome.ts';
import { artifactUri } from './uri.ts';

type RunFailure = { readonly code: string; readonly message: string };
type Status = McpOutcome['status'];

/** What a run has called its client for: who called cannot answer. */
interface OpenCall {
  readonly call_id: string;
  readonly name: string;
}

export class McpRunState {
  /** The events that the result of a run that has ended depends on. */
  static readonly EVENTS: readonly EventType[] = [
    'agent_started',
    'agent_waiting',
    'agent_completed',
    'agent_failed',
    'agent_cancelled',
    'action_completed',
    'action_failed',
    'action_skipped',
    'action_cancelled',
    'action_rejected',
    'approval_requested',
    'approval_resolved',
    'client_tool_called',
    'client_tool_settled',
  ];
  /** The same for a run that waits. */
  static readonly WAITING_EVENTS: readonly EventType[] = [
    'agent_started',
    'agent_waiting',
    'approval_requested',
    'approval_resolved',
    'client_tool_called',
    'client_tool_settled',
  ];

  readonly #run: FoldedRun;
  readonly #approvals = new Map<string, McpApproval>();
  readonly #calls = new Map<string, OpenCall>();
  readonly #media: McpContent[] = [];
  readonly #links: McpContent[] = [];
  #omittedLinks = 0;
  #inlineBytes = 0;
  #source: EventOf<'agent_started'>['data']['source'] = 'model';
  #status: Exclude<Status, 'lost'> = 'running';
  #response = '';
  #outputs: JsonObject | null = null;
  #failure: RunFailure | null = null;
  /** Of the only action of a tool's run. */
  #output: Json = null;
  #actionFailure: RunFailure | null = null;
  #updatedAt: number;

  constructor(run: FoldedRun) {
    this.#run = run;
    this.#updatedAt = run.startedAt;
  }

  /** Whether the run is one call of a tool. */
  get isTool(): boolean {
    return this.#source === 'text';
  }

  add(event: SessionEvent): void {
    this.#updatedAt = event.timestamp;
    if (endsWait(event)) this.#status = 'running';
    switch (event.type) {
      case 'agent_started':
        this.#source = event.data.source;
        return;
      case 'action_completed':
        this.#output = event.data.output;
        this.#actionFailure = null;
        return this.#addArtifacts(event);
      case 'action_failed':
        this.#actionFailure = event.data.error;
        return;
      case 'action_rejected':
        this.#actionFailure = event.data;
        return;
      case 'action_skipped':
      case 'action_cancelled':
        this.#actionFailure = { code: event.type.replace('action_', ''), message: `The call was ${event.data.reason}` };
        return;
      case 'approval_requested': {
        const { approval_id: id, type, parameters, reason, question } = event.data;
        const name = event.action_name ?? type;
        const call = callText(name, parameters);
        const approval = { approval_id: id, name, call: reason === undefined ? call : `${call} (${reason})` };
        this.#approvals.set(id, question === undefined ? approval : { ...approval, question: questionOf(question) });
        return;
      }
      case 'approval_resolved':
        this.#approvals.delete(event.data.approval_id);
        return;
      case 'client_tool_called':
        this.#calls.set(event.data.call_id, { call_id: event.data.call_id, name: event.data.name });
        return;
      case 'client_tool_settled':
        this.#calls.delete(event.data.call_id);
        return;
      case 'agent_waiting':
        this.#status = 'waiting';
        return;
      case 'agent_completed':
        this.#status = 'completed';
        this.#response = event.data.response;
        this.#outputs = event.data.outputs ?? null;
        return;
      case 'agent_failed':
        this.#status = 'failed';
        this.#failure = event.data.error;
        return;
      case 'agent_cancelled':
        this.#status = 'cancelled';
        this.#failure = { code: 'cancelled', message: event.data.reason ?? 'The run was cancelled' };
        return;
      default:
    }
  }

  /** @param why the stream ends before the run does, as an error; null: it does not */
  outcome(why: RunFailure | null = null): McpOutcome {
    const { sessionId, runId, startedAt } = this.#run;
    const isLost = why !== null && this.#status === 'running';
    return {
      session_id: sessionId,
      run_id: runId,
      status: isLost ? 'lost' : this.#status,
      created_at: startedAt,
      updated_at: this.#updatedAt,
      approvals: this.#status === 'waiting' ? [...this.#approvals.values()] : [],
      result: isLost ? this.#failed('running', why) : this.#result(),
    };
  }

  /** The same for a run whose events were not all given. */
  outcomeAt(status: RunStatus): McpOutcome {
    if (status === 'queued' || status === 'running') this.#status = 'running';
    return this.outcome();
  }

  #result(): McpResult {
    switch (this.#status) {
      case 'running':
        return this.#of([textBlock('The run goes on.')], this.#facts('running'));
      case 'waiting':
        return this.#waiting();
      case 'failed':
      case 'cancelled':
        return this.#failed(this.#status, this.#failure ?? { code: 'failed', message: 'The run has failed' });
      case 'completed':
        return this.#completed();
    }
  }

  #completed(): McpResult {
    const added = [...this.#media, ...this.#links];
    if (this.#omittedLinks > 0) added.push(textBlock(`${this.#omittedLinks} further artifacts are not listed.`));
    if (this.#source === 'model') {
      const structured = { ...this.#facts('completed'), response: this.#response };
      return this.#of([textBlock(this.#response), ...added], structured);
    }
    if (this.#source === 'text' && this.#actionFailure !== null) return this.#failed('failed', this.#actionFailure);
    const value = this.#source === 'workflow' ? (this.#outputs ?? this.#response) : this.#output;
    return this.#of([...valueBlocks(value), ...added], hasParts(value) ? null : value);
  }

  #waiting(): McpResult {
    const { sessionId, runId } = this.#run;
    const approvals = [...this.#approvals.values()];
    const lines = [
      ...approvals.map(({ approval_id: id, call, question }) =>
        question === undefined
          ? `It waits for an approval: ${call} (approval ${id})`
          : `It waits for an answer. ${question.message} (approval ${id}, of ${call})`,
      ),
      ...[...this.#calls.values()].map(
        ({ call_id: id, name }) => `It waits for the result of the client tool "${name}" (call ${id})`,
      ),
    ];
    const how = `A person decides with POST /agent/session/${sessionId}/approvals/{approval} {"decision": "approve"} or {"decision": "deny"}, or in the console. The run goes on after that; GET /agent/session/${sessionId}/runs/${runId} has its result.`;
    const text = ['The run has not ended.', ...lines, ...(approvals.length === 0 ? [] : [how])].join('\n');
    return this.#of([textBlock(text)], {
      ...this.#facts('waiting'),
      approvals: approvals.map(({ approval_id, name }) => ({ approval_id, name })),
    });
  }

  #failed(status: 'failed' | 'cancelled' | 'running', { code, message }: RunFailure): McpResult {
    const error = { code, message };
    const result = this.#of([textBlock(`${code}: ${message}`)], { ...this.#facts(status), error });
    return { ...result, isError: true };
  }

  #facts(status: Exclude<Status, 'lost'>): JsonObject {
    const { sessionId, runId } = this.#run;
    return { session_id: sessionId, run_id: runId, status };
  }

  #of(content: readonly McpContent[], structured: Json): McpResult {
    const { sessionId, runId } = this.#run;
    return {
      content,
      ...(isJsonObject(structured) ? { structuredContent: structured } : {}),
      _meta: { [RUN_META]: { session_id: sessionId, run_id: runId } },
    };
  }

  #addArtifacts(event: SessionEvent): void {
    for (const { entry, read } of this.#run.artifactsOf?.(event) ?? []) {
      const { id, name, content_type: mimeType, size_bytes: size } = entry;
      const [kind = ''] = mimeType.split('/', 1);
      const isShown = kind === 'image' || kind === 'audio';
      if (isShown && this.#inlineBytes + size <= limits.mcpInlineBytes) {
        this.#inlineBytes += size;
        this.#media.push({ type: kind, data: base64Of(read()), mimeType });
      } else if (this.#links.length < limits.mcpLinks) {
        this.#links.push({ type: 'resource_link', uri: artifactUri(this.#run.sessionId, id), name, mimeType, size });
      } else this.#omittedLinks += 1;
    }
  }
}

function questionOf({
  from,
  message,
  schema,
  url,
}: NonNullable<EventOf<'approval_requested'>['data']['question']>): NonNullable<McpApproval['question']> {
  const page = url === undefined ? '' : ` (${url})`;
  return { message: `${from} asks: ${message}${page}`, ...(schema === undefined ? {} : { schema }) };
}

/** A call as people see it. */
function callText(name: string, parameters: JsonObject | undefined): string {
  const text = `${name} ${parameters === undefined ? '(the whole call is in the approval)' : JSON.stringify(parameters)}`;
  return text.length > limits.mcpCallChars ? `${text.slice(0, limits.mcpCallChars)}…` : text;
}

/** Whether an output is content of the protocol, or has files: they are not shown as JSON. */
function hasParts(output: Json): boolean {
  return isJsonObject(output) && (Array.isArray(output['content']) || Array.isArray(output['files']));
}

/** A value as blocks of content. Files, images and sounds of it are artifacts. */
function valueBlocks(output: Json): McpContent[] {
  if (typeof output === 'string') return [textBlock(output)];
  if (!isJsonObject(output) || !hasParts(output)) return [textBlock(JSON.stringify(output))];
  const { files: _files, content, ...rest } = output;
  const own = Array.isArray(content) ? content.filter(isOwnBlock) : [];
  const hasRest = Object.keys(rest).length > 0 && !Array.isArray(content);
  return [...own, ...(hasRest ? [textBlock(JSON.stringify(rest))] : [])];
}

/** A block that is no file: text, and what a resource of the tool says. */
function isOwnBlock(block: Json): block is McpContent {
  if (!isJsonObject(block)) return false;
  return (
    (block['type'] === 'text' && typeof block['text'] === 'string' && block['name'] === undefined) ||
    (block['type'] === 'resource' && isJsonObject(block['resource']) && typeof block['resource']['uri'] === 'string')
  );
}
