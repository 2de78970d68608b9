/** Builders and a driver for the scheduler's tests: declarations in a line, commands as short texts. */
import { plainDeclaration } from '../../src/domain/action.ts';
import type { ActionDeclaration, ActionError, ActionRejection, ActionPolicy } from '../../src/domain/action.ts';
import { initialState, step } from '../../src/scheduler/step.ts';
import type { RunState } from '../../src/scheduler/step.ts';
import type { RunPolicy, SchedulerCommand, SchedulerInput } from '../../src/scheduler/types.ts';

export const MODEL: RunPolicy = {
  source: 'model',
  maxParallelActions: 5,
  maxIterations: 10,
  maxActions: 2_000,
  seconds: 3_600,
  modelCalls: 100,
  tokens: null,
  failFast: false,
  responseDefault: 'auto',
  onFailedFinal: 'continue',
};

export const TEXT: RunPolicy = { ...MODEL, source: 'text' };

export function declaration(fields: Partial<ActionDeclaration> & { readonly id: string }): ActionDeclaration {
  return plainDeclaration({ type: 'tool', mode: 'async', name: 'echo', ...fields });
}

export function policy(fields: Partial<ActionPolicy> = {}): ActionPolicy {
  return {
    effects: 'pure',
    timeoutMs: 60_000,
    retry: { maxAttempts: 3, backoff: 'exponential', delayMs: 500, maxDelayMs: 30_000 },
    concurrency: null,
    dispatch: 'eager',
    needsApproval: false,
    estimateMs: 1_000,
    refusal: null,
    ...fields,
  };
}

export function failure(fields: Partial<ActionError> = {}): ActionError {
  return { code: 'boom', message: 'it broke', retryable: false, ...fields };
}

/** An input of a step, without its time. */
export type UntimedInput = SchedulerInput extends infer Input
  ? Input extends { readonly at: number }
    ? Omit<Input, 'at'>
    : never
  : never;

/**
 * Drives one run with action ids instead of keys. Every method returns the commands of its step as
 * short texts: `start b`, `settle a failed boom`, `set_timer timeout:a#1 60000`.
 */
export class Driver {
  state: RunState = initialState();
  at = 1_000_000;
  readonly inputs: SchedulerInput[] = [];
  readonly commands: SchedulerCommand[] = [];
  /** Whether the driver confirms approvals by itself. */
  asks = true;
  #ordinal = 0;
  readonly #ids = new Map<string, string>();
  readonly #keys = new Map<string, string>();

  constructor(policy: Partial<RunPolicy> = {}) {
    this.send({ type: 'run_started', policy: { ...MODEL, ...policy } });
  }

  /** One step; all commands, unchanged. */
  send(input: UntimedInput): SchedulerCommand[] {
    const timed = { at: this.at, ...input } as SchedulerInput;
    this.inputs.push(timed);
    const { state, commands } = step(this.state, timed);
    this.state = state;
    this.commands.push(...commands);
    if (commands.some(({ type }) => type === 'start_iteration')) this.#ordinal = 0;
    // An approval is confirmed at once, unless the test sets another result.
    const asked = commands.filter(({ type }) => this.asks && type === 'ask_approval');
    const answers = asked.flatMap((command) =>
      'key' in command && command.key !== null
        ? this.send({ type: 'approval_asked', key: command.key, error: null })
        : [],
    );
    return [...commands, ...answers];
  }

  say(input: UntimedInput): string[] {
    return this.send(input).map((command) => this.text(command));
  }

