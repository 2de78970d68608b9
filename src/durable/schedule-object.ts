/**
 * When which workflow is due (M6): one object for a namespace's scheduled workflows, one alarm for all.
 *
 * Invariants:
 *  1. A due time starts its workflow once: the session's id comes of the workflow's name and that time.
 *  2. Times that passed while nothing could run are made up for once, not once each.
 *  3. One workflow that cannot be started holds up no other, and does not stop the clock: the alarm is armed
 *     again before anything is started, and what did not start is due until it is given up.
 *  4. Nothing starts for a key that is gone; it is due again when there is such a key.
 */
import { DurableObject } from 'cloudflare:workers';
import { Cron } from 'croner';
import { bundled } from '../catalog/bundled.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { isOwner, parseApiKeys } from '../http/auth.ts';
import type { ScheduleOutlook } from '../http/workflows.ts';
import { workflowsOf } from './catalogs.ts';
import { platformClock } from './platform.ts';
import { schedulesOf } from './schedules.ts';
import type { Env } from './settings.ts';
import { startWorkflow } from './workflows.ts';

export interface Schedule {
  readonly workflow: string;
  readonly cron: string;
  /** IANA. */
  readonly timezone: string;
  readonly inputs: JsonObject;
}

interface Kept extends Schedule {
  /** Epoch milliseconds. */
  readonly nextAt: number;
}

export class ScheduleObject extends DurableObject<Env> {
  #following: Promise<void> = Promise.resolve();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(
      `CREATE TABLE IF NOT EXISTS schedules (workflow TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID`,
    );
  }

  /** Takes what the catalogue of `owner` schedules now; called after every change of it, one at a time. */
  async follow(owner: string | null): Promise<void> {
    const before = this.#following;
    this.#following = (async (): Promise<void> => {
      await before.catch(() => undefined);
      const own = (await workflowsOf(this.env, owner)).filter(({ name }) => bundled.workflow(name) === null);
      await this.keep(schedulesOf(own), owner);
    })();
    await this.#following;
  }

  /** Replaces what is scheduled; one that is as it was keeps its next time. */
  async keep(schedules: readonly Schedule[], owner: string | null): Promise<void> {
    const before = new Map(this.#all().map((kept) => [kept.workflow, kept]));
    this.ctx.storage.sql.exec(`DELETE FROM schedules`);
    for (const schedule of schedules) {
      const known = before.get(schedule.workflow);
      const same = known?.cron === schedule.cron && known.timezone === schedule.timezone;
      const nextAt = same ? known.nextAt : nextTime(schedule, platformClock.now());
      if (nextAt !== null) this.#write({ ...schedule, nextAt });
    }
    this.ctx.storage.kv.put('owner', owner);
    await this.#arm(0);
  }

  /** What is due when, soonest first. */
  upcoming(): readonly Kept[] {
    return this.#all().sort((a, b) => a.nextAt - b.nextAt);
  }

  /** The same, each with its next `count` times. @returns JSON of `ScheduleOutlook[]` */
  outlook(count: number): string {
    const outlook: ScheduleOutlook[] = this.upcoming().map(({ nextAt, ...schedule }) => ({
      ...schedule,
      next: nextTimes(schedule, nextAt, count),
    }));
    return JSON.stringify(outlook);
  }

  /** Starts what is due. Runs again after a crash: each start is one session, however often it is asked for. */
  override async alarm(): Promise<void> {
    const now = platformClock.now();
    await this.ctx.storage.setAlarm(now + limits.watchdogMs);
    const owner = this.ctx.storage.kv.get<string | null>('owner') ?? null;
    const served = isOwner(parseApiKeys(this.env.API_KEYS), owner);
    const due = this.#all().filter(({ nextAt }) => nextAt <= now);
    await Promise.all(
      due.map(async (kept) => {
        const started = !served || (await this.#start(kept, owner));
        if (started || now - kept.nextAt > limits.scheduleGiveUpMs) this.#advance(kept, now);
      }),
    );
    await this.#arm(limits.watchdogMs);
  }

  /** @returns whether it has been started */
  async #start({ workflow, inputs, nextAt }: Kept, owner: string | null): Promise<boolean> {
    try {
      const record = {
        session_id: await idOf(`schedule ${workflow} ${nextAt}`, this.ctx.id.toString()),
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
      console.error(JSON.stringify({ level: 'error', message: `schedule of "${workflow}": ${String(fault)}` })); // oxlint-disable-line no-console -- the platform's log
      return false;
    }
  }

  /** To its next time; one that has been changed or taken away meanwhile stays as it is. */
  #advance(kept: Kept, now: number): void {
    const before = JSON.stringify(kept);
    const next = nextTime(kept, now);
    if (next === null) {
      this.ctx.storage.sql.exec(`DELETE FROM schedules WHERE workflow = ? AND data = ?`, kept.workflow, before);
    } else {
      const data = JSON.stringify({ ...kept, nextAt: next } satisfies Kept);
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

  #all(): Kept[] {
    return this.ctx.storage.sql
      .exec(`SELECT data FROM schedules`)
      .toArray()
      .map((row) => JSON.parse(String(row['data'])) as Kept);
  }

  #write(kept: Kept): void {
    this.ctx.storage.sql.exec(
      `INSERT OR REPLACE INTO schedules (workflow, data) VALUES (?, ?)`,
      kept.workflow,
      JSON.stringify(kept),
    );
  }
}

function nextTimes(schedule: Schedule, first: number, count: number): number[] {
  const times = [first];
  for (let next = nextTime(schedule, first); next !== null && times.length < count; next = nextTime(schedule, next)) {
    times.push(next);
  }
  return times;
}

/** Null when there is none, or none can be told any more. */
function nextTime({ cron, timezone }: Schedule, after: number): number | null {
  try {
    return new Cron(cron, { timezone }).nextRun(new Date(after))?.getTime() ?? null;
  } catch {
    return null;
  }
}

async function idOf(start: string, object: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`${start} ${object}`));
  const hex = [...new Uint8Array(digest).subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `ses_${hex}`;
}
