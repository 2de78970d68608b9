/**
 * Starts due workflows (M6): one object for the scheduled workflows of a namespace, with one alarm for all.
 *
 * Invariants:
 *  1. A due time starts its workflow once: the session's id is derived from the workflow's name and that time.
 *  2. Times that passed while nothing could run are made up for by a single run.
 *  3. A workflow that cannot be started does not delay others or stop the clock: the alarm is set again before anything
 *     is started, and a workflow that did not start stays due until the attempts end.
 *  4. Nothing starts for a namespace without an API key. It becomes due again when there is one.
 *  5. Simultaneous starts are `limits.scheduleSpacingMs` apart, whether or not the previous one has started.
 *  6. A workflow whose starts froze the host is skipped until the catalogue changes (J2).
 */
import { DurableObject } from 'cloudflare:workers';
import { bundled } from '../project.ts';
import { limits } from '../../domain/limits.ts';
import type { LogEvent, LogFields } from '../../domain/log.ts';
import { isOwner } from '../../http/api-keys.ts';
import type { ScheduleOutlook } from '../../http/routes/workflows.ts';
import { workflowsOf } from '../catalogs.ts';
import type { RecoveryQueue } from '../../engine/replay/recovery-queue.ts';
import { recoveryQueueOf } from '../host.ts';
import { platformClock } from '../platform.ts';
import { nextTime, nextTimes, schedulesOf, withNextTimes } from '../../policies/schedule-times.ts';
import type { KeptSchedule, Schedule } from '../../policies/schedule-times.ts';
import { sessionIdOf } from '../session-ids.ts';
import { apiKeysOf } from '../../settings/keys.ts';
import { readSettings } from '../../settings/settings.ts';
import type { Env, ScheduleRpc } from '../env.ts';
import { loggerOf } from '../log.ts';
import { startWorkflow } from '../workflows.ts';

/** Prefix of the names of started work in the recovery queue (engine/replay/recovery-queue.ts). */
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

  /** Loads the current schedules from the catalogue of `owner`; called after every change, one call at a time. */
  async follow(owner: string | null): Promise<void> {
    const before = this.#following;
    this.#following = (async (): Promise<void> => {
      await before.catch(() => undefined);
      this.#recoveryQueue.forgive(STARTS);
      const own = (await workflowsOf(this.env, owner)).filter(({ name }) => bundled().workflow(name) === null);
      await this.keep(schedulesOf(own), owner);
    })();
    await this.#following;
  }

  /** Replaces all schedules; an unchanged one keeps its next time. */
  async keep(schedules: readonly Schedule[], owner: string | null): Promise<void> {
    const { storage } = this.ctx;
    // First, so that schedules that are stored never lack an alarm: this one sets the next.
    await storage.setAlarm(platformClock.now() + limits.watchdogMs);
    storage.transactionSync(() => {
      const kept = withNextTimes(schedules, this.#all(), platformClock.now(), this.#minMs);
      storage.sql.exec(`DELETE FROM schedules`);
      for (const schedule of kept) this.#write(schedule);
      storage.kv.put('owner', owner);
    });
    await this.#arm(0);
  }

  /** Minimum time between two runs of a schedule. */
  get #minMs(): number {
    return readSettings(this.env).intervals.cronMinMs;
  }

  /** Due times, soonest first. */
  upcoming(): readonly KeptSchedule[] {
    return this.#all().sort((a, b) => a.nextAt - b.nextAt);
  }

  /** Due times with the next `count` times of each schedule. */
  async outlook(count: number): Promise<ScheduleOutlook[]> {
    const outlook: ScheduleOutlook[] = [];
    for (const { nextAt, ...schedule } of this.upcoming()) {
      outlook.push({ ...schedule, next: nextTimes(schedule, nextAt, count, this.#minMs) });
      // Each time takes at least a tenth of a millisecond; other work runs in between.
      if (count > 1) await scheduler.wait(limits.catalogPauseMs);
    }
    return outlook;
  }

  /** Starts due workflows. Runs again after a crash; each start creates one session, however often it is repeated. */
  override async alarm(): Promise<void> {
    const now = platformClock.now();
    await this.ctx.storage.setAlarm(now + limits.watchdogMs);
    const owner = this.ctx.storage.kv.get<string | null>('owner') ?? null;
    const served = isOwner(apiKeysOf(this.env), owner);
    const due = this.#all().filter(({ nextAt }) => nextAt <= now);
    await Promise.all(
      due.map(async (kept, at) => {
        // Starting all at once would block the thread for seconds.
        await scheduler.wait(at * limits.scheduleSpacingMs);
        const started = !served || (await this.#startUnlessFrozen(kept, owner));
        if (started || now - kept.nextAt > limits.scheduleGiveUpMs) this.#advance(kept, now);
      }),
    );
    await this.#arm(limits.watchdogMs);
  }

  /** @returns whether it was started or is skipped */
  async #startUnlessFrozen(kept: KeptSchedule, owner: string | null): Promise<boolean> {
    const aside = await this.#recoveryQueue.take(`${STARTS}${kept.workflow}`);
    if (aside === null) return await this.#start(kept, owner);
    const message = `schedule of "${kept.workflow}" is quarantined until the catalogue changes: ${aside}`;
    this.#log('work_quarantined', owner, { workflow: kept.workflow, message });
    return true;
  }

  /** @returns whether it was started */
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
      await startWorkflow(this.env, record, inputs, { trigger: 'schedule' });
      return true;
    } catch (fault) {
      this.#log('schedule_failed', owner, { workflow, fault });
      return false;
    }
  }

  #log(event: LogEvent, owner: string | null, fields: LogFields): void {
    loggerOf(this.env)(event, { ...(owner === null ? {} : { namespace: owner }), ...fields });
  }

  /** Sets the next time. A schedule that was changed or removed in the meantime is left unchanged. */
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

  /** @param retryMs delay for schedules that are already due */
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
