/**
 * A run as one JSON document (H7), folded from its events: the journal is the only source. Large parts (outputs and
 * responses) stay in the journal until they are sent.
 */
import type { ActionMode, ActionType } from '../../domain/action.ts';
import type { EventData, EventOf, EventType, SessionEvent } from '../../domain/event.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { RunStatus } from '../../domain/session.ts';
import { isWorkflowHelper, OUTPUTS } from '../../domain/workflow-actions.ts';

type ActionStatusJson = 'queued' | 'running' | 'completed' | 'failed' | 'skipped' | 'cancelled' | 'rejected';

/** Why an action has no output. */
type ActionErrorJson =
  | EventData['action_failed']['error']
  | { readonly code: 'skipped'; readonly reason: string; readonly because: string | null }
  | { readonly code: string; readonly message: string };

/** Usage of the model calls of a run. */
interface UsageJson {
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  model_calls: number;
  /** Set if an endpoint did not report the usage of a call. */
  estimated?: true;
  /** US dollars, for calls with a known price. */
  cost?: number;
}

interface ActionJson {
  id: string;
  name: string | null;
  /** Null for a rejected action without a type. */
  type: ActionType | null;
  mode: ActionMode | null;
  status: ActionStatusJson;
  /** As executed; null if it was not dispatched. For a rejected action: as declared, null if they could not be read. */
  parameters: JsonObject | null;
  /** Set if they were cut. */
  parameters_cut?: true;
  output: Json;
  error: ActionErrorJson | null;
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
  /** The outputs of a workflow by name; null until it has them. Absent for other runs. */
  readonly outputs?: JsonObject | null;
  /** Number of failed and rejected actions. */
  readonly failed_actions: number;
  /** Open approval requests; set only while the run waits for them (J8). */
  readonly approvals?: readonly {
    readonly approval_id: string;
    readonly action_id: string;
    readonly name: string | null;
    readonly sha256: string;
    readonly bytes: number;
    /** Message of the policy that asks; absent: none does, or it has no message. */
    readonly reason?: string;
    /** What the target of the action asks; absent: the action needs an approval to start. */
    readonly question?: NonNullable<EventData['approval_requested']['question']>;
  }[];
  /** Open calls of client tools, the oldest ones; absent if there are none. The run may run or have ended (C3). */
  readonly pending?: readonly {
    readonly call_id: string;
    readonly name: string;
    readonly parameters: JsonObject;
  }[];
  /** Number of further open calls. */
  readonly pending_more?: number;
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
  readonly usage: Readonly<UsageJson>;
  readonly iterations: number;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly started_at: number;
  readonly ended_at: number | null;
}

/** The document with event numbers in place of the parts that stay in the journal. */
export type RunOutline = Omit<
  RunResult,
  | 'session_id'
  | 'run_id'
  | 'status'
  | 'responses'
  | 'actions'
  | 'outputs'
  | 'pending'
  | 'pending_more'
  | 'started_at'
  | 'ended_at'
> & {
  /** The event with the outputs of a workflow; null if there is none. */
  readonly outputsSeq: number | null;
  /** The events of the open calls. */
  readonly pendingSeqs: readonly number[];
  readonly responses: readonly { readonly seq: number; readonly final: boolean | null }[];
  readonly actions: readonly {
    readonly action: Readonly<ActionOutline>;
    readonly outputSeq: number | null;
    /** The event with the parameters; null if there are none. */
    readonly parametersSeq: number | null;
  }[];
};

/**
 * A run's answer: its final response, else its last one, else the bare text of its last generation. A response of a
 * generation that did not end the run is not final. A response that replaces another one takes its place
 * (P10, P13), and one that was cut off is not the answer beside a whole one (P15).
 */
export class RunAnswer {
  /** The events that it is derived from. */
  static readonly EVENTS: readonly EventType[] = ['response_completed', 'text_completed', 'iteration_completed'];

  #final: Answer | null = null;
  #last: Answer | null = null;
  #bare: string[] = [];
  #iteration = 0;
  /** The latest generation with a response. */
  #responded = 0;

