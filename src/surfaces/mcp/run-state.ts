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
import type { EventOf, EventType, SessionEvent } from '../../domain/event.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RunStatus } from '../../domain/session.ts';
import { foldOutline } from '../../view/reduce.ts';
import { emptyView } from '../../view/run-view.ts';
import type { Failure, RunView } from '../../view/run-view.ts';
import type { FoldedRun } from '../surface.ts';
import { RUN_META, textBlock } from './outcome.ts';
import type { McpApproval, McpContent, McpOutcome, McpResult } from './outcome.ts';
import { artifactUri } from './uri.ts';

type Status = McpOutcome['status'];

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
    'action_completed',
    'action_failed',
    'action_skipped',
    'action_cancelled',
    'approval_requested',
    'approval_resolved',
    'client_tool_called',
    'client_tool_settled',
  ];

  readonly #run: FoldedRun;
  readonly #media: McpContent[] = [];
  readonly #links: McpContent[] = [];
  #omittedLinks = 0;
  #inlineBytes = 0;
  #view = emptyView('');
  /** Of the only action of a tool's run. */
  #output: Json = null;
  #updatedAt: number;

  constructor(run: FoldedRun) {
    this.#run = run;
    this.#updatedAt = run.startedAt;
  }

  /** Whether the run is one call of a tool. */
  get isTool(): boolean {
    return this.#view.source === 'text';
  }

  add(event: SessionEvent): void {
    this.#updatedAt = event.timestamp;
    this.#view = foldOutline(this.#view, event);
    if (event.type === 'action_completed') {
      this.#output = event.data.output;
      this.#addArtifacts(event);
    }
  }

  /** @param why the stream ends before the run does, as an error; null: it does not */
  outcome(why: Failure | null = null): McpOutcome {
    const { sessionId, runId, startedAt } = this.#run;
    const status = this.#status;
    const isLost = why !== null && status === 'running';
    return {
      session_id: sessionId,
      run_id: runId,
      status: isLost ? 'lost' : status,
      created_at: startedAt,
      updated_at: this.#updatedAt,
      approvals: status === 'waiting' ? this.#view.approvals.map(approvalOf) : [],
      result: isLost ? this.#failed('running', why) : this.#result(),
    };
  }

  /** The same for a run whose events were not all given. */
  outcomeAt(status: RunStatus): McpOutcome {
    if (status === 'queued' || status === 'running') this.#view = { ...this.#view, status: 'running' };
    return this.outcome();
  }

  get #status(): Exclude<Status, 'lost'> {
    const { status } = this.#view;
    return status === 'queued' ? 'running' : status;
  }

  #result(): McpResult {
    const { error, reason } = this.#view;
    const status = this.#status;
    switch (status) {
      case 'running':
        return this.#of([textBlock('The run goes on.')], this.#facts('running'));
      case 'waiting':
        return this.#waiting();
      case 'failed':
        return this.#failed(status, error ?? { code: 'failed', message: 'The run has failed' });
      case 'cancelled':
        return this.#failed(status, { code: 'cancelled', message: reason ?? 'The run was cancelled' });
      case 'completed':
        return this.#completed();
    }
  }

  #completed(): McpResult {
    const added = [...this.#media, ...this.#links];
    if (this.#omittedLinks > 0) added.push(textBlock(`${this.#omittedLinks} further artifacts are not listed.`));
    const { source, outputs, actions } = this.#view;
    const response = this.#view.response ?? '';
    if (source === 'model') {
      const structured = { ...this.#facts('completed'), response };
      return this.#of([textBlock(response), ...added], structured);
    }
    const failure = source === 'text' ? failureOf(actions.at(-1)) : null;
    if (failure !== null) return this.#failed('failed', failure);
    const value = source === 'workflow' ? (outputs ?? response) : this.#output;
    return this.#of([...valueBlocks(value), ...added], hasParts(value) ? null : value);
  }

  #waiting(): McpResult {
    const { sessionId, runId } = this.#run;
    const approvals = this.#view.approvals.map(approvalOf);
    const lines = [
      ...approvals.map(({ approval_id: id, call, question }) =>
        question === undefined
          ? `It waits for an approval: ${call} (approval ${id})`
          : `It waits for an answer. ${question.message} (approval ${id}, of ${call})`,
      ),
      ...this.#view.calls.map(
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

  #failed(status: 'failed' | 'cancelled' | 'running', { code, message }: Failure): McpResult {
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

/** Why the only action of a tool's run has no output; null: it has one. */
function failureOf(action: RunView['actions'][number] | undefined): Failure | null {
  if (action === undefined) return null;
  const { status, error, skipped } = action;
  if (status !== 'skipped' && status !== 'cancelled') return error;
  return { code: status, message: `The call was ${skipped?.reason ?? error?.message ?? status}` };
}

function approvalOf(asked: RunView['approvals'][number]): McpApproval {
  const { approval_id: id, type, parameters, reason, question } = asked;
  const name = asked.name ?? type;
  const call = callText(name, parameters);
  const approval = { approval_id: id, name, call: reason === undefined ? call : `${call} (${reason})` };
  return question === undefined ? approval : { ...approval, question: questionOf(question) };
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
