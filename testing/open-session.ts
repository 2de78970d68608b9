/**
 * A session of a project in the process of a test: the real runtime on an in-memory database, with a scripted model and a
 * time that never sleeps.
 */
import type { Json, JsonObject } from '../src/domain/json.ts';
import type { SessionEvent } from '../src/domain/event.ts';
import { nearestNames } from '../src/domain/nearest.ts';
import type { RunRecord } from '../src/domain/session.ts';
import type { Project } from '../src/durable/project.ts';
import type { OpenApproval } from '../src/engine/actions/approval-list.ts';
import type { CallResult } from '../src/engine/session/session-calls.ts';
import { admitHistory } from '../src/policies/seeded-history.ts';
import type { SessionOptions } from './options.ts';
import { documentOf, testRun, textOf } from './test-run.ts';
import type { TestRun } from './test-run.ts';
import { TestWorld } from './world.ts';
import type { HostedSession } from './hosted-session.ts';
import type { SentRequest } from './world.ts';

export interface TestClock {
  /** Epoch milliseconds. */
  now(): number;
  /** Moves the time: timers fire in order, also while functions of the test are pending. */
  advance(ms: number): Promise<void>;
}

/** The id of the session that a test opens. */
const SESSION_ID = `ses_${'0'.repeat(31)}1`;

/**
 * Opens a session with an agent of a project, or for one of its workflows.
 *
 * @param project the default export of `src/project.generated.ts`
 * @throws Error for options with unknown names, with the nearest known one; EngineError for variables or a history that
 *   a session would refuse
 */
export async function openSession(project: Project, options: SessionOptions): Promise<TestSession> {
  const world = new TestWorld(project, options);
  const { agent, workflow, userId = null, variables = {}, history = [] } = options;
  const record = {
    session_id: SESSION_ID,
    agent: agent ?? workflow ?? '',
    ...(workflow === undefined ? {} : { workflow }),
    user_id: userId,
    owner: null,
    kind: 'chat' as const,
    metadata: {},
    created_at: world.time.clock.now(),
  };
  const hosted = world.open(record);
  await hosted.session.create(record, variables, await admitHistory(history));
  return new TestSession(world, hosted, options);
}

export class TestSession {
  readonly clock: TestClock;
  readonly #world: TestWorld;
  readonly #hosted: HostedSession;
  readonly #options: SessionOptions;

  /** Use `openSession()`. */
  constructor(world: TestWorld, hosted: HostedSession, options: SessionOptions) {
    const { time } = world;
    this.#world = world;
    this.#hosted = hosted;
    this.#options = options;
    this.clock = {
      now: () => time.clock.now(),
      advance: async (ms) =>
        await time.advance(
          ms,
          () => world.wakeAt(),
          () => world.wake(),
        ),
    };
  }

  /** What the model was sent, by all agents, in order. */
  get requests(): readonly SentRequest[] {
    return this.#world.requests;
  }

  /** The system prompt of the latest request of the session's agent. @throws Error if it has made no request */
  get prompt(): string {
    const { agent } = this.#options;
    const latest = this.requests.findLast((request) => request.from === agent && request.agent !== null);
    if (latest === undefined) throw new Error('The agent has not asked its model yet: send a message first');
    return latest.messages.find(({ role }) => role === 'system')?.content ?? '';
  }

  /** All events of the session, in order. */
  get events(): readonly SessionEvent[] {
    return this.#hosted.events;
  }

  /** Open requests for approval, also of sub-agents, oldest first. */
  get approvals(): readonly OpenApproval[] {
    return this.#world.approvals();
  }

