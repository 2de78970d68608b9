/** The alarm of a session's host: its times, its effects, and what follows when nothing is running. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { LogEvent, LogFields } from '../../../src/domain/log.ts';
import type { EventBatch } from '../../../src/engine/session/broadcaster.ts';
import { SessionAlarm } from '../../../src/engine/session/session-alarm.ts';
import type { AlarmPorts } from '../../../src/engine/session/session-alarm.ts';
import { SESSION_RECORD } from '../../journal/journal-kit.ts';
import { toolOf } from '../../support/definitions.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { runText, say, sessionKit, settle } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';

const FINAL = '<response final="true">ok</response>';
const action = (type: string, id: string, name: string): string =>
  `<action type="${type}" mode="async" id="${id}">${JSON.stringify({ name, parameters: {} })}</action>`;
const echo = (id: string): string => action('tool', id, 'echo');
const PAY = toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'pay', effects: 'idempotent', approval: 'always' });

/** A list of all sessions' open approvals that can be out of order. */
class ApprovalsList {
  isBroken = false;
  listed = '';
  writes = 0;
  readonly #ids: () => readonly string[];

  constructor(ids: () => readonly string[]) {
    this.#ids = ids;
  }

  get isBehind(): boolean {
    return this.#ids().join(' ') !== this.listed;
  }

  sync = async (): Promise<void> => {
    this.writes += 1;
    const ids = this.#ids().join(' ');
    await Promise.resolve();
    if (this.isBroken) throw new Error('the list does not answer');
    this.listed = ids;
  };
}

interface Host {
  readonly kit: SessionKit;
  readonly clock: VirtualClock;
  readonly alarm: SessionAlarm;
  readonly list: ApprovalsList;
  /** The times that the alarm was set for, in order. */
  readonly armed: readonly number[];
  /** Owners whose namespace has a key. */
  readonly served: Set<string | null>;
  readonly destroyed: readonly string[];
  readonly forgotten: readonly string[];
  readonly logged: readonly (readonly [LogEvent, LogFields])[];
  /** Replaces the session with an empty one. */
  readonly replace: () => Promise<void>;
  /** The alarm at its time, with everything that needs no further time. */
  readonly due: () => Promise<void>;
  /** Everything that keeps the host alive. */
  readonly settled: () => Promise<void>;
}

async function host(options: KitOptions = {}, ports: Partial<AlarmPorts> = {}): Promise<Host> {
  const clock = options.clock ?? new VirtualClock();
  const [armed, destroyed, forgotten]: [number[], string[], string[]] = [[], [], []];
  const [logged, held]: [(readonly [LogEvent, LogFields])[], Promise<unknown>[]] = [[], []];
  const served = new Set<string | null>([null]);
  const kit = await sessionKit({ ...options, clock, hold: (work) => alarm.hold(work) });
  let current = kit.session;
  const list = new ApprovalsList(() => current.openApprovalIds);
  const replace = async (): Promise<void> => {
    const empty = await sessionKit({ variables: null, clock });
    current = empty.session;
  };
  const alarm = new SessionAlarm({
    session: () => current,
    clock,
    setAlarm: async (at) => void armed.push(at),
    keepAlive: (work) => void held.push(work),
    isServed: (owner) => served.has(owner),
    approvals: () => list,
    forgetRelics: async () => void forgotten.push(current.record.session_id),
    destroy: async () => {
      destroyed.push(current.record.session_id);
      // A use of the deleted session fails.
      kit.sql.exec('DROP TABLE IF EXISTS runs');
      await replace();
    },
    log: (event, fields) => void logged.push([event, fields]),
    ...ports,
  });
  kit.session.listen((batch) => alarm.published(batch));
  const settled = async (): Promise<void> => {
    for (let done = 0; done < held.length;) {
      done = held.length;
      await Promise.allSettled(held);
    }
  };
  const due = async (): Promise<void> => {
    clock.advance((armed.at(-1) ?? 0) - clock.now());
    await alarm.fire();
    await settle();
  };
  return { kit, clock, alarm, list, armed, served, destroyed, forgotten, logged, replace, due, settled };
}

const watchdog = ({ clock }: Host): number => clock.now() + limits.watchdogMs;

