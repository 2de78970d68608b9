/**
 * Simulates the engine and the outside world for the scheduler, under a virtual clock: streams scripted
 * generations, runs attempts with scripted latencies and outcomes, fires timers, answers approvals.
 *
 * Checks the invariants of every moment during the simulation (slots, targets, types, idle slots, dependencies,
 * one settlement each). Properties of a whole run are checked with the trace.
 */
import type { ActionDeclaration, ActionPolicy } from '../../src/domain/action.ts';
import type { FinishReason } from '../../src/domain/ports/model.ts';
import { before, needsSlot } from '../../src/scheduler/ready.ts';
import type { ActionNode } from '../../src/scheduler/state.ts';
import { initialState, step } from '../../src/scheduler/step.ts';
import type { RunState } from '../../src/scheduler/step.ts';
import type { RunPolicy, SchedulerCommand, SchedulerInput } from '../../src/scheduler/types.ts';
import { MODEL, declaration, failure, policy } from './scheduler-kit.ts';
import type { UntimedInput } from './scheduler-kit.ts';

/** The behaviour of an attempt: `late` reports long after its abort, `hang` never reports, `asks` ends with a question. */
export interface AttemptScript {
  readonly latencyMs: number;
  readonly outcome: 'ok' | 'fatal' | 'retryable' | 'overloaded' | 'before_dispatch' | 'hang' | 'late' | 'asks';
}

export interface ActionScript {
  readonly fields: Partial<ActionDeclaration> & { readonly id: string };
  readonly about: Partial<ActionPolicy>;
  /** By attempt; the last one applies to all later attempts. */
  readonly attempts: readonly AttemptScript[];
  readonly condition: boolean | null;
  readonly approval: 'yes' | 'no' | 'never' | 'unasked';
  /** What the policies say, if the action is judged. */
  readonly judged?: 'start' | 'ask' | 'deny';
  /** The result of an outcome lookup, if the policy requests one. */
  readonly recalled?: 'outcome' | 'nothing' | 'refused';
  /** The share of its reserve that a child spends. */
  readonly spends?: number;
}

export type ItemScript =
  | { readonly type: 'action'; readonly gapMs: number; readonly action: ActionScript }
  | { readonly type: 'refusal'; readonly gapMs: number; readonly id: string }
  | {
      readonly type: 'response';
      readonly gapMs: number;
      readonly final: boolean | null;
      readonly refers: readonly string[];
    };

export interface GenerationScript {
  readonly items: readonly ItemScript[];
  readonly finish: FinishReason;
  /** Usage of its model call. */
  readonly usage?: { readonly tokens: number; readonly cost: number };
}

export interface World {
  readonly policy: Partial<RunPolicy>;
  readonly generations: readonly GenerationScript[];
  readonly cancelAtMs: number | null;
}

export interface Trace {
  readonly inputs: readonly SchedulerInput[];
  readonly commands: readonly (readonly SchedulerCommand[])[];
  readonly state: RunState;
  /** Every key that was declared and not ignored as a duplicate. */
  readonly declared: readonly string[];
  /** Times as positions in the flat list of commands. */
  readonly startedAt: ReadonlyMap<string, number>;
  readonly settledAt: ReadonlyMap<string, number>;
  readonly endedAtMs: number;
}

const MAX_EVENTS = 20_000;

/** @throws Error with the violated property */
export function simulate(world: World): Trace {
  return new Simulator(world).play();
}

class Simulator {
  readonly #world: World;
  #state: RunState = initialState();
  #now = 0;
  #sequence = 0;
  readonly #events: { at: number; sequence: number; happen: () => void }[] = [];
  readonly #inputs: SchedulerInput[] = [];
  readonly #commands: SchedulerCommand[][] = [];
  readonly #declared: string[] = [];
  readonly #startedAt = new Map<string, number>();
  readonly #settledAt = new Map<string, number>();
  readonly #scripts = new Map<string, ActionScript>();
  readonly #running = new Map<string, number>();
  readonly #approved = new Set<string>();
  /** What the policies have said, and about which declaration. */
  readonly #judged = new Map<
    string,
    { readonly result: string; readonly declaration: ActionDeclaration | undefined }
  >();
  readonly #queued = new Set<string>();
  readonly #timers = new Map<string, number>();
  readonly #exceeded = new Set<string>();
  #lastGeneration = false;
  #position = 0;
  #generation = 0;
  #iterationOpen = false;
  #ended = false;
  #drained = false;
  #cancelled = false;