  add(event: SessionEvent): void {
    switch (event.type) {
      case 'response_completed':
        return this.#respond(event);
      case 'text_completed':
        // The text of earlier generations only accompanied their actions (P11).
        if (event.iteration !== this.#iteration) this.#bare = [];
        this.#iteration = event.iteration;
        this.#bare.push(event.data.content);
        return;
      case 'iteration_completed':
        if (!event.data.final) this.#final = null;
        else if (this.#responded < event.iteration && this.#iteration === event.iteration) this.#last = null;
        return;
      default:
        return;
    }
  }

  #respond({ iteration, data: { content, segment, final, completes, cut } }: EventOf<'response_completed'>): void {
    const answer = { segment, content };
    // Without a whole response, it is what the run said last.
    if (cut === true) return void (this.#last ??= answer);
    this.#responded = Math.max(this.#responded, iteration);
    const replaces = (earlier: Answer | null): boolean => completes === undefined || completes === earlier?.segment;
    if (replaces(this.#last)) this.#last = answer;
    if (final === true && replaces(this.#final)) this.#final = answer;
  }

  get text(): string {
    return (this.#final ?? this.#last)?.content ?? this.#bare.join('\n\n');
  }
}

interface Answer {
  readonly segment: number;
  readonly content: string;
}

/** Folds a run's events, oldest first. Also works for an unfinished run. */
export class RunFold {
  readonly #status: RunStatus;
  readonly #actions: OutlinedAction[] = [];
  /** The action of an id, by iteration: ids may be reused in a later generation (P6). */
  readonly #accepted = new Map<string, OutlinedAction>();
  readonly #answer = new RunAnswer();
  readonly #responses: { seq: number; segment: number; final: boolean | null }[] = [];
  readonly #warnings: { code: string; message: string }[] = [];
  readonly #approvals = new Map<string, NonNullable<RunResult['approvals']>[number]>();
  /** The event of each open call of a client tool, by its action. */
  readonly #calls = new Map<string, number>();
  #outputsSeq: number | null = null;
  readonly #usage: UsageJson = {
    prompt_tokens: 0,
    completion_tokens: 0,
    cached_tokens: 0,
    model_calls: 0,
  };
  #atWork = 0;
  #iterations = 0;
  #error: RunResult['error'] = null;

  constructor(status: RunStatus) {
    this.#status = status;
  }

  /** Whether every action has ended: nothing more follows in an ended run. */
  get settled(): boolean {
    return this.#atWork === 0;
  }

  /** Number of actions, including those that the runtime added to a workflow. */
  get actionCount(): number {
    return this.#actions.length;
  }

  get outline(): RunOutline {
    const hasFailed = ({ action: { status } }: OutlinedAction): boolean => status === 'failed' || status === 'rejected';
    return {
      response: this.#answer.text,
      responses: this.#responses.map(({ seq, final }) => ({ seq, final })),
      actions: this.#actions.filter((outlined) => hasFailed(outlined) || !isWorkflowHelper(outlined.action.name)),
      outputsSeq: this.#outputsSeq,
      pendingSeqs: [...this.#calls.values()],
      failed_actions: this.#actions.filter(hasFailed).length,
      ...(this.#status === 'waiting' && this.#approvals.size > 0 ? { approvals: [...this.#approvals.values()] } : {}),
      warnings: this.#warnings,
      usage: this.#usage,
      iterations: this.#iterations,
      error: this.#error,
    };
  }

  add(event: SessionEvent): void {
    this.#iterations = Math.max(this.#iterations, event.iteration);
    switch (event.type) {
      case 'action_queued':
        // A second declaration adds the parameters (P6).
        this.#actionOf(event).declaredSeq = event.seq;
        break;
      case 'approval_requested': {
        const { approval_id, sha256, bytes, reason, question } = event.data;
        this.#approvals.set(approval_id, {
          approval_id,
          action_id: event.action_id,
          name: event.action_name ?? null,
          sha256,
          bytes,
          ...(reason === undefined ? {} : { reason }),
          ...(question === undefined ? {} : { question }),
        });
        break;
      }
      case 'approval_resolved':
        this.#approvals.delete(event.data.approval_id);
        break;
      case 'client_tool_called':
        this.#calls.set(`${event.iteration}/${event.action_id}`, event.seq);
        break;
      case 'client_tool_settled':
        this.#calls.delete(`${event.iteration}/${event.action_id}`);
        break;
      case 'action_started': {
        const outlined = this.#actionOf(event);
        const { action } = outlined;
        action.status = 'running';
        action.attempts = event.data.attempt;
        action.started_at ??= event.timestamp;
        outlined.parametersSeq ??= event.data.parameters === undefined ? outlined.declaredSeq : event.seq;
        break;
      }
      case 'action_completed':
        this.#complete(event);
        if (event.action_id === OUTPUTS && isWorkflowHelper(event.action_name)) this.#outputsSeq = event.seq;
        break;
      case 'action_failed':
        this.#fail(event);
        break;
      case 'action_skipped':
        this.#end(event, 'skipped').action.error = {
          code: 'skipped',
          reason: event.data.reason,
          because: event.data.because,
        };
        break;
      case 'action_cancelled':
        this.#end(event, 'cancelled').action.error = { code: 'cancelled', message: event.data.reason };
        break;
      case 'action_rejected':
        this.#reject(event);
        break;
      case 'response_completed':
        this.#answer.add(event);
        this.#respond(event);
        break;
      case 'text_completed':
      case 'iteration_completed':
        this.#answer.add(event);
        break;
      case 'warning':
        this.#warnings.push({ code: event.data.code, message: event.data.message });
        break;
      case 'usage':
        this.#use(event.data);
        break;
      case 'agent_failed':
        this.#error = event.data.error;
        break;
      default:
        break;
    }
  }

  #respond({ seq, data: { segment, final, completes } }: EventOf<'response_completed'>): void {
    const response = { seq: seq ?? 0, segment, final };
    const replaced = completes === undefined ? -1 : this.#responses.findIndex((other) => other.segment === completes);
    if (replaced < 0) this.#responses.push(response);
    else this.#responses[replaced] = response;
  }

  #use({ prompt_tokens, completion_tokens, cached_tokens, estimated, cost }: EventData['usage']): void {
    const usage = this.#usage;
    usage.prompt_tokens += prompt_tokens;
    usage.completion_tokens += completion_tokens;
    usage.cached_tokens += cached_tokens;
    usage.model_calls += 1;
    if (estimated === true) usage.estimated = true;
    if (cost !== undefined) usage.cost = Math.round(((usage.cost ?? 0) + cost) * 1e9) / 1e9;
  }

  #actionOf(event: ActionEvent): OutlinedAction {
    const key = `${event.iteration}/${event.action_id}`;
    // A rejected action was never queued: another action with its id has a separate row.
    const known = event.type === 'action_rejected' ? undefined : this.#accepted.get(key);
    if (known !== undefined) return known;
    const { type, mode } = hasKind(event) ? event.data : { type: null, mode: null };
    const fresh: OutlinedAction = {
      action: {
        id: event.action_id,
        name: event.action_name ?? null,
        type,
        mode,
        status: 'queued',
        error: null,
        attempts: 0,
        queued_at: event.timestamp,
        started_at: null,
        ended_at: null,
      },
      outputSeq: null,
      declaredSeq: event.type === 'action_queued' ? event.seq : null,
      parametersSeq: null,
    };
    this.#atWork += 1;
    this.#actions.push(fresh);
    if (event.type !== 'action_rejected') this.#accepted.set(key, fresh);
    return fresh;
  }

  #complete(event: EventOf<'action_completed'>): void {
    const outlined = this.#end(event, 'completed');
    outlined.outputSeq = event.seq;
    // The outcome of an equal action was reused: this one was not started.
    outlined.parametersSeq ??= outlined.declaredSeq;
  }

  #reject(event: EventOf<'action_rejected'>): void {
    const outlined = this.#end(event, 'rejected');
    const { code, message, parameters } = event.data;
    outlined.action.error = { code, message };
    if (parameters !== undefined) outlined.parametersSeq = event.seq;
  }