/** A tool that runs until the test ends it. */
function gate(): { readonly open: () => void; readonly executors: NonNullable<KitOptions['executors']> } {
  const outcome = Promise.withResolvers<ActionOutcome>();
  return { open: () => outcome.resolve({ ok: true, output: null }), executors: { tool: () => outcome.promise } };
}

describe('[J2] the time of the alarm', () => {
  test('[Z2] is not moved by a little; after the alarm, it is set again', async () => {
    const { open, executors } = gate();
    const one = await host({ executors });
    const { clock, armed, alarm } = one;
    const ended = runText(one.kit, echo('a'));
    await settle();
    const first = watchdog(one);
    expect(armed).toEqual([first]);
    clock.advance(limits.alarmSlackMs);
    await alarm.arm();
    expect(armed).toEqual([first]);
    clock.advance(1);
    await alarm.arm();
    expect(armed).toEqual([first, watchdog(one)]);
    clock.advance(limits.watchdogMs - 1);
    await alarm.fire();
    expect(armed.at(-1)).toBe(watchdog(one));
    open();
    await ended;
    await one.settled();
    expect(armed.at(-1)).toBe(one.kit.session.expiresAt);
  });

  test('[J2] is set for a session that replaces a deleted one, whose alarm was deleted with it', async () => {
    const { open, executors } = gate();
    let current: ReturnType<AlarmPorts['session']> = null;
    const one = await host({ executors }, { session: () => current ?? one.kit.session });
    const next = await host({ executors, clock: one.clock });
    const ended = [one, next].map(({ kit }) => runText(kit, echo('a')));
    await settle();
    const before = one.armed.length;
    await one.alarm.arm();
    expect(one.armed.length).toBe(before);
    current = next.kit.session;
    await one.alarm.arm();
    expect(one.armed.slice(before)).toEqual([watchdog(one)]);
    open();
    await Promise.all([...ended, one.settled(), next.settled()]);
  });

  test('without a session there is none; it is set in the turn of the creation', async () => {
    const one = await host({ variables: null });
    await one.alarm.arm();
    await one.alarm.fire();
    await one.settled();
    expect([one.armed, one.destroyed, one.logged]).toEqual([[], [], []]);
    const created = Promise.all([one.kit.session.create(SESSION_RECORD, {}), one.alarm.arm()]);
    expect(one.armed).toEqual([limits.sessionExpiryMs]);
    await created;
  });

  test('is set in the turn in which work is held, and again when the work has failed', async () => {
    const one = await host();
    const work = Promise.withResolvers<never>();
    one.alarm.hold(work.promise);
    expect(one.armed).toHaveLength(1);
    work.reject(new Error('broken'));
    await one.settled();
    expect(one.armed).toHaveLength(2);
  });
});

describe('[J2] the alarm', () => {
  /** A host after one that was lost during a run, whose alarm is set when the test allows it. */
  const nextHost = async (): Promise<{ next: Host; started: string[]; isSet: PromiseWithResolvers<void> }> => {
    const lost = await host(gate());
    void runText(lost.kit, `${echo('a')}${FINAL}`);
    await settle();
    const started: string[] = [];
    const isSet = Promise.withResolvers<void>();
    const next = await host(
      {
        sql: lost.kit.sql,
        clock: lost.clock,
        executors: {
          tool: async (call) => {
            started.push(call.action.id);
            return { ok: true, output: null };
          },
        },
      },
      { setAlarm: () => isSet.promise },
    );
    return { next, started, isSet };
  };

  test('continues the run of a lost host, after the next alarm is set', async () => {
    const { next, started, isSet } = await nextHost();
    const fired = next.alarm.fire();
    await settle();
    expect([next.kit.session.isRecovering, started]).toEqual([true, []]);
    isSet.resolve();
    await fired;
    await next.settled();
    expect([next.kit.session.runs().map(({ status }) => status), started]).toEqual([['completed'], ['a']]);
  });

  test('starts nothing if the next one cannot be set, and reports it to the platform, which repeats the alarm', async () => {
    const { next, started, isSet } = await nextHost();
    isSet.reject(new Error('no storage'));
    await expect(next.alarm.fire()).rejects.toThrow('no storage');
    await next.settled();
    expect([next.kit.session.isRecovering, started]).toEqual([true, []]);
  });

  test('does not wait for its work', async () => {
    const { open, executors } = gate();
    const lost = await host({ executors });
    void runText(lost.kit, echo('a'));
    await settle();
    const next = await host({ sql: lost.kit.sql, clock: lost.clock, executors });
    await next.alarm.fire();
    expect(next.armed).toEqual([watchdog(next)]);
    await settle();
    expect(next.kit.session.busy).toBe(true);
    open();
    await next.settled();
    expect(next.kit.session.busy).toBe(false);
  });

  test('[J9] of a session of newer code is only set again', async () => {
    const one = await host({}, { session: () => null });
    await one.alarm.fire();
    one.alarm.updateLists();
    expect(one.armed).toEqual([watchdog(one)]);
    await one.settled();
    expect([one.armed, one.list.writes, one.logged]).toEqual([[watchdog(one)], 0, []]);
  });
});