  /** The session variables. */
  async variables(): Promise<JsonObject> {
    return (JSON.parse(await textOf(this.#hosted.session.state())) as { variables: JsonObject }).variables;
  }

  /**
   * Sends a message.
   *
   * @returns the run at its end, or when it waits for approvals or client tools
   * @throws EngineError if the message is refused; Error if a function of the test does not settle
   */
  async send(
    content: string,
    {
      ifBusy = 'queue',
      metadata,
    }: { readonly ifBusy?: 'queue' | 'reject' | 'steer'; readonly metadata?: JsonObject } = {},
  ): Promise<TestRun> {
    const { clientTools: tools = [] } = this.#options;
    const { session } = this.#hosted;
    const message = {
      content,
      ifBusy,
      tokens: true,
      idempotencyKey: null,
      ...(metadata === undefined ? {} : { metadata }),
      ...(tools.length === 0 ? {} : { tools }),
    };
    return await this.#follow(await this.#world.time.during(session.message(message)));
  }

  /** Runs the session's workflow. Like `send`. */
  async start(inputs: JsonObject = {}): Promise<TestRun> {
    return await this.#follow(await this.#world.time.during(this.#hosted.session.workflow(inputs)));
  }

  /**
   * Approves an action that waits, or answers the question of its target, and lets the run continue.
   *
   * @param which the id of its approval or of the action, or its name. Default: the oldest request
   * @param content the values that the question asks for. Default: the defaults of its schema
   */
  async approve(which?: string, content: JsonObject | null = null): Promise<TestRun> {
    return await this.#decide(which, true, null, content);
  }

  /** Denies an action that waits, with a reason for the model. Like `approve`. */
  async deny(reason?: string, which?: string): Promise<TestRun> {
    return await this.#decide(which, false, reason ?? null);
  }

  /**
   * Gives the result of a client tool's call, and lets the run continue.
   *
   * @param which the id of the call, or the name of its tool: its oldest call
   * @param output a JSON value; an Error means that the tool has failed
   */
  async settle(which: string, output: Json | Error): Promise<TestRun> {
    const { session } = this.#hosted;
    const run = session.openRun();
    const open = run === null ? [] : ((await documentOf(session, run)).pending ?? []);
    const call = open.find(({ call_id: id, name }) => id === which || name === which);
    if (run === null || call === undefined) throw notOpen('call', which, open);
    const result: CallResult = output instanceof Error ? { error: { message: output.message } } : { output };
    await this.#world.time.during(session.settleCall(call.call_id, result));
    return await this.#follow(run);
  }

  /** Cancels everything that runs or waits. */
  async cancel(reason = 'the test cancelled it'): Promise<void> {
    await this.#world.time.during(this.#hosted.session.cancel(reason));
  }

  /** The newest run again, as it is now. */
  async run(): Promise<TestRun> {
    const [latest] = this.#hosted.session.runs(1);
    if (latest === undefined) throw new Error('The session has no run yet: send a message first');
    return await this.#view(latest.runId);
  }

  async #decide(
    which: string | undefined,
    approve: boolean,
    note: string | null,
    content: JsonObject | null = null,
  ): Promise<TestRun> {
    const open = this.approvals;
    const approval =
      which === undefined
        ? open[0]
        : open.find(({ approval_id: id, action_id: action, name }) => [id, action, name].includes(which));
    if (approval === undefined) throw notOpen('approval', which ?? null, open);
    const asked = this.#world.sessions.get(approval.session_id);
    const run = this.#openRun();
    await this.#world.time.during(
      asked?.session.resolveApproval(approval.approval_id, approve, note, content) ?? Promise.resolve(),
    );
    return await this.#follow(run);
  }

  #openRun(): RunRecord {
    const run = this.#hosted.session.openRun();
    if (run === null) throw new Error('The session has no open run');
    return run;
  }

  async #follow({ runId }: RunRecord): Promise<TestRun> {
    const { session } = this.#hosted;
    await this.#world.time.until(() => session.hasEnded(runId) || this.#isWaiting(runId));
    const [fault] = this.#world.faults;
    if (fault !== undefined) throw fault;
    return await this.#view(runId);
  }

  /** The run, or a session below it, waits for people or clients, and nothing else happens without time. */
  #isWaiting(runId: string): boolean {
    const { sessions, time } = this.#world;
    if (this.#hosted.session.isWaiting(runId)) return true;
    return time.isIdle && [...sessions.values()].some(({ session }) => session.status === 'waiting');
  }

  async #view(runId: string): Promise<TestRun> {
    const { session, events } = this.#hosted;
    const waiting = !session.hasEnded(runId) && this.#isWaiting(runId) ? this.approvals : null;
    return await testRun(session, session.run(runId), events, waiting);
  }
}

function notOpen(
  kind: 'approval' | 'call',
  which: string | null,
  open: readonly { readonly name: string | null }[],
): Error {
  const names = open.flatMap(({ name }) => name ?? []);
  if (names.length === 0) return new Error(`No ${kind} is open${which === null ? '' : `, so "${which}" is not`}`);
  const [nearest] = which === null ? [] : nearestNames(which, names);
  const meant = nearest === undefined ? '' : `; did you mean "${nearest}"?`;
  return new Error(`No open ${kind} is called "${which}"${meant} (open: ${names.join(', ')})`);
}