  #fail(event: EventOf<'action_failed'>): void {
    const { action } = this.#end(event, 'failed');
    action.error = event.data.error;
    // The failure of a group of steps, under the group's id.
    if (isWorkflowHelper(action.name)) action.name = null;
  }

  #end(event: ActionEvent, status: ActionStatusJson): OutlinedAction {
    const outlined = this.#actionOf(event);
    const { action } = outlined;
    if (action.ended_at === null) this.#atWork -= 1;
    action.status = status;
    action.ended_at = event.timestamp;
    if (status !== 'rejected') this.#calls.delete(`${event.iteration}/${event.action_id}`);
    // A request that has expired is no longer open.
    if (status !== 'rejected')
      for (const [id, { action_id: asked }] of this.#approvals)
        if (asked === event.action_id) this.#approvals.delete(id);
    return outlined;
  }
}

type ActionOutline = Omit<ActionJson, 'output' | 'parameters' | 'parameters_cut'>;

interface OutlinedAction {
  readonly action: ActionOutline;
  /** The event with its output. */
  outputSeq: number | null;
  /** The event with its declared parameters. */
  declaredSeq: number | null;
  /** The event with its executed parameters. */
  parametersSeq: number | null;
}

/** An event that begins or ends a row of the document. */
type ActionEvent = EventOf<
  | 'action_queued'
  | 'action_started'
  | 'action_completed'
  | 'action_failed'
  | 'action_skipped'
  | 'action_cancelled'
  | 'action_rejected'
>;

function hasKind(event: ActionEvent): event is EventOf<'action_queued' | 'action_rejected'> {
  return event.type === 'action_queued' || event.type === 'action_rejected';
}
