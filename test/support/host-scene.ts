/** A session on hosts that are lost and replaced: the disk, the clock and every executed call survive them. */
import type { ActionOutcome } from '../../src/domain/action.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { ActionCall, WithdrawnQuestion } from '../../src/executors/executor.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { eventsOf } from './events.ts';
import { CrashingSql, openNodeSql } from './node-sql.ts';
import type { CrashPoint } from './node-sql.ts';
import { sessionKit, settle } from './session-kit.ts';
import type { KitOptions, SessionKit } from './session-kit.ts';

export class HostScene {
  readonly disk = openNodeSql();
  readonly clock = new VirtualClock();
  readonly calls: ActionCall[] = [];
  readonly withdrawn: WithdrawnQuestion[] = [];
  /** Outcomes of attempts in order; without one, and for null, the attempt never ends. */
  readonly ends: (ActionOutcome | null)[] = [];
  readonly events: SessionEvent[] = [];
  #host: { readonly sql: CrashingSql; readonly kit: SessionKit } | null = null;
  #approvals = 0;
  readonly #options: KitOptions;

  constructor(options: KitOptions) {
    this.#options = options;
  }

  get crashed(): boolean {
    return this.#host?.sql.crashed === true;
  }

  get kit(): SessionKit {
    if (this.#host === null) throw new Error('there is no host');
    return this.#host.kit;
  }

  /** Starts a new host; the previous one is lost. */
  async start(crash: CrashPoint | null = null): Promise<SessionKit> {
    this.#host?.sql.kill();
    const sql = new CrashingSql(this.disk, crash);
    const kit = await sessionKit({
      sql,
      clock: this.clock,
      approvalIds: () => `apr_${String((this.#approvals += 1)).padStart(32, '0')}`,
      executors: { tool: this.#execute, python: this.#execute },
      withdraw: (question) => void this.withdrawn.push(question),
      ...this.#options,
    });
    this.#host = { sql, kit };
    kit.session.listen((batch) => this.events.push(...(batch ?? [])));
    await kit.session.recover();
    await settle();
    return kit;
  }

  /** Starts the text, and runs everything that needs no time. */
  async run(...pieces: string[]): Promise<void> {
    const chunks = async function* (): AsyncGenerator<string> {
      yield* pieces;
    };
    await this.kit.session.execute(chunks(), pieces.join(''));
    await settle();
  }

  /** Until the latest run has ended or waits: digests take real time. */
  async ended(): Promise<void> {
    await this.kit.session.ended(this.kit.session.runCount);
    await settle();
  }

  /** Advances the clock until no timer is due. */
  async pass(): Promise<void> {
    for (let turn = 0; turn < 50; turn += 1) {
      await settle();
      const { next } = this.clock;
      if (next === null || next - this.clock.now() > 60_000) return;
      this.clock.advance(next - this.clock.now());
    }
  }

  /** Ids of the open approvals, oldest first. */
  get open(): string[] {
    return this.kit.session.openApprovals({ limit: 100, after: null }).map(({ approval_id: id }) => id);
  }

  /** Decides the oldest open request. */
  async decide(approved = true, content: JsonObject | null = null): Promise<void> {
    await this.#resolve(this.open[0] ?? '', approved, content);
  }

  /** Approves the request that was the n-th one, from 0. */
  async approve(which = 0): Promise<void> {
    await this.#resolve(eventsOf(this.events, 'approval_requested')[which]?.data.approval_id ?? '', true, null);
  }

  async #resolve(id: string, approved: boolean, content: JsonObject | null): Promise<void> {
    await this.kit.session.resolveApproval(id, approved, null, content);
    await settle();
  }

  /** Codes of the failed actions. */
  get failures(): string[] {
    return eventsOf(this.events, 'action_failed').map(({ data }) => data.error.code);
  }

  #execute = async (call: ActionCall): Promise<ActionOutcome> => {
    this.calls.push(call);
    return this.ends.shift() ?? (await new Promise(() => undefined));
  };
}

/** A scene whose first host has started. */
export async function hostScene(options: KitOptions): Promise<HostScene> {
  const made = new HostScene(options);
  await made.start();
  return made;
}