  declare(fields: Partial<ActionDeclaration> & { readonly id: string }, about: Partial<ActionPolicy> = {}): string[] {
    const action = declaration({ ordinal: this.#ordinal, ...fields });
    this.#enter(action.ordinal, action.id);
    return this.say({ type: 'action_declared', action, policy: policy(about) });
  }

  refuse(fields: Partial<ActionRejection> & { readonly id: string }): string[] {
    const rejection: ActionRejection = {
      ordinal: this.#ordinal,
      type: 'tool',
      mode: 'async',
      name: 'echo',
      code: 'invalid_json',
      message: 'not JSON',
      line: 1,
      column: 1,
      excerpt: '',
      ...fields,
    };
    this.#enter(rejection.ordinal, rejection.id);
    return this.say({ type: 'action_refused', rejection });
  }

  respond(final: boolean | null, refers: readonly string[] = [], hasReferences = false): string[] {
    return this.say({ type: 'response_closed', final, refers: refers.map((id) => this.key(id)), hasReferences });
  }

  checked(found: { readonly missing?: boolean; readonly pending?: boolean } = {}): string[] {
    return this.say({ type: 'answer_checked', missing: false, pending: false, ...found });
  }

  end(fields: Partial<Extract<UntimedInput, { type: 'generation_ended' }>> = {}): string[] {
    return this.say({ type: 'generation_ended', finish: 'stop', answered: false, error: null, ...fields });
  }

  succeed(id: string, attempt = 1): string[] {
    return this.say({ type: 'attempt_succeeded', key: this.key(id), attempt });
  }

  fail(id: string, error: Partial<ActionError> = {}, attempt = 1, random = 0.5): string[] {
    return this.say({ type: 'attempt_failed', key: this.key(id), attempt, error: failure(error), random });
  }

  /** The attempt ends with a question. */
  ask(id: string, attempt = 1): string[] {
    const input = { type: 'attempt_failed', key: this.key(id), attempt, error: failure(), random: 0.5 } as const;
    return this.say({ ...input, question: true });
  }

  condition(id: string, value: boolean | string): string[] {
    const result = typeof value === 'string' ? { ok: false as const, message: value } : { ok: true as const, value };
    return this.say({ type: 'condition_evaluated', key: this.key(id), result });
  }

  judged(id: string, result: 'start' | 'ask' | { readonly error: ActionError }): string[] {
    return this.say({ type: 'policy_judged', key: this.key(id), result });
  }

  recalled(id: string, found: 'outcome' | 'nothing' | { readonly error: ActionError }): string[] {
    return this.say({ type: 'recalled', key: this.key(id), found });
  }

  /** `timeout:a#1`, `retry:a#1`, `approval:a`, `budget`. */
  fire(timer: string, random?: number): string[] {
    const [kind = '', rest] = timer.split(':');
    const [id = '', attempt] = (rest ?? '').split('#');
    const real = rest === undefined ? timer : `${kind}:${this.key(id)}${attempt === undefined ? '' : `#${attempt}`}`;
    return this.say({ type: 'timer_fired', timer: real, ...(random === undefined ? {} : { random }) });
  }

  /** Reports that an approval was requested, or why it cannot be. */
  asked(id: string, error: ActionError | null = null): string[] {
    return this.say({ type: 'approval_asked', key: this.key(id), error });
  }

  /** The call was shown to the client. */
  called(id: string): string[] {
    return this.say({ type: 'client_called', key: this.key(id) });
  }

  approve(id: string, approved = true, note: string | null = null): string[] {
    return this.say({ type: 'approval_resolved', key: this.key(id), approved, note });
  }

  cancel(reason = 'user'): string[] {
    return this.say({ type: 'cancel_requested', reason });
  }

  key(id: string): string {
    return this.#keys.get(id) ?? id;
  }

  id(key: string): string {
    return this.#ids.get(key) ?? key;
  }

  text(command: SchedulerCommand): string {
    switch (command.type) {
      case 'queue':
        return `queue ${this.id(command.key)} [${command.dependsOn.map((key) => this.id(key)).join(' ')}]`;
      case 'evaluate':
      case 'judge':
      case 'lookup':
      case 'ask_approval':
      case 'call_client':
        return `${command.type} ${this.id(command.key)}`;
      case 'start':
        return `start ${this.id(command.key)}${command.attempt === 1 ? '' : ` #${command.attempt}`}`;
      case 'abort':
        return `abort ${this.id(command.key)} ${command.reason}`;
      case 'retry':
        return `retry ${this.id(command.key)} after ${command.delayMs}`;
      case 'settle':
        return ['settle', this.id(command.key), command.status, detailOf(command)].join(' ').trim();
      case 'set_timer':
        return `set_timer ${this.#timer(command.timer)} ${command.delayMs}`;
      case 'clear_timer':
        return `clear_timer ${this.#timer(command.timer)}`;
      case 'warn':
        return `warn ${command.code}`;
      case 'start_iteration':
        return `start_iteration ${command.iteration}${command.last ? ' last' : ''}`;
      case 'check_answer':
        return `check_answer ${command.iteration}`;
      case 'complete_iteration':
        return `complete_iteration ${command.iteration}${command.final ? ' final' : ''}`;
      case 'report_plan':
        return `report_plan ${command.iteration}`;
      case 'budget_exceeded':
        return `budget_exceeded ${command.budget} ${command.used}/${command.limit}`;
      case 'end_run':
        return `end_run ${command.status}${command.error === null ? '' : ` ${command.error.code}`}`;
      case 'complete_responses':
      case 'stop_generation':
      case 'drained':
        return command.type;
    }
  }

  #timer(timer: string): string {
    const [kind, rest] = timer.split(':');
    const [key = '', attempt] = (rest ?? '').split('#');
    return rest === undefined ? timer : `${kind}:${this.id(key)}${attempt === undefined ? '' : `#${attempt}`}`;
  }

  #enter(ordinal: number, id: string): void {
    const { generation } = this.state;
    const key = `${generation?.iteration ?? 0}/${ordinal}`;
    // A second action with the same id is named `a'`.
    const taken = this.#keys.get(id)?.split('/')[0] === key.split('/')[0];
    this.#ids.set(key, taken ? `${id}'` : id);
    this.#keys.set(taken ? `${id}'` : id, key);
    this.#ordinal = ordinal + 1;
  }
}

function detailOf(command: Extract<SchedulerCommand, { type: 'settle' }>): string {
  switch (command.status) {
    case 'completed':
      return '';
    case 'failed':
      return command.error.code;
    case 'skipped':
      return command.because ?? command.reason;
    case 'cancelled':
      return command.reason;
    case 'rejected':
      return command.code;
  }
}

/** Commands without timers, which most tests ignore. */
export function withoutTimers(commands: readonly string[]): string[] {
  return commands.filter((command) => !/^(set|clear)_timer /.test(command));
}
