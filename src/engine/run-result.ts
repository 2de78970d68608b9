/** A finished run as one JSON document (H7), folded from its events: the journal is the only source. */
import type { Json, JsonObject } from '../domain/json.ts';
import type { SessionEvent } from '../domain/event.ts';
import type { RunStatus } from '../domain/session.ts';

type ActionStatusJson = 'queued' | 'running' | 'completed' | 'failed' | 'skipped' | 'cancelled' | 'rejected';

interface ActionJson {
  id: string;
  name: string | null;
  type: Json;
  mode: Json;
  status: ActionStatusJson;
  output: Json;
  error: Json;
  attempts: number;
  queued_at: number | null;
  started_at: number | null;
  ended_at: number | null;
}

export interface RunResult {
  readonly session_id: string;
  readonly run_id: string;
  readonly status: RunStatus;
  readonly response: string;
  readonly responses: readonly { readonly content: string; readonly final: boolean | null }[];
  readonly actions: readonly Readonly<ActionJson>[];
  /** What a person is asked; there only while the run waits for answers (J8). */
  readonly approvals?: readonly {
    readonly approval_id: Json;
    readonly action_id: string;
    readonly name: string | null;
    readonly sha256: Json;
    readonly bytes: Json;
  }[];
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
  readonly usage: JsonObject;
  readonly iterations: number;
  readonly error: Json;
  readonly started_at: number;
  readonly ended_at: number | null;
}

interface RunFacts {
  readonly sessionId: string;
  readonly runId: string;
  readonly status: RunStatus;
  readonly startedAt: number;
  readonly endedAt: number | null;
}

/** Folds a run's journaled events, oldest first. Works as well for a run that is still going on. */
export function foldRun(facts: RunFacts, events: Iterable<SessionEvent>): RunResult {
  const actions: ActionJson[] = [];
  /** The action that an id stands for, by iteration: ids may come again in a later generation (P6). */
  const accepted = new Map<string, ActionJson>();
  const responses: { content: string; final: boolean | null }[] = [];
  let bareText: string[] = [];
  let bareIteration = 0;
  const warnings: { code: string; message: string }[] = [];
  const approvals = new Map<Json, NonNullable<RunResult['approvals']>[number]>();
  const usage: {
    prompt_tokens: number;
    completion_tokens: number;
    cached_tokens: number;
    model_calls: number;
    /** There where an endpoint did not say what a call used. */
    estimated?: true;
    cost?: number;
  } = {
    prompt_tokens: 0,
    completion_tokens: 0,
    cached_tokens: 0,
    model_calls: 0,
  };
  let iterations = 0;
  let error: Json = null;

  const actionOf = (event: SessionEvent): ActionJson => {
    const key = `${event.iteration}/${event.action_id}`;
    // What is rejected was never queued: whatever else has its id is another action, with a row of its own.
    const known = event.type === 'action_rejected' ? undefined : accepted.get(key);
    if (known !== undefined) return known;
    const fresh: ActionJson = {
      id: event.action_id ?? '',
      name: event.action_name ?? null,
      type: event.data['type'] ?? null,
      mode: event.data['mode'] ?? null,
      status: 'queued',
      output: null,
      error: null,
      attempts: 0,
      queued_at: event.timestamp,
      started_at: null,
      ended_at: null,
    };
    actions.push(fresh);
    if (event.type !== 'action_rejected') accepted.set(key, fresh);
    return fresh;
  };
  const end = (event: SessionEvent, status: ActionStatusJson): ActionJson => {
    const action = actionOf(event);
    action.status = status;
    action.ended_at = event.timestamp;
    // One that nobody answered in time is not asked any more.
    if (status !== 'rejected')
      for (const [id, { action_id: asked }] of approvals) if (asked === event.action_id) approvals.delete(id);
    return action;
  };

  for (const event of events) {
    const { data } = event;
    iterations = Math.max(iterations, event.iteration);
    switch (event.type) {
      case 'action_queued':
        actionOf(event);
        break;
      case 'approval_requested': {
        const id = data['approval_id'] ?? null;
        approvals.set(id, {
          approval_id: id,
          action_id: event.action_id ?? '',
          name: event.action_name ?? null,
          sha256: data['sha256'] ?? null,
          bytes: data['bytes'] ?? null,
        });
        break;
      }
      case 'approval_resolved':
        approvals.delete(data['approval_id'] ?? null);
        break;
      case 'action_started': {
        const action = actionOf(event);
        action.status = 'running';
        action.attempts = Number(data['attempt'] ?? 1);
        action.started_at ??= event.timestamp;
        break;
      }
      case 'action_completed':
        end(event, 'completed').output = data['output'] ?? null;
        break;
      case 'action_failed':
        end(event, 'failed').error = data['error'] ?? null;
        break;
      case 'action_skipped':
        end(event, 'skipped').error = {
          code: 'skipped',
          reason: data['reason'] ?? null,
          because: data['because'] ?? null,
        };
        break;
      case 'action_cancelled':
        end(event, 'cancelled').error = { code: 'cancelled', message: data['reason'] ?? null };
        break;
      case 'action_rejected':
        end(event, 'rejected').error = { code: data['code'] ?? null, message: data['message'] ?? null };
        break;
      case 'response_completed':
        responses.push({ content: String(data['content'] ?? ''), final: finality(data['final']) });
        break;
      case 'text_completed':
        // Earlier generations spoke beside their actions (P11).
        if (event.iteration !== bareIteration) bareText = [];
        bareIteration = event.iteration;
        bareText.push(String(data['content'] ?? ''));
        break;
      case 'warning':
        warnings.push({ code: String(data['code']), message: String(data['message']) });
        break;
      case 'usage':
        usage.prompt_tokens += Number(data['prompt_tokens'] ?? 0);
        usage.completion_tokens += Number(data['completion_tokens'] ?? 0);
        usage.cached_tokens += Number(data['cached_tokens'] ?? 0);
        usage.model_calls += 1;
        if (data['estimated'] === true) usage.estimated = true;
        if (typeof data['cost'] === 'number') {
          usage.cost = Math.round(((usage.cost ?? 0) + data['cost']) * 1e9) / 1e9;
        }
        break;
      case 'agent_failed':
        error = data['error'] ?? null;
        break;
      default:
        break;
    }
  }
  const final = responses.findLast((response) => response.final === true) ?? responses.at(-1);
  return {
    session_id: facts.sessionId,
    run_id: facts.runId,
    status: facts.status,
    response: final?.content ?? bareText.join('\n\n'),
    responses,
    actions,
    ...(facts.status === 'waiting' && approvals.size > 0 ? { approvals: [...approvals.values()] } : {}),
    warnings,
    usage,
    iterations,
    error,
    started_at: facts.startedAt,
    ended_at: facts.endedAt,
  };
}

function finality(value: Json | undefined): boolean | null {
  return typeof value === 'boolean' ? value : null;
}