describe('[H1] the expiry', () => {
  test('ends the readers and deletes the session once, and sets no further alarm', async () => {
    const one = await host({ expiryMs: 60_000 });
    await runText(one.kit, FINAL);
    await one.settled();
    expect(one.armed.at(-1)).toBe(one.clock.now() + 60_000);
    one.clock.advance(59_999);
    await one.alarm.fire();
    await one.settled();
    expect(one.destroyed).toEqual([]);
    let isClosed = false;
    one.kit.session.listen((batch) => (isClosed ||= batch === null));
    await one.due();
    expect([one.destroyed, isClosed]).toEqual([[SESSION_RECORD.session_id], true]);
    const before = one.armed.length;
    await one.alarm.fire();
    await one.settled();
    expect([one.armed.length, one.destroyed.length, one.logged]).toEqual([before, 1, []]);
  });

  test('does not end a run that is longer than it', async () => {
    const { open, executors } = gate();
    const one = await host({ executors, expiryMs: limits.watchdogMs - 1 });
    const ended = runText(one.kit, `${echo('a')}${FINAL}`);
    await settle();
    await one.due();
    await one.due();
    expect([one.kit.session.expiresAt - one.clock.now(), one.destroyed]).toEqual([limits.watchdogMs - 1, []]);
    open();
    expect(await ended).toMatchObject({ status: 'completed' });
    await one.settled();
    expect(one.armed.at(-1)).toBe(one.clock.now() + limits.watchdogMs - 1);
  });

  test('fires once for what is due, however long the work takes: not again and again meanwhile', async () => {
    const never = new Promise<void>(() => undefined);
    const one = await host({ expiryMs: 60_000 }, { destroy: () => never });
    await one.alarm.arm();
    one.clock.advance(60_000);
    await one.alarm.fire();
    expect(one.armed.at(-1)).toBe(one.clock.now() + limits.watchdogMs);
  });

  test('is logged if the deletion fails, and the next alarm is already set', async () => {
    const fault = new Error('no storage');
    const one = await host({ expiryMs: 60_000 }, { destroy: () => Promise.reject(fault) });
    await one.alarm.arm();
    await one.due();
    expect(one.logged).toEqual([['internal_error', { fault }]]);
    expect(one.armed).toHaveLength(2);
  });
});

describe('[H5] a namespace without a key', () => {
  test('does no work until it has a key again; the alarm waits for the expiry', async () => {
    const lost = await host({ executors: gate().executors });
    void runText(lost.kit, `${echo('a')}${FINAL}`);
    await settle();
    const next = await host({ sql: lost.kit.sql, clock: lost.clock });
    next.served.clear();
    next.list.listed = 'apr_old';
    await next.alarm.fire();
    await next.settled();
    expect([next.kit.session.isRecovering, next.kit.session.runs()[0]?.status]).toEqual([true, 'running']);
    expect(new Set(next.armed)).toEqual(new Set([next.kit.session.expiresAt]));
    next.served.add(null);
    await next.alarm.fire();
    await next.settled();
    expect(next.kit.session.runs()[0]?.status).toBe('completed');
  });

  test('its sessions expire', async () => {
    const one = await host({ expiryMs: 60_000 });
    one.served.clear();
    await one.alarm.arm();
    await one.due();
    expect(one.destroyed).toEqual([SESSION_RECORD.session_id]);
  });
});

