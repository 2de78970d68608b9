/**
 * Kills the running system repeatedly, restarts it from its state folder, and finally checks that nothing was lost and
 * that no unsafe action ran twice (J1-J5, S7, S10).
 *
 * Sends SIGKILL to whole process groups: the Worker's, the runner's or both. The seed determines the event count of the
 * newest run at which a kill happens, so that slow machines are killed at the same points.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createParser } from 'eventsource-parser';
import { LIGHT_SANDBOX } from '../../container-runner/test/support/levels.ts';
import { withSnapshot } from '../../container-runner/test/support/python-snapshot.ts';
import { freePort, startService, stopService, waitUntilHealthy } from '../../scripts/system/services.ts';
import type { Service } from '../../scripts/system/services.ts';
import type { System } from '../../scripts/system/system.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { stage } from '../support/staged-system.ts';
import type { Stage } from '../support/staged-system.ts';
import { WORKLOADS, manifests, scriptOf } from './workloads.ts';
import { openWorld } from './world.ts';
import type { World } from './world.ts';

export interface ChaosReport {
  readonly kills: number;
  readonly runs: number;
  readonly completed: number;
  readonly recovered: number;
  readonly outcomesUnknown: number;
  /** One line for each violation; empty if there is none. */
  readonly faults: readonly string[];
}

export interface ChaosOptions {
  readonly kills: number;
  readonly seed: number;
  /** Runs that begin before each kill. Default: 1. */
  readonly runsPerKill?: number;
  readonly progress: (line: string) => void;
}

/** A conversation, its message, and the events that its reader has received. */
interface Conversation {
  readonly name: string;
  readonly session: string;
  readonly workload: string;
  /** Frames by seq, as received. */
  readonly seen: Map<number, string>;
  posted: boolean;
}

const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);
const ACTION_ENDS = /^action_(completed|failed|skipped|cancelled|rejected)$/;
const SECRET = 'f'.repeat(64);
const MOST_EVENTS_BEFORE_KILL = 12;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  await using world = await openWorld(scriptOf);
  using copy = await stage(manifests(world.toolUrl));
  const chaos = new Chaos(copy, world, options);
  try {
    return await chaos.run();
  } finally {
    await chaos.stop();
  }
}

class Chaos {
  readonly #copy: Stage;
  readonly #world: World;
  readonly #options: ChaosOptions;
  readonly #conversations: Conversation[] = [];
  readonly #faults: string[] = [];
  #random: () => number;
  #ports = { worker: 0, runner: 0 };
  #worker: System | null = null;
  #runner: Service | null = null;

  constructor(copy: Stage, world: World, options: ChaosOptions) {
    this.#copy = copy;
    this.#world = world;
    this.#options = options;
    this.#random = randomFrom(options.seed);
  }