  constructor(world: World) {
    this.#world = world;
  }

  play(): Trace {
    this.#input({ type: 'run_started', policy: { ...MODEL, ...this.#world.policy } });
    const { cancelAtMs } = this.#world;
    if (cancelAtMs !== null) this.#after(cancelAtMs, () => this.#cancel());
    for (let played = 0; !this.#drained; played += 1) {
      if (played > MAX_EVENTS) this.#fail('the run does not end');
      const event = this.#events.shift();
      if (event === undefined) this.#fail('nothing more can happen, and the run has not ended');
      else {
        this.#now = Math.max(this.#now, event.at);
        event.happen();
      }
    }
    const endedAtMs = this.#now;
    // Pending inputs arrive after the end and must change nothing.
    for (const event of this.#events.slice(0, 50)) event.happen();
    if (this.#running.size > 0) this.#fail(`still running at the end: ${[...this.#running.keys()].join(', ')}`);
    if (this.#timers.size > 0) this.#fail(`timers left at the end: ${[...this.#timers.keys()].join(', ')}`);
    return {
      inputs: this.#inputs,
      commands: this.#commands,
      state: this.#state,
      declared: this.#declared,
      startedAt: this.#startedAt,
      settledAt: this.#settledAt,
      endedAtMs,
    };
  }

  #after(delayMs: number, happen: () => void): void {
    const event = { at: this.#now + delayMs, sequence: this.#sequence++, happen };
    const place = this.#events.findIndex((other) => other.at > event.at);
    if (place < 0) this.#events.push(event);
    else this.#events.splice(place, 0, event);
  }

  #cancel(): void {
    this.#cancelled = true;
    this.#input({ type: 'cancel_requested', reason: 'user' });
  }

  #input(input: UntimedInput): void {
    const timed = { at: this.#now, ...input } as SchedulerInput;
    const wasDrained = this.#drained;
    this.#inputs.push(timed);
    const { state, commands } = step(this.#state, timed);
    this.#state = state;
    this.#commands.push(commands);
    if (wasDrained && commands.length > 0) this.#fail(`commands after drained: ${commands[0]?.type}`);
    for (const command of commands) this.#obey(command);
    this.#look();
  }

  #obey(command: SchedulerCommand): void {
    this.#position += 1;
    switch (command.type) {
      case 'queue':
        if (this.#queued.has(command.key)) this.#fail(`queued twice: ${command.key}`);
        this.#queued.add(command.key);
        return;
      case 'evaluate': {
        const condition = this.#script(command.key).condition;
        const { key } = command;
        const result =
          condition === null ? { ok: false as const, message: 'no' } : { ok: true as const, value: condition };
        return this.#after(0, () => this.#input({ type: 'condition_evaluated', key, result }));
      }
      case 'ask_approval': {
        const { approval } = this.#script(command.key);
        const { key, attempt } = command;
        if (attempt > 0 && this.#running.get(key) !== attempt) this.#fail(`a question without its attempt: ${key}`);
        if (attempt === 0 && this.#startedAt.has(key)) this.#fail(`approval of a started action: ${key}`);
        this.#running.delete(key);
        this.#after(0, () =>
          this.#input({ type: 'approval_asked', key, error: approval === 'unasked' ? failure() : null }),
        );
        if (approval === 'never') return;
        return this.#after(5_000, () => {
          if (approval === 'yes') this.#approved.add(key);
          this.#input({ type: 'approval_resolved', key, approved: approval === 'yes', note: null });
        });
      }
      case 'judge': {
        const { judged = 'start' } = this.#script(command.key);
        const { key } = command;
        if (this.#startedAt.has(key)) this.#fail(`judged after its start: ${key}`);
        const result = judged === 'deny' ? { error: failure({ code: 'policy_denied' }) } : judged;
        const seen = this.#state.byKey.get(key)?.declaration;
        return this.#after(judged === 'ask' ? 0 : 2, () => {
          this.#judged.set(key, { result: judged, declaration: seen });
          this.#input({ type: 'policy_judged', key, result });
        });
      }
      case 'lookup': {
        const { recalled = 'nothing' } = this.#script(command.key);
        const { key } = command;
        const found = recalled === 'refused' ? { error: failure() } : recalled;
        return this.#after(recalled === 'nothing' ? 3 : 0, () => this.#input({ type: 'recalled', key, found }));
      }
      case 'start':
        return this.#start(command);
      case 'abort':
        if (this.#running.get(command.key) !== command.attempt) this.#fail(`aborted what does not run: ${command.key}`);
        this.#running.delete(command.key);
        return;
      case 'retry':
        this.#running.delete(command.key);
        return;
      case 'settle':
        return this.#settle(command);
      case 'set_timer':
        return this.#setTimer(command.timer, command.delayMs);
      case 'clear_timer':
        this.#timers.delete(command.timer);
        return;
      case 'stop_generation':
        return this.#after(1, () => this.#endGeneration('abort'));
      case 'start_iteration':
        if (this.#iterationOpen || this.#ended) this.#fail(`iteration ${command.iteration} starts too early`);
        if (this.#lastGeneration) this.#fail(`iteration ${command.iteration} comes after the last one`);
        if (this.#exceeded.size > 0 && !command.last) this.#fail(`iteration ${command.iteration} has no budget`);
        this.#lastGeneration = command.last;
        this.#iterationOpen = true;
        return this.#stream();
      case 'complete_iteration':
        if (!this.#iterationOpen) this.#fail(`iteration ${command.iteration} completes twice`);
        this.#iterationOpen = false;
        return;
      case 'end_run':
        if (this.#ended) this.#fail('the run ends twice');
        if (command.status === 'waiting') return;
        if (this.#iterationOpen) this.#fail('the run ends inside an iteration');
        this.#ended = true;
        return;
      case 'drained':
        if (!this.#ended || this.#drained) this.#fail('drained at the wrong time');
        this.#drained = true;
        return;
      case 'budget_exceeded':
        if (this.#exceeded.has(command.budget)) this.#fail(`the budget of ${command.budget} is exceeded twice`);
        this.#exceeded.add(command.budget);
        return;
      case 'warn':
      case 'report_plan':
        return;
    }
  }

  #start({ key, attempt, budget }: Extract<SchedulerCommand, { type: 'start' }>): void {
    if (this.#cancelled) this.#fail(`started after a cancel: ${key}`);
    if (!this.#queued.has(key)) this.#fail(`started before it was queued: ${key}`);
    if (this.#settledAt.has(key)) this.#fail(`started after it had settled: ${key}`);
    if (this.#running.has(key)) this.#fail(`started while it runs: ${key}`);
    const node = this.#node(key);
    const { dependencies, declaration: action } = node;
    if (node.policy.judged !== undefined) {
      const judged = this.#judged.get(key);
      if (judged === undefined || judged.result === 'deny') this.#fail(`${key} started, and no policy allowed it`);
      if (judged?.declaration !== action) this.#fail(`${key} started with parameters that were not judged`);
      if (judged?.result === 'ask' && !this.#approved.has(key)) this.#fail(`${key} started without its approval`);
    }
    const open = dependencies.filter((dependency) => !this.#settledAt.has(dependency.key));
    const good = dependencies.filter((dependency) => dependency.satisfied);
    const succeeded = dependencies.some((dependency) => dependency.settlement?.status === 'completed');
    if (action.waitForAll) {
      if (open.length > 0) this.#fail(`${key} started before its dependency ${open[0]?.key}`);
      if (good.length < dependencies.length) this.#fail(`${key} started though a dependency ended badly`);
    } else if (dependencies.length > 0 && !succeeded && (open.length > 0 || good.length === 0)) {
      this.#fail(`${key} started before any of its dependencies succeeded`);
    }
    if (attempt === 1) this.#startedAt.set(key, this.#position);
    this.#running.set(key, attempt);
    const { attempts } = this.#script(key);
    const script = attempts[Math.min(attempt, attempts.length) - 1];
    if (script === undefined || script.outcome === 'hang') return;
    const latencyMs = script.outcome === 'late' ? script.latencyMs + 100_000 : script.latencyMs;
    const { spends = 0 } = this.#script(key);
    const spent =
      budget === null
        ? {}
        : {
            spent: {
              modelCalls: Math.floor(budget.modelCalls * spends),
              tokens: Math.floor((budget.tokens ?? 0) * spends),
              cost: (budget.cost ?? 0) * spends,
              actions: Math.floor(budget.actions * spends),
            },
          };
    this.#after(latencyMs, () => {
      if (script.outcome === 'ok' || script.outcome === 'late') {
        this.#input({ type: 'attempt_succeeded', key, attempt, ...spent });
      } else {
        const error = failure({
          retryable: script.outcome !== 'fatal',
          ...(script.outcome === 'before_dispatch' ? { beforeDispatch: true } : {}),
          ...(script.outcome === 'overloaded' ? { overloaded: true } : {}),
        });
        const asks = script.outcome === 'asks' ? { question: true as const } : {};
        this.#input({ type: 'attempt_failed', key, attempt, error, random: 0.25, ...spent, ...asks });
      }
    });
  }

  #settle(command: Extract<SchedulerCommand, { type: 'settle' }>): void {
    const { key } = command;
    if (this.#settledAt.has(key)) this.#fail(`settled twice: ${key}`);
    if (!this.#declared.includes(key)) this.#fail(`settled without having been declared: ${key}`);
    if (command.status === 'rejected' ? this.#queued.has(key) : !this.#queued.has(key)) {
      this.#fail(`${command.status} with the wrong queueing: ${key}`);
    }
    this.#settledAt.set(key, this.#position);
    this.#running.delete(key);
  }

  #setTimer(timer: string, delayMs: number): void {
    const sequence = this.#sequence;
    this.#timers.set(timer, sequence);
    this.#after(delayMs, () => {
      if (this.#timers.get(timer) !== sequence) return;
      this.#timers.delete(timer);
      this.#input({ type: 'timer_fired', timer, random: 0.75 });
    });
  }

  #stream(): void {
    const script = this.#world.generations[this.#generation];
    this.#generation += 1;
    const iteration = this.#generation;
    const current = (): boolean => this.#state.generation?.iteration === iteration && this.#isStreaming();
    let atMs = 0;
    let ordinal = 0;
    const items: readonly ItemScript[] = script?.items ?? [{ type: 'response', gapMs: 10, final: true, refers: [] }];
    for (const item of items) {
      atMs += item.gapMs;
      const place = item.type === 'response' ? ordinal : ordinal++;
      this.#after(atMs, () => {
        if (current()) this.#say(item, iteration, place);
      });
    }
    this.#after(atMs + 5, () => {
      if (current()) this.#endGeneration(script?.finish ?? 'stop');
    });
  }

  #say(item: ItemScript, iteration: number, ordinal: number): void {
    const key = `${iteration}/${ordinal}`;
    switch (item.type) {
      case 'response': {
        const refers = item.refers.flatMap((id) => this.#state.ids.get(id)?.key ?? []);
        return this.#input({ type: 'response_closed', final: item.final, refers });
      }
      case 'refusal':
        this.#declared.push(key);
        return this.#input({
          type: 'action_refused',
          rejection: {
            ordinal,
            id: item.id,
            type: null,
            mode: null,
            name: null,
            code: 'unclosed',
            message: 'never closed',
            line: 1,
            column: 1,
            excerpt: '',
          },
        });
      case 'action': {
        this.#declared.push(key);
        this.#scripts.set(key, item.action);
        const { fields, about } = item.action;
        this.#input({
          type: 'action_declared',
          action: declaration({ ...fields, ordinal }),
          policy: policy(about),
        });
        if (!this.#state.byKey.has(key)) this.#declared.splice(this.#declared.indexOf(key), 1);
      }
    }
  }

  #endGeneration(finish: FinishReason): void {
    if (!this.#isStreaming()) return;
    const { usage } = this.#world.generations[this.#generation - 1] ?? {};
    if (usage !== undefined) this.#input({ type: 'usage_recorded', ...usage });
    const error = finish === 'error' ? { code: 'model_unavailable' as const, message: 'gone' } : null;
    this.#input({ type: 'generation_ended', finish, answered: false, error });
  }

  #isStreaming(): boolean {
    return this.#state.generation?.streaming === true && !this.#ended;
  }

  /** Invariants after every step. */
  #look(): void {
    const { policy, phase } = this.#state;
    const running = this.#state.nodes.filter(({ stage }) => stage === 'running');
    const slots = running.filter(needsSlot).length;
    if (slots > policy.maxParallelActions) this.#fail(`${slots} actions run in ${policy.maxParallelActions} slots`);
    const perTarget = new Map<string, number>();
    for (const node of running) {
      const target = targetOf(node);
      const count = (perTarget.get(target) ?? 0) + 1;
      perTarget.set(target, count);
      if (count > (node.policy.concurrency ?? Infinity)) this.#fail(`too many of ${target} run`);
    }
    for (const [type, most] of Object.entries(policy.maxParallelByType ?? {})) {
      const count = running.filter(({ declaration: { type: own } }) => own === type).length;
      if (count > most) this.#fail(`${count} of type ${type} run, ${most} may`);
    }
    const free = policy.maxParallelActions - slots;
    for (const node of this.#state.nodes) {
      if (node.stage !== 'ready') continue;
      if (node.limits.some(({ running: there, max }) => there >= max)) continue;
      const kept =
        node.mode === 'fire_and_forget' && policy.maxParallelActions > 1 && phase !== 'ended' && phase !== 'drained';
      if (!needsSlot(node) || free > (kept ? 1 : 0)) this.#fail(`${node.key} is ready and ${free} slots are idle`);
    }
    this.#lookAtBudgets(running);
    this.#lookInside();
  }

  /** The budgets of children are reserved, and never exceed the remaining budget (S12). */
  #lookAtBudgets(running: readonly ActionNode[]): void {
    const { policy, reserved, modelCalls, admittedActions } = this.#state;
    for (const kind of ['modelCalls', 'tokens', 'cost', 'actions'] as const) {
      const aside = running.reduce((sum, node) => sum + (node.reserved?.[kind] ?? 0), 0);
      if (Math.abs(aside - reserved[kind]) > 1e-6) this.#fail(`${reserved[kind]} ${kind} are set aside, not ${aside}`);
    }
    if (modelCalls + reserved.modelCalls > policy.modelCalls && modelCalls > 0) this.#fail('too many model calls');
    if (admittedActions + reserved.actions > policy.maxActions) this.#fail('too many actions');
  }

  /** Counters and heaps match a recount. */
  #lookInside(): void {
    const { nodes, lanes, limits, open, openBackground, active, asking } = this.#state;
    const unsettled = nodes.filter(({ admitted, stage }) => admitted && stage !== 'settled');
    const awaited = unsettled.filter(({ mode }) => mode !== 'fire_and_forget');
    const passive: ReadonlySet<string> = new Set(['waiting', 'approval']);
    const counted = [
      open === awaited.length,
      openBackground === unsettled.length - awaited.length,
      active === awaited.filter(({ stage }) => !passive.has(stage)).length,
      asking === awaited.filter(({ stage }) => stage === 'approval').length,
    ];
    if (counted.includes(false)) this.#fail(`a counter is wrong: ${counted.join(', ')}`);
    for (const { name, running, max, ceiling, awaited: inAwaited, background } of limits.values()) {
      const mine = nodes.filter((node) => node.limits.some((limit) => limit.name === name));
      const inLane = (queue: 'slot' | 'background'): number =>
        mine.filter(
          ({ heap, mode }) =>
            heap !== null &&
            (heap === lanes.slot || heap === lanes.free || heap === lanes.background) &&
            (mode === 'fire_and_forget') === (queue === 'background'),
        ).length;
      const recount = [
        running === mine.filter(({ stage }) => stage === 'running').length,
        inAwaited.inLane === inLane('slot'),
        background.inLane === inLane('background'),
        max >= 1 && max <= ceiling,
      ];
      if (recount.includes(false)) this.#fail(`the limit of ${name} is wrong: ${recount.join(', ')}`);
    }
    const parked = [...limits.values()].flatMap((limit) => [limit.awaited.parked, limit.background.parked]);
    for (const heap of [lanes.slot, lanes.free, lanes.background, ...parked]) {
      for (const [at, node] of heap.entries()) {
        if (node.heap !== heap || node.heapAt !== at) this.#fail(`${node.key} does not know its place`);
        const parent = heap[(at - 1) >> 1];
        if (at > 0 && parent !== undefined && before(node, parent)) this.#fail(`${node.key} stands too low`);
      }
    }
  }

  #script(key: string): ActionScript {
    const script = this.#scripts.get(key);
    return script ?? this.#fail(`a command for an unknown action: ${key}`);
  }

  #node(key: string): ActionNode {
    return this.#state.byKey.get(key) ?? this.#fail(`a command for an unknown action: ${key}`);
  }

  #fail(message: string): never {
    const last = this.#inputs.at(-1);
    throw new Error(`${message} (at ${this.#now} ms, input ${this.#inputs.length}: ${last?.type})`);
  }
}

function targetOf({ declaration: { type, name } }: ActionNode): string {
  return `${type}/${name}`;
}
