/**
 * When which workflow is due (M6): one object for a namespace's scheduled workflows, one alarm for all.
 *
 * Invariants:
 *  1. A due time starts its workflow once: the session's id comes of the workflow's name and that time.
 *  2. Times that passed while nothing could run are made up for once, not once each.
 */
import { DurableObject } from 'cloudflare:workers';
import { Cron } from 'croner';
import type { JsonObject } from '../domain/json.ts';
import { platformClock } from './platform.ts';
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
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(
      `CREATE TABLE IF NOT EXISTS schedules (workflow TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID`,
    );
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
    await this.#arm();
  }

  /** What is due when, soonest first. */
  upcoming(): readonly Kept[] {
    return this.#all().sort((a, b) => a.nextAt - b.nextAt);
  }

  /** Starts what is due. Runs again after a crash: each start is one session, however often it is asked for. */
  override async alarm(): Promise<void> {
    const now = platformClock.now();
    const owner = this.ctx.storage.kv.get<string | null>('owner') ?? null;
    for (const kept of this.#all()) {
      if (kept.nextAt > now) continue;
      const { workflow, inputs, nextAt } = kept;
      const sessionId = await idOf(`schedule ${workflow} ${nextAt}`, this.ctx.id.toString());
      const record = {
        session_id: sessionId,
        agent: workflow,
        workflow,
        user_id: null,
        owner,
        kind: 'execution',
        metadata: { scheduled_for: nextAt },
        created_at: now,
      } as const;
      await startWorkflow(this.env, record, inputs);
      const next = nextTime(kept, now);
      if (next === null) this.ctx.storage.sql.exec(`DELETE FROM schedules WHERE workflow = ?`, workflow);
      else this.#write({ ...kept, nextAt: next });
    }
    await this.#arm();
  }

  async #arm(): Promise<void> {
    const [soonest] = this.upcoming();
    if (soonest === undefined) await this.ctx.storage.deleteAlarm();
    else await this.ctx.storage.setAlarm(soonest.nextAt);
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

function nextTime({ cron, timezone }: Schedule, after: number): number | null {
  return new Cron(cron, { timezone }).nextRun(new Date(after))?.getTime() ?? null;
}

async function idOf(start: string, object: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`${start} ${object}`));
  const hex = [...new Uint8Array(digest).subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `ses_${hex}`;
}
