/**
 * When which workflow is due (M6): one object for a namespace's scheduled workflows, one alarm for all.
 *
 * Invariants:
 *  1. A due time starts its workflow once: the session's id derives from the workflow's name and that time.
 *  2. Times that passed while nothing could run are made up for once, not once each.
 *  3. One workflow that cannot be started holds up no other, and does not stop the clock: the alarm is armed
 *     again before anything is started, and what did not start is due until it is given up.
 *  4. Nothing starts for a key that is gone; it is due again when there is such a key.
 *  5. What is due at once starts `limits.scheduleSpacingMs` apart, whether or not the one before it has started.
 *  6. A workflow whose starts froze their hosts is left out until the catalogue changes (J2).
 */
import { DurableObject } from 'cloudflare:workers';
import { bundled } from '../../catalog/bundled.ts';
import { limits } from '../../domain/limits.ts';
import { isOwner, parseApiKeys } from '../../http/auth.ts';
import type { ScheduleOutlook } from '../../http/routes/workflows.ts';
import { workflowsOf } from '../catalogs.ts';
import type { RecoveryQueue } from '../../engine/replay/recovery-queue.ts';
import { recoveryQueueOf } from '../host.ts';
import { platformClock } from '../platform.ts';
import { nextTime, nextTimes, schedulesOf, withNextTimes } from '../../policies/schedule-times.ts';
import type { KeptSchedule, Schedule } from '../../policies/schedule-times.ts';
import { sessionIdOf } from '../session-ids.ts';
import { readSettings } from '../../settings/settings.ts';
import type { Env, ScheduleRpc } from '../env.ts';
import { loggerOf } from '../log.ts';
import { startWorkflow } from '../workflows.ts';

/** By which names notes about starts that are taken up go (take-ups.ts). */
const STARTS = 'start of ';