describe('[J8] approvals', () => {
  const parked = async (options: KitOptions = {}): Promise<Host> => {
    const one = await host({ tools: [PAY], ...options });
    await runText(one.kit, action('tool', 'a', 'pay'));
    await one.settled();
    expect(one.kit.session.status).toBe('waiting');
    return one;
  };

  test('the alarm ends a request at its expiry', async () => {
    const one = await parked();
    expect(one.armed.at(-1)).toBe(one.clock.now() + limits.approvalExpiryMs);
    await one.due();
    // The run continues with a timer that is due.
    one.clock.advance(0);
    await one.settled();
    expect([one.kit.session.status, one.kit.session.openApprovalIds]).toEqual(['idle', []]);
    expect(one.armed.at(-1)).toBe(one.kit.session.expiresAt);
  });

  test('a host that has recovered a request waits for its expiry instead of the watchdog', async () => {
    const lost = await parked();
    const next = await host({ sql: lost.kit.sql, clock: lost.clock, tools: [PAY] });
    next.list.listed = lost.list.listed;
    await next.alarm.fire();
    await next.settled();
    expect(next.armed).toEqual([watchdog(next), next.clock.now() + limits.approvalExpiryMs]);
  });

  test('the list is written at a request and a decision, and only if it has changed', async () => {
    const one = await parked();
    const [id = ''] = one.kit.session.openApprovalIds;
    expect([one.list.listed, one.list.writes]).toEqual([id, 1]);
    await one.kit.session.resolveApproval(id, false, null);
    await settle();
    await one.settled();
    expect([one.list.listed, one.list.isBehind]).toEqual(['', false]);
    const { writes } = one.list;
    one.alarm.updateLists();
    expect(one.list.writes).toBe(writes);
  });

  test.each([
    [1, 'approval_requested'],
    [1, 'approval_resolved'],
    [1, 'action_failed'],
    [1, 'action_cancelled'],
    [1, 'agent_waiting'],
    [1, 'agent_cancelled'],
    [0, 'action_queued'],
    [0, 'action_completed'],
  ] as const)('a list that is behind is written %i times after the event %s', async (times, type) => {
    const one = await host();
    one.list.listed = 'apr_old';
    one.alarm.published([{ type: 'iteration_started' }, { type }] as unknown as EventBatch);
    one.alarm.published(null);
    expect(one.list.writes).toBe(times);
    await one.settled();
    expect(one.list.isBehind).toBe(times === 0);
  });

  test('a list that could not be written is written again by the watchdog', async () => {
    const one = await host({ tools: [PAY] });
    one.list.isBroken = true;
    await runText(one.kit, action('tool', 'a', 'pay'));
    await one.settled();
    expect(one.logged.map(([, { fault }]) => String(fault))).toContain('Error: the list does not answer');
    expect(one.armed.at(-1)).toBe(watchdog(one));
    await one.due();
    expect(one.armed.at(-1)).toBe(watchdog(one));
    one.list.isBroken = false;
    await one.due();
    expect(one.list.isBehind).toBe(false);
    expect(one.armed.at(-1)).toBe(one.kit.session.nextWake());
    expect(one.armed.at(-1)).toBeGreaterThan(watchdog(one));
  });

  test('a list that is behind does not delay an earlier alarm', async () => {
    const one = await host({ expiryMs: 10_000, tools: [PAY], clock: new VirtualClock(0) });
    one.list.listed = 'apr_old';
    await one.alarm.arm();
    expect(one.armed).toEqual([10_000]);
  });

  test('the list is not written before an earlier host’s runs are recovered, or without a session', async () => {
    const lost = await parked();
    const next = await host({ sql: lost.kit.sql, clock: lost.clock, tools: [PAY] });
    next.list.listed = lost.list.listed;
    expect([next.kit.session.isRecovering, next.list.isBehind]).toEqual([true, true]);
    next.alarm.updateLists();
    expect(next.list.writes).toBe(0);
    await next.kit.session.recover();
    next.list.listed = '';
    next.alarm.updateLists();
    await next.settled();
    expect([next.list.listed, next.list.writes]).toEqual([lost.list.listed, 1]);
    await next.replace();
    next.alarm.updateLists();
    expect([next.list.isBehind, next.list.writes]).toEqual([true, 1]);
  });
});