  async run(): Promise<ChaosReport> {
    this.#ports = { worker: await freePort(), runner: await freePort() };
    const names = Object.keys(WORKLOADS);
    const { kills, runsPerKill = 1 } = this.#options;
    for (let kill = 0; kill < kills; kill += 1) {
      await this.#start();
      const workloads = Array.from(
        { length: runsPerKill },
        (_, at) => names[(kill * runsPerKill + at) % names.length] ?? 'diamond',
      );
      for (const workload of workloads) await this.#startConversation(workload);
      const leave = new AbortController();
      const work = this.#work(leave.signal);
      await Promise.race([work, this.#seen(Math.floor(this.#random() * MOST_EVENTS_BEFORE_KILL))]);
      const what = (['both', 'worker', 'both', 'runner'] as const)[Math.floor(this.#random() * 4)] ?? 'both';
      this.#options.progress(`kill ${kill + 1} of ${kills}: ${what}, during ${workloads.join(' and ')}`);
      await this.#kill(what);
      // If the Worker was not killed, its clients lose their connections too.
      leave.abort();
      await work;
    }
    await this.#start();
    await this.#settle();
    const results = await this.#check();
    const actions = results.flatMap((result) => result.actions);
    return {
      kills,
      runs: results.length,
      completed: results.filter(({ status }) => status === 'completed').length,
      recovered: results.filter(({ warnings }) => warnings.some(({ code }) => code === 'run_recovered')).length,
      outcomesUnknown: actions.filter(({ error }) => (error as { code?: string } | null)?.code === 'outcome_unknown')
        .length,
      faults: this.#faults,
    };
  }

  /** Resolves when the reader of the newest run has received `count` events, or after a timeout. */
  async #seen(events: number): Promise<void> {
    for (const deadline = Date.now() + 20_000; Date.now() < deadline; await delay(5)) {
      const newest = this.#conversations.at(-1);
      if (newest === undefined || newest.seen.size >= events) return;
    }
  }

  async stop(): Promise<void> {
    await this.#worker?.stop();
    if (this.#runner !== null) await stopService(this.#runner);
  }

  async #start(): Promise<void> {
    const { root } = this.#copy;
    withSnapshot(join(root, 'state'));
    this.#runner ??= startService('runner', process.execPath, [join(root, 'container-runner/main.ts')], {
      cwd: root,
      env: {
        ...process.env,
        ...LIGHT_SANDBOX,
        RUNNER_PORT: String(this.#ports.runner),
        CORTEX_STATE_DIR: join(root, 'state'),
        RUNNER_SECRET: SECRET,
      },
      echo: () => false,
    });
    await waitUntilHealthy(this.#runner, `http://127.0.0.1:${this.#ports.runner}/health`, 60_000);
    this.#worker ??= await this.#copy.startSystem({
      port: this.#ports.worker,
      runnerPort: this.#ports.runner,
      stateDir: join(root, 'state'),
      vars: {
        ALLOW_HOSTS: this.#world.toolHost,
        LLM_BASE_URL: this.#world.modelUrl,
        LLM_API_KEY: 'none',
        LLM_MODEL: 'scripted',
        RUNNER_URLS: `http://127.0.0.1:${this.#ports.runner}`,
        RUNNER_SECRET: SECRET,
      },
      ownRunner: false,
      progress: () => undefined,
    });
  }

  async #kill(what: 'worker' | 'runner' | 'both'): Promise<void> {
    if (what !== 'runner' && this.#worker !== null) {
      await Promise.all(this.#worker.services.map(killGroup));
      this.#worker = null;
    }
    if (what !== 'worker' && this.#runner !== null) {
      await killGroup(this.#runner);
      this.#runner = null;
    }
  }

  async #startConversation(workload: string): Promise<void> {
    const response = await fetch(`${this.#url}/agent/chaos/session`, { method: 'POST', body: '{}' });
    const { session_id: session } = (await response.json()) as { session_id: string };
    const name = `${workload}-${this.#conversations.length}`;
    this.#conversations.push({ name, session, workload, seen: new Map(), posted: false });
  }

  /** Simulates clients: they post, read, lose their connection and reconnect. */
  async #work(signal: AbortSignal): Promise<void> {
    await Promise.allSettled(
      this.#conversations.slice(-4).map(async (conversation) => {
        if (!conversation.posted) await this.#post(conversation, signal);
        await this.#read(conversation, signal);
      }),
    );
  }

  async #post(conversation: Conversation, signal: AbortSignal | null = null): Promise<void> {
    const response = await fetch(`${this.#url}/agent/session/${conversation.session}/message`, {
      method: 'POST',
      signal,
      headers: { 'idempotency-key': conversation.name },
      body: JSON.stringify({ content: `${conversation.workload} ${conversation.name}` }),
    });
    if (!response.ok)
      this.#faults.push(
        `${conversation.name}: the message was answered with ${response.status}: ${await response.text()}`,
      );
    conversation.posted = true;
    await response.body?.cancel();
  }

  /** Continues after the last received event, until the run or the connection ends. */
  async #read(conversation: Conversation, signal: AbortSignal): Promise<void> {
    const after = Math.max(0, ...conversation.seen.keys());
    const response = await fetch(`${this.#url}/agent/session/${conversation.session}/events?after=${after}`, {
      signal,
    });
    if (response.body === null) return;
    let over = false;
    const parser = createParser({
      onEvent: ({ id, data, event }) => {
        if (id === undefined) return;
        const before = conversation.seen.get(Number(id));
        if (before !== undefined && before !== data)
          this.#faults.push(`${conversation.name}: event ${id} was sent twice, and differs`);
        conversation.seen.set(Number(id), data);
        over ||= /^agent_(completed|failed|cancelled)$/.test(event ?? '');
      },
    });
    const decoder = new TextDecoder();
    for await (const chunk of response.body) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      if (over) return;
    }
  }

  /** Waits until every run has ended. Sends a message again if it was never accepted. */
  async #settle(): Promise<void> {
    const deadline = Date.now() + 90_000;
    for (const conversation of this.#conversations) {
      if (!conversation.posted) await this.#post(conversation);
      for (;;) {
        const runs = await this.#runsOf(conversation);
        if (runs.length > 0 && runs.every(({ status }) => ENDS.has(status))) break;
        if (Date.now() > deadline) {
          this.#faults.push(
            `${conversation.name}: still ${runs.map(({ status }) => status).join(', ') || 'without a run'}`,
          );
          break;
        }
        await delay(100);
      }
    }
  }

  async #check(): Promise<RunResult[]> {
    const results: RunResult[] = [];
    for (const conversation of this.#conversations) {
      const runs = await this.#runsOf(conversation);
      if (runs.length !== 1) this.#faults.push(`${conversation.name}: ${runs.length} runs for one message`);
      for (const { run_id: id } of runs) {
        const result = (await (
          await fetch(`${this.#url}/agent/session/${conversation.session}/runs/${id}`)
        ).json()) as RunResult;
        results.push(result);
        this.#checkResult(conversation, result);
      }
      await this.#checkJournal(conversation);
    }
    for (const [token, times] of this.#world.unsafe) {
      if (times > 1) this.#faults.push(`the unsafe action ${token} was done ${times} times`);
    }
    return results;
  }

  #checkResult(conversation: Conversation, result: RunResult): void {
    if (result.status !== 'completed') {
      this.#faults.push(`${conversation.name}: ended ${result.status}: ${JSON.stringify(result.error)}`);
    }
    for (const action of result.actions) {
      const error = action.error as { code?: string; message?: string } | null;
      const counts = action.name === 'spend' ? this.#world.unsafe : this.#world.idempotent;
      const token = `${conversation.name}-${action.id}`;
      if (
        action.status === 'completed' &&
        (action.name === 'spend' || action.name === 'look_up') &&
        !counts.has(token)
      ) {
        this.#faults.push(`${conversation.name}: "${action.id}" is completed, and was never done`);
      }
      // An idempotent action must not fail; an unsafe one can be lost with its host or its runner.
      const excused =
        error?.code === 'outcome_unknown' ||
        error?.code === 'lost' ||
        error?.code === 'runner_unavailable' ||
        error?.code === 'child_failed';
      if (action.status === 'failed' && !excused) {
        this.#faults.push(`${conversation.name}: "${action.id}" failed: ${error?.code ?? ''}: ${error?.message ?? ''}`);
      }
    }
  }

  async #checkJournal(conversation: Conversation): Promise<void> {
    const before = new Map(conversation.seen);
    conversation.seen.clear();
    await this.#read(conversation, AbortSignal.timeout(20_000)).catch(() =>
      this.#faults.push(`${conversation.name}: its stream has no end`),
    );
    const all = [...conversation.seen].map(([, data]) => JSON.parse(data) as SessionEvent);
    if (all.some(({ seq }, index) => seq !== index + 1)) this.#faults.push(`${conversation.name}: the ids have a gap`);
    for (const [seq, data] of before) {
      if (conversation.seen.get(seq) !== data)
        this.#faults.push(`${conversation.name}: event ${seq} was sent, and is not in the journal as it was`);
    }
    for (const { iteration, action_id: id } of all.filter(({ type }) => type === 'action_queued')) {
      const ends = all.filter(
        (event) => event.action_id === id && event.iteration === iteration && ACTION_ENDS.test(event.type),
      );
      if (ends.length !== 1) this.#faults.push(`${conversation.name}: "${id ?? ''}" has ${ends.length} ends`);
    }
  }

  async #runsOf(conversation: Conversation): Promise<{ run_id: string; status: string }[]> {
    const response = await fetch(`${this.#url}/agent/session/${conversation.session}/runs`);
    return ((await response.json()) as { runs: { run_id: string; status: string }[] }).runs;
  }

  get #url(): string {
    return `http://127.0.0.1:${this.#ports.worker}`;
  }
}

async function killGroup({ process: { pid }, exited }: Service): Promise<void> {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
  await exited;
}

/** Uniform in [0, 1), the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