export class ScheduleObject extends DurableObject<Env> implements ScheduleRpc {
  #following: Promise<void> = Promise.resolve();
  readonly #recoveryQueue: RecoveryQueue;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#recoveryQueue = recoveryQueueOf(env, ctx.storage);
    ctx.storage.sql.exec(
      `CREATE TABLE IF NOT EXISTS schedules (workflow TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID`,
    );
  }

  /** Takes what the catalogue of `owner` schedules now; called after every change of it, one at a time. */
  async follow(owner: string | null): Promise<void> {
    const before = this.#following;
    this.#following = (async (): Promise<void> => {
      await before.catch(() => undefined);
      this.#recoveryQueue.forgive(STARTS);
      const own = (await workflowsOf(this.env, owner)).filter(({ name }) => bundled.workflow(name) === null);
      await this.keep(schedulesOf(own), owner);
    })();
    await this.#following;
  }

  /** Replaces what is scheduled; one that is as it was keeps its next time. */
  async keep(schedules: readonly Schedule[], owner: string | null): Promise<void> {
    const kept = withNextTimes(schedules, this.#all(), platformClock.now(), this.#minMs);
    this.ctx.storage.sql.exec(`DELETE FROM schedules`);
    for (const schedule of kept) this.#write(schedule);
    this.ctx.storage.kv.put('owner', owner);
    await this.#arm(0);
  }

  /** Least time between two runs of a schedule. */
  get #minMs(): number {
    return readSettings(this.env).intervals.cronMinMs;
  }

  /** Whether anything has been kept here before. */
  isKept(): boolean {
    return this.ctx.storage.kv.get<string | null>('owner') !== undefined;
  }

  /** What is due when, soonest first. */
  upcoming(): readonly KeptSchedule[] {
    return this.#all().sort((a, b) => a.nextAt - b.nextAt);
  }

  /** The same, each with its next `count` times. */
  async outlook(count: number): Promise<ScheduleOutlook[]> {
    const outlook: ScheduleOutlook[] = [];
    for (const { nextAt, ...schedule } of this.upcoming()) {
      outlook.push({ ...schedule, next: nextTimes(schedule, nextAt, count, this.#minMs) });
      // Each time takes a tenth of a millisecond and more; others have their turn in between.
      if (count > 1) await scheduler.wait(limits.catalogPauseMs);
    }
    return outlook;
  }

  /** Starts what is due. Runs again after a crash: each start is one session, however often it is asked for. */
  override async alarm(): Promise<void> {
    const now = platformClock.now();
    await this.ctx.storage.setAlarm(now + limits.watchdogMs);
    const owner = this.ctx.storage.kv.get<string | null>('owner') ?? null;
    const served = isOwner(parseApiKeys(this.env.API_KEYS), owner);
    const due = this.#all().filter(({ nextAt }) => nextAt <= now);
    await Promise.all(
      due.map(async (kept, at) => {
        // All at once would take the thread for seconds.
        await scheduler.wait(at * limits.scheduleSpacingMs);
        const started = !served || (await this.#startUnlessFrozen(kept, owner));
        if (started || now - kept.nextAt > limits.scheduleGiveUpMs) this.#advance(kept, now);
      }),
    );
    await this.#arm(limits.watchdogMs);
  }

  /** @returns whether it has been started, or is left out */
  async #startUnlessFrozen(kept: KeptSchedule, owner: string | null): Promise<boolean> {
    const aside = await this.#recoveryQueue.take(`${STARTS}${kept.workflow}`);
    if (aside === null) return await this.#start(kept, owner);
    loggerOf(this.env)('error', `schedule of "${kept.workflow}" is set aside until the catalogue changes: ${aside}`);
    return true;
  }

  /** @returns whether it has been started */
  async #start({ workflow, inputs, nextAt }: KeptSchedule, owner: string | null): Promise<boolean> {
    try {
      const record = {
        session_id: await sessionIdOf(this.env, `schedule ${workflow} ${nextAt} ${this.ctx.id.toString()}`),
        agent: workflow,
        workflow,
        user_id: null,
        owner,
        kind: 'execution',
        metadata: { scheduled_for: nextAt },
        created_at: platformClock.now(),
      } as const;
      await startWorkflow(this.env, record, inputs);
      return true;
    } catch (fault) {
      loggerOf(this.env)('error', `schedule of "${workflow}": ${String(fault)}`);
      return false;
    }
  }

  /** To its next time; one that has been changed or taken away meanwhile stays as it is. */
  #advance(kept: KeptSchedule, now: number): void {
    const before = JSON.stringify(kept);
    const next = nextTime(kept, now, kept.nextAt, this.#minMs);
    if (next === null) {
      this.ctx.storage.sql.exec(`DELETE FROM schedules WHERE workflow = ? AND data = ?`, kept.workflow, before);
    } else {
      const data = JSON.stringify({ ...kept, nextAt: next } satisfies KeptSchedule);
      this.ctx.storage.sql.exec(
        `UPDATE schedules SET data = ? WHERE workflow = ? AND data = ?`,
        data,
        kept.workflow,
        before,
      );
    }
  }

  /** @param retryMs how long what is due already waits */
  async #arm(retryMs: number): Promise<void> {
    const [soonest] = this.upcoming();
    if (soonest === undefined) return await this.ctx.storage.deleteAlarm();
    const now = platformClock.now();
    await this.ctx.storage.setAlarm(soonest.nextAt > now ? soonest.nextAt : now + retryMs);
  }

  #all(): KeptSchedule[] {
    return this.ctx.storage.sql
      .exec(`SELECT data FROM schedules`)
      .toArray()
      .map((row) => JSON.parse(String(row['data'])) as KeptSchedule);
  }

  #write(kept: KeptSchedule): void {
    this.ctx.storage.sql.exec(
      `INSERT OR REPLACE INTO schedules (workflow, data) VALUES (?, ?)`,
      kept.workflow,
      JSON.stringify(kept),
    );
  }
}