describe('[F3] periodic feeds', () => {
  const agent: NonNullable<KitOptions['agent']> = (one) => ({
    ...one,
    feeds: [
      {
        id: 'f',
        when: 'periodic',
        intervalMs: 10_000,
        cacheTtlMs: 0,
        maxTokens: 100,
        enabled: true,
        source: { type: 'tool', name: 'echo', action: null, params: {} },
        onError: 'use_cached',
        defaultValue: null,
      },
    ],
  });

  test('are refreshed by the alarm at their time, until the conversation is idle', async () => {
    let calls = 0;
    const executors = { tool: async (): Promise<ActionOutcome> => ({ ok: true, output: (calls += 1) }) };
    const one = await host({ agent, executors, script: [FINAL] });
    await say(one.kit, 'hi');
    await one.settled();
    const last = one.clock.now();
    for (let time = 1; one.armed.at(-1) !== one.kit.session.expiresAt; time += 1) {
      expect([one.armed.at(-1), calls]).toEqual([last + time * 10_000, time]);
      await one.due();
    }
    expect([one.clock.now(), calls]).toEqual([last + limits.feedIdleMs, limits.feedIdleMs / 10_000]);
  });

  test('[H1] a session that is deleted during their refresh gets no alarm afterwards', async () => {
    const values = [Promise.resolve<ActionOutcome>({ ok: true, output: 1 })];
    const slow = Promise.withResolvers<ActionOutcome>();
    const one = await host({ agent, executors: { tool: () => values.pop() ?? slow.promise }, script: [FINAL] });
    await say(one.kit, 'hi');
    await one.settled();
    one.clock.advance(10_000);
    await one.alarm.fire();
    await settle();
    const before = one.armed.length;
    await one.replace();
    slow.resolve({ ok: true, output: 2 });
    await one.settled();
    expect([one.armed.length, one.logged]).toEqual([before, []]);
  });
});

describe('[R6] the relics of a session', () => {
  const relic = { executors: { relic: async (): Promise<ActionOutcome> => ({ ok: true, output: null }) } };
  const called = `${action('relic', 'r', 'notes.get')}${FINAL}`;

  test.each([
    ['deleted', 'execution', 'called one', called, 1],
    ['deleted', 'child', 'called one', called, 1],
    ['kept', 'chat', 'called one', called, 0],
    ['not looked for', 'execution', 'called none', FINAL, 0],
  ] as const)('are %s if a run of kind %s has %s', async (_effect, kind, _what, text, times) => {
    const one = await host({ ...relic, from: 'notes_keeper', kind });
    await runText(one.kit, text);
    await one.settled();
    expect(one.forgotten).toHaveLength(times);
    expect([one.armed.at(-1), one.logged]).toEqual([one.kit.session.expiresAt, []]);
  });

  test('are not deleted while its run waits for a person', async () => {
    const one = await host({ ...relic, from: 'notes_keeper', kind: 'execution', tools: [PAY] });
    await runText(one.kit, `${action('relic', 'r', 'notes.get')}${action('tool', 'a', 'pay')}`);
    await one.settled();
    expect([one.kit.session.status, one.forgotten]).toEqual(['waiting', []]);
    await one.kit.session.resolveApproval(one.kit.session.openApprovalIds[0] ?? '', false, null);
    await settle();
    await one.settled();
    expect([one.kit.session.status, one.forgotten.length]).toEqual(['idle', 1]);
  });

  test('a failed deletion is logged', async () => {
    const fault = new Error('the store does not answer');
    const more = { forgetRelics: () => Promise.reject(fault) };
    const one = await host({ ...relic, from: 'notes_keeper', kind: 'execution' }, more);
    await runText(one.kit, called);
    await one.settled();
    expect(one.logged).toEqual([['internal_error', { fault }]]);
  });

  test('nothing is deleted after the session itself, or before its first run', async () => {
    const one = await host({ kind: 'execution' });
    one.alarm.hold(Promise.resolve());
    await one.settled();
    await one.replace();
    one.alarm.hold(Promise.resolve());
    await one.settled();
    expect([one.forgotten, one.logged]).toEqual([[], []]);
  });
});

