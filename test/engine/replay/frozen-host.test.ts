/** Work that freezes its host is quarantined; other work in progress continues (J2, J3). */
import { describe, expect, test } from 'vitest';

import { limits } from '../../../src/domain/limits.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { FeedDefinition } from '../../../src/domain/manifests/feed.ts';
import { QuarantineSlots } from '../../../src/engine/replay/quarantine-slots.ts';
import type { HostLife } from '../../../src/engine/replay/recovery-queue.ts';
import { feedOf } from '../../support/definitions.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { CrashingSql, openNodeSql } from '../../support/node-sql.ts';
import type { NodeSql } from '../../support/node-sql.ts';
import { sessionKit, settle, resultOf } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';
import { SESSION_ID } from '../../journal/journal-kit.ts';

const act = (id: string, say: string): string =>
  `<action type="tool" mode="async" id="${id}">{"name":"echo","parameters":{"say":"${say}"}}</action>`;
const FREEZES = `${act('a', 'freeze')}<response final="true">$a</response>`;
const SLOW = `${act('a', 'slow').replace('id=', 'timeout="3600" id=')}<response final="true">done</response>`;

/** Successive hosts on the databases of several sessions, as `npm start` or the platform starts them. */
class World {
  readonly disks: NodeSql[];
  now = 1_000_000;
  /** Until then freezing and slow tools only never answer. */
  isArmed = true;
  life = 0;
  readonly frozen: number[] = [];
  /** The remains of a host: the databases that it writes, and whether it froze. */
  host: {
    readonly sqls: CrashingSql[];
    readonly kits: SessionKit[];
    readonly clock: VirtualClock;
    isFrozen: boolean;
  } | null = null;

  constructor(sessions: number) {
    this.disks = Array.from({ length: sessions }, () => openNodeSql());
  }

  /**
   * A host of all sessions. A tool called with `freeze` stops it forever; `slow` never answers; all others answer at once.
   */
  async start(options: KitOptions = {}): Promise<SessionKit[]> {
    this.life += 1;
    const clock = new VirtualClock(this.now);
    const sqls = this.disks.map((disk) => new CrashingSql(disk, null));
    const host = { sqls, kits: [] as SessionKit[], clock, isFrozen: false };
    this.host = host;
    const slots = new QuarantineSlots();
    const description: HostLife = { life: this.life, frozen: [...this.frozen] };
    for (const sql of sqls) {
      const kit = await sessionKit({
        ...options,
        sql,
        clock,
        slots,
        host: description,
        executors: {
          tool: async ({ parameters: { say } }) => {
            if (say === 'freeze' && this.isArmed) this.freeze();
            const isBlockedOnApproval = say === 'freeze' || say === 'slow' || (say === 'late' && !this.isArmed);
            if (isBlockedOnApproval || host.isFrozen) return await new Promise(() => undefined);
            return { ok: true, output: say ?? null };
          },
        },
      });
      host.kits.push(kit);
    }
    return host.kits;
  }

  /** The host answers nothing any more, and all its work stops. */
  freeze(): void {
    if (this.host === null || this.host.isFrozen) return;
    this.host.isFrozen = true;
    this.frozen.push(this.life);
    this.end();
  }

  /** The host ends now, whatever it is doing. */
  end(): void {
    for (const sql of this.host?.sqls ?? []) sql.kill();
  }

  /** Starts hosts until one does not freeze. */
  async untilServing(options: KitOptions = {}): Promise<void> {
    for (let start = 1; start <= 2 * limits.frozenStarts; start += 1) {
      await this.start(options);
      await this.live(60_000);
      if (this.host?.isFrozen === false) return;
    }
    throw new Error('no host serves');
  }

  /** Fires the alarms of all sessions in the given order, then advances the clock until the host freezes or `ms` have passed. */
  async live(ms: number, order: readonly number[] = this.disks.map((_, at) => at)): Promise<void> {
    const { host } = this;
    if (host === null) throw new Error('nothing runs');
    for (const at of order) host.kits[at]?.session.wake().catch(() => undefined);
    for (let passed = 0; passed <= ms && !host.isFrozen; passed += 250) {
      await settle();
      if (!host.isFrozen) host.clock.advance(250);
    }
    await settle();
    this.now = host.clock.now() + 60_000;
  }
}