describe('[C2] objects of deleted sessions', () => {
  /** Objects that are due at a time, until they are collected. */
  function deletedAt(
    at: number,
  ): Required<Pick<AlarmPorts, 'deletedObjects'>> & { dueAt: number | null; calls: number } {
    const state = {
      dueAt: at as number | null,
      calls: 0,
      deletedObjects: () => ({
        dueAt: state.dueAt,
        collect: async () => {
          state.calls += 1;
          if ((state.dueAt ?? Infinity) <= clock.now()) state.dueAt = null;
        },
      }),
    };
    return state;
  }
  let clock = new VirtualClock();
  beforeEach(() => {
    clock = new VirtualClock();
  });

  test('wake the host although there is no session, and nothing after that', async () => {
    const objects = deletedAt(clock.now() + 500);
    const one = await host({ variables: null, clock }, objects);
    await one.alarm.arm();
    expect(one.armed).toEqual([clock.now() + 500]);
    await one.due();
    await one.settled();
    // For a host that ends meanwhile.
    expect(one.armed.slice(1)).toEqual([clock.now() + limits.watchdogMs]);
    expect([objects.calls, objects.dueAt]).toEqual([1, null]);
    await one.alarm.arm();
    expect(one.armed).toHaveLength(2);
  });

  test('wake the host before the session needs it, also in a namespace without keys', async () => {
    const objects = deletedAt(clock.now() + 500);
    const one = await host({ clock }, objects);
    one.served.clear();
    await one.alarm.arm();
    expect(one.armed).toEqual([clock.now() + 500]);
    await one.due();
    await one.settled();
    expect(objects.calls).toBe(1);
    expect(one.armed.at(-1)).toBe(one.kit.session.expiresAt);
  });
});

describe('[C6] the directory of sessions', () => {
  /** An outbox that is due at a time, or has everything. */
  class Directory {
    dueAt: number | null = null;
    updates = 0;
    answer: () => Promise<void> = async () => {
      this.dueAt = null;
    };

    update = (): Promise<void> | null => {
      this.updates += 1;
      return this.dueAt === null ? null : this.answer();
    };
  }

  const directed = async (options: KitOptions = {}): Promise<Host & { directory: Directory }> => {
    const directory = new Directory();
    const one = await host(options, { directory: () => directory });
    return { ...one, directory };
  };

  test('is written after the events that change a session and at the end of its work, without delaying them', async () => {
    const one = await directed();
    one.directory.dueAt = one.clock.now();
    one.directory.answer = () => new Promise(() => undefined);
    await say(one.kit, 'hello');
    await settle();
    expect(one.directory.updates).toBeGreaterThanOrEqual(2);
  });

  test('that is being written has an alarm for the host’s end; then the alarm is for the session again', async () => {
    const one = await directed();
    one.directory.dueAt = one.clock.now();
    await one.alarm.arm();
    expect(one.armed.at(-1)).toBe(watchdog(one));
    one.alarm.updateLists();
    await one.settled();
    expect(one.armed.at(-1)).toBe(one.kit.session.expiresAt);
  });

  test('that could not be written is tried again by the alarm, at its time', async () => {
    const one = await directed();
    one.directory.dueAt = one.clock.now();
    one.directory.answer = async () => {
      one.directory.dueAt = one.clock.now() + 5_000;
      return await Promise.reject(new Error('the index is away'));
    };
    one.alarm.updateLists();
    await one.settled();
    expect(one.logged.map(([event]) => event)).toEqual(['internal_error']);
    expect(one.armed.at(-1)).toBe(one.clock.now() + 5_000);
    const { updates } = one.directory;
    one.directory.answer = async () => void (one.directory.dueAt = null);
    await one.due();
    await one.settled();
    expect(one.directory.updates).toBe(updates + 1);
    expect(one.armed.at(-1)).toBe(one.kit.session.expiresAt);
  });

  test('forgets a deleted session also while no session exists', async () => {
    const directory = new Directory();
    const one = await host({ variables: null }, { directory: () => directory });
    directory.dueAt = one.clock.now() + 900;
    await one.alarm.arm();
    expect(one.armed).toEqual([one.clock.now() + 900]);
    await one.due();
    await one.settled();
    expect([directory.dueAt, one.logged]).toEqual([null, []]);
  });
});