const answer = (text: string): string => `<response final="true">${text}</response>`;

function one(kit: SessionKit | undefined): SessionKit {
  if (kit === undefined) throw new Error('there is no such session');
  return kit;
}

const runOf = ({ session }: SessionKit): string => session.runs()[0]?.runId ?? '';

const post = async ({ session }: SessionKit, text: string): Promise<void> => {
  const chunks = async function* (): AsyncGenerator<string> {
    yield text;
  };
  await session.execute(chunks(), text);
};
const statuses = async ({ session }: SessionKit): Promise<unknown[]> =>
  await Promise.all(
    session.runs().map(async (run) => {
      const { status, error } = await resultOf(session, run);
      return error === null ? status : `${status}: ${String((error as { code?: string }).code)}`;
    }),
  );

/** A world whose first host was frozen by the first message of its first session. */
async function frozenWorld(sessions = 1): Promise<World> {
  const world = new World(sessions);
  const [first, ...others] = await world.start();
  for (const other of others) await post(other, SLOW);
  await settle();
  if (first === undefined) throw new Error('no session');
  await post(first, FREEZES).catch(() => undefined);
  await settle();
  expect(world.host?.isFrozen).toBe(true);
  return world;
}

describe('[J2] a run that freezes its host', () => {
  test('is quarantined by name after three frozen starts, and the fourth start serves', async () => {
    const world = await frozenWorld();
    for (let start = 1; start <= limits.frozenStarts; start += 1) {
      const [kit] = await world.start();
      expect(await statuses(one(kit))).toEqual(['running']);
      await world.live(30_000);
      expect([start, world.host?.isFrozen]).toEqual([start, true]);
    }
    const [kit] = await world.start();
    await world.live(30_000);
    expect(world.host?.isFrozen).toBe(false);
    expect(await statuses(one(kit))).toEqual(['failed: recovery_exhausted']);
    expect(kit?.faults).toEqual([
      expect.stringMatching(
        `^run run_a+_1 of session ${SESSION_ID} is quarantined: the host froze at 3 starts in a row`,
      ),
    ]);
    const result = await resultOf(one(kit).session, one(kit).session.run(runOf(one(kit))));
    expect(result?.actions).toMatchObject([{ status: 'failed', error: { code: 'outcome_unknown' } }]);
    expect(result?.error).toEqual({
      code: 'recovery_exhausted',
      message: expect.stringMatching(/^The run was stopped: the host froze at 3 starts in a row/) as string,
    });
    await post(one(kit), answer('serves'));
    await settle();
    expect(await statuses(one(kit))).toContain('completed');
  });

  test('does not block the messages that wait behind it', async () => {
    const world = new World(1);
    world.isArmed = false;
    const [first] = await world.start();
    for (const text of [FREEZES, answer('second'), answer('third')]) await post(one(first), text);
    world.end();
    world.isArmed = true;
    await world.untilServing();
    expect(await statuses(one(world.host?.kits[0]))).toEqual(['failed: recovery_exhausted', 'completed', 'completed']);
    expect(world.frozen).toHaveLength(limits.frozenStarts);
  });

  test('a waiting message that freezes each host when it starts is quarantined itself', async () => {
    const world = new World(1);
    world.isArmed = false;
    const [first] = await world.start();
    for (const text of [`${act('a', 'late')}${answer('first')}`, FREEZES, answer('third')])
      await post(one(first), text);
    world.end();
    world.isArmed = true;
    await world.untilServing();
    expect(await statuses(one(world.host?.kits[0]))).toEqual(['completed', 'failed: recovery_exhausted', 'completed']);
    expect(world.frozen).toHaveLength(limits.frozenStarts);
  });

  test('the remaining actions of an answered run are quarantined too, and the answer stays', async () => {
    const world = new World(1);
    world.isArmed = false;
    const [first] = await world.start();
    const leftOver = act('a', 'freeze').replace('mode="async"', 'mode="fire_and_forget"');
    await post(one(first), `${leftOver}${answer('done')}`);
    await settle();
    expect(await statuses(one(first))).toEqual(['completed']);
    world.end();
    world.isArmed = true;
    await world.untilServing();
    const kit = one(world.host?.kits[0]);
    expect(await statuses(kit)).toEqual(['completed']);
    expect(world.frozen).toHaveLength(limits.frozenStarts);
    expect((await resultOf(kit.session, kit.session.run(runOf(kit)))).actions).toMatchObject([{ status: 'failed' }]);
  });

  test('the record of its start is on disk before any of its work begins', async () => {
    const world = await frozenWorld();
    const [kit] = await world.start();
    const synced = Promise.withResolvers<void>();
    const sql = world.host?.sqls[0] as CrashingSql;
    sql.onSync = () => synced.promise;
    void kit?.session.recover();
    await settle();
    expect(world.host?.isFrozen).toBe(false);
    expect(world.disks[0]?.exec('SELECT work, lives FROM taken_up')).toEqual([{ work: 'run 1', lives: '[2]' }]);
    synced.resolve();
    await settle();
    expect(world.host?.isFrozen).toBe(true);
  });

  test('the alarm resumes it, even if the previous host had only set the alarm', async () => {
    const world = await frozenWorld();
    const [kit] = await world.start();
    expect(kit?.session.nextWake()).toBe(world.now + limits.watchdogMs);
  });
});

describe('[J2] harmless work', () => {
  test.each([1, 7])('of %i other sessions continues, whatever the order of their alarms', async (others) => {
    const world = await frozenWorld(others + 1);
    let at = 7;
    const shuffled = (): number[] =>
      world.disks.map((_, index) => index).toSorted((one, other) => ((one * 31 + at) % 17) - ((other * 31 + at) % 17));
    for (let start = 1; start <= limits.frozenStarts + 1; start += 1) {
      at += 5;
      await world.start();
      await world.live(600_000, shuffled());
      expect([start, world.host?.isFrozen]).toEqual([start, start <= limits.frozenStarts]);
    }
    const [culprit, ...rest] = await Promise.all(world.host?.kits.map(statuses) ?? []);
    expect(culprit).toEqual(['failed: recovery_exhausted']);
    expect(rest).toEqual(rest.map(() => ['running']));
  });

  test('a reader does not wait for suspected work', async () => {
    const world = await frozenWorld(3);
    await world.start();
    await world.live(30_000);
    expect(world.host?.isFrozen).toBe(true);
    const kits = await world.start();
    const read = Promise.all(kits.slice(1).map((kit) => kit.session.recover('read')));
    let isRead = false;
    void read.then(() => (isRead = true));
    await settle();
    expect(isRead).toBe(true);
    expect(await Promise.all(kits.slice(1).map(statuses))).toEqual([['running'], ['running']]);
  });
});

describe('[F3] a periodic feed that freezes its host', () => {
  const feed = (id: string, say: string): FeedDefinition =>
    feedOf(id, {
      when: 'periodic',
      intervalMs: 5_000,
      source: { type: 'tool', name: 'echo', action: null, params: { say } },
    });
  const agent = (found: AgentDefinition): AgentDefinition => ({
    ...found,
    feeds: [feed('poison', 'freeze'), feed('good', 'fine')],
  });

  test('is quarantined by name, the others are refreshed, and a message gives it another attempt', async () => {
    const world = new World(1);
    world.isArmed = false;
    const [first] = await world.start({ agent, script: [answer('hi')] });
    void first?.session.message({ content: 'x', ifBusy: 'queue', tokens: false, idempotencyKey: null });
    await world.live(10_000);
    world.end();
    world.isArmed = true;
    await world.untilServing({ agent, script: [answer('hi')] });
    expect(world.frozen).toHaveLength(limits.frozenStarts);
    const kit = one(world.host?.kits[0]);
    const shown = kit.session.feeds();
    expect(shown).toMatchObject([
      {
        id: 'poison',
        error: expect.stringMatching(
          /^recovery_exhausted: quarantined until the next message: the host froze at 3 starts in a row/,
        ) as string,
      },
      { id: 'good', error: null, value: 'fine' },
    ]);
    expect(kit.faults.filter((fault) => String(fault).startsWith('feed "poison"'))).toEqual([
      expect.stringMatching(
        `^feed "poison" of session ${SESSION_ID} is quarantined: the host froze at 3 starts in a row`,
      ),
    ]);
    world.isArmed = false;
    await post(kit, answer('again'));
    expect(world.disks[0]?.exec(`SELECT * FROM taken_up WHERE aside = 1`)).toEqual([]);
  });
});
