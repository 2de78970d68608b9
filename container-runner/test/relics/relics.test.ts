/** The life cycle of relics: start, health, restart, pause, idleness, scopes (R5). */
import { pino } from 'pino';
import { beforeEach, describe, expect, test } from 'vitest';

import { limits } from '../../limits.ts';
import { DEFAULT_OPERATOR_LIMITS } from '../../operator-limits.ts';
import { relicDefinition, type RelicSpec } from '../../relics/definition.ts';
import { Relics } from '../../relics/relics.ts';
import type { RelicClock } from '../../relics/relic.ts';
import type { RelicAnswer } from '../../relics/relic-service.ts';
import { FakeRelicHost, type FakeService } from '../support/fake-relic-host.ts';
import { RelicCaller } from '../support/relic-kit.ts';
import { startRunner } from '../support/test-runner.ts';
import { eventually } from '../../../test/support/eventually.ts';

/** A clock that only the test advances. */
class ManualClock implements RelicClock {
  #now = 1_000_000;
  #timers: { readonly at: number; readonly callback: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Advances the clock, and runs everything that follows. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      await settle();
      const next = this.#timers.filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
    }
    this.#now = until;
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let at = 0; at < 30; at += 1) await Promise.resolve();
}

let clock: ManualClock;
let host: FakeRelicHost;
let relics: Relics;
beforeEach(() => {
  clock = new ManualClock();
  host = new FakeRelicHost();
  relics = new Relics({
    host,
    absence: '',
    clock,
    log: pino({ level: 'silent' }),
    operatorLimits: DEFAULT_OPERATOR_LIMITS,
  });
});

const spec = (more: Record<string, unknown> = {}): RelicSpec =>
  relicDefinition.parse({ image: 'busybox', port: 80, health: { path: '/health' }, ...more });
const get = { method: 'GET', path: '/x', body: null } as const;
const call = (scope = 'ses_1', definition = spec(), timeoutMs = 10_000): Promise<RelicAnswer> =>
  relics.call({ scope, name: 'r' }, definition, get, timeoutMs);
const last = (): FakeService => {
  const service = host.started.at(-1);
  if (service === undefined) throw new Error('nothing was started');
  return service;
};

describe('a relic', () => {
  test('[R5] its state is deleted only when it has stopped, also if it was stopping already', async () => {
    await call('ses_1', spec({ idle_ms: 1_000 }));
    const gone = Promise.withResolvers<void>();
    const service = last();
    const stop = service.stop.bind(service);
    service.stop = async () => {
      await gone.promise;
      await stop();
    };
    await clock.advance(2_000);
    expect(relics.running).toBe(0);
    const forgotten = relics.stop('ses_1', null, true);
    await settle();
    expect(host.forgotten).toEqual([]);
    gone.resolve();
    await forgotten;
    expect(host.forgotten).toEqual([{ scope: 'ses_1', name: null }]);
  });

  test('[R5] starts with its first call and serves the next ones', async () => {
    expect(await call()).toMatchObject({ end: 'answered', status: 200 });
    expect(await call()).toMatchObject({ end: 'answered' });
    expect(host.started).toHaveLength(1);
    expect(last().calls).toEqual([get, get]);
  });

  test('[R5] calls wait until it has passed its health check', async () => {
    host.prepare = (service) => {
      service.healthy = { end: 'refused' };
    };
    const answer = call();
    await clock.advance(1_000);
    expect(last().calls).toEqual([]);
    last().healthy = { end: 'answered', status: 204, type: '', body: '' };
    await clock.advance(limits.relicStartPollMs);
    expect(await answer).toMatchObject({ end: 'answered' });
  });

  test('[R5] a relic that dies restarts, with a growing delay', async () => {
    await call();
    const starts: number[] = [];
    for (let death = 1; death < limits.relicDeaths; death += 1) {
      const diedAt = clock.now();
      const before = host.started.length;
      last().die('exit code 1');
      while (host.started.length === before) await clock.advance(50);
      starts.push(clock.now() - diedAt);
    }
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    expect(starts[0]).toBeGreaterThanOrEqual(limits.relicBackoffMs);
    expect(starts.at(-1)).toBeGreaterThanOrEqual(limits.relicBackoffMs * 2 ** (limits.relicDeaths - 2));
  });

  test('[R5] after several deaths in a row it pauses, and calls fail with its last output; then it restarts', async () => {
    host.prepare = () => {
      throw new Error('no such image');
    };
    const first = call();
    first.catch(() => undefined);
    await clock.advance(5_000);
    await expect(first).rejects.toThrow('no such image');
    await expect(call()).rejects.toThrow(`died ${limits.relicDeaths} times in a row`);
    await clock.advance(limits.relicRestMs);
    host.prepare = () => undefined;
    expect(await call()).toMatchObject({ end: 'answered' });
  });

  test('[R5] deaths long after a start are not counted together', async () => {
    await call();
    for (let death = 0; death < limits.relicDeaths * 2; death += 1) {
      await clock.advance(limits.relicStableMs);
      last().die('out of memory');
      await clock.advance(limits.relicBackoffMs);
      expect(await call()).toMatchObject({ end: 'answered' });
    }
  });

  test('[R5] a call that was not sent is repeated; a call that may have been received is not', async () => {
    await call();
    const first = last();
    let asked = 0;
    first.answer = () => {
      asked += 1;
      return asked < 3 ? { end: 'refused' } : { end: 'broken', why: 'reset' };
    };
    const answer = call();
    await clock.advance(limits.relicStartPollMs * 5);
    expect(await answer).toEqual({ end: 'broken', why: 'reset' });
    expect(asked).toBe(3);
  });

  test('[R5] a call has a timeout, even if the relic does not start', async () => {
    host.prepare = (service) => {
      service.healthy = { end: 'refused' };
    };
    const answer = call('ses_1', spec(), 2_000);
    answer.catch(() => undefined);
    await clock.advance(2_000);
    await expect(answer).rejects.toThrow('was not ready within 2 s');
  });

  test('[R5] several failed health checks in a row end it, and it restarts', async () => {
    await call('ses_1', spec({ health: { path: '/health', interval_ms: 1_000 } }));
    const first = last();
    first.healthy = { end: 'timeout' };
    await clock.advance(1_000 * (limits.relicHealthMisses - 1));
    expect(first.stopped).toBe(false);
    await clock.advance(1_000 + limits.relicBackoffMs);
    expect(first.stopped).toBe(true);
    expect(host.started).toHaveLength(2);
  });

  test('[R5] it stops after its idle time, and not while it is in use', async () => {
    const definition = spec({ idle_ms: 5_000 });
    await call('ses_1', definition);
    let finish: (answer: RelicAnswer) => void = () => undefined;
    last().answer = () =>
      new Promise((resolve) => {
        finish = resolve;
      });
    const long = call('ses_1', definition, 60_000);
    await clock.advance(20_000);
    expect(last().stopped).toBe(false);
    finish({ end: 'answered', status: 200, type: '', body: '' });
    await long;
    await clock.advance(4_999);
    expect(last().stopped).toBe(false);
    await clock.advance(2_000);
    expect(last().stopped).toBe(true);
    expect(relics.list(null)).toEqual([]);
    expect(host.left).toEqual(['ses_1']);
  });

  test('[R5] a changed definition replaces the previous one', async () => {
    await call();
    const former = last();
    await call('ses_1', spec({ port: 81 }));
    expect(former.stopped).toBe(true);
    expect(host.started).toHaveLength(2);
    expect(relics.list('ses_1')).toHaveLength(1);
  });

  test('[R8] past the running limit calls wait, past the waiting limit they are refused, and all are served', async () => {
    await call();
    const open: ((answer: RelicAnswer) => void)[] = [];
    last().answer = () =>
      new Promise((resolve) => {
        open.push(resolve);
      });
    const calls = Array.from({ length: limits.relicCalls + limits.relicCallsWaiting }, () => call());
    await settle();
    expect(open).toHaveLength(limits.relicCalls);
    await expect(call()).rejects.toMatchObject({ code: 'busy' });
    const done: RelicAnswer = { end: 'answered', status: 200, type: '', body: '' };
    while (open.length > 0) {
      open.shift()?.(done);
      await settle();
    }
    expect(await Promise.all(calls)).toHaveLength(calls.length);
  });
});

describe('scopes of relics', () => {
  test('[R5] each scope has its own relic of a name', async () => {
    await call('ses_1');
    await call('ses_2');
    expect(host.started.map(({ id }) => id.scope)).toEqual(['ses_1', 'ses_2']);
  });

  test('[R5] the end of a session stops only its own relics', async () => {
    await call('ses_1');
    await call('ses_2');
    expect(await relics.stop('ses_1', null, true)).toBe(1);
    expect(host.started.map(({ stopped }) => stopped)).toEqual([true, false]);
    expect(host.forgotten).toEqual([{ scope: 'ses_1', name: null }]);
  });

  test('[R5] a scope is released once, when its last relic has stopped', async () => {
    await relics.call({ scope: 'ses_1', name: 'fast' }, spec(), get, 1_000);
    await relics.call({ scope: 'ses_1', name: 'slow' }, spec(), get, 1_000);
    const slow = last();
    let finish: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    slow.stop = async () => {
      await held;
      slow.die('stopped');
    };
    const stopped = relics.stop('ses_1', null, false);
    await settle();
    expect(host.started[0]?.stopped).toBe(true);
    expect(host.left).toEqual([]);
    finish();
    await stopped;
    expect(host.left).toEqual(['ses_1']);
  });

  test('[R8] the relics of a session and of all sessions are limited', async () => {
    for (let at = 0; at < limits.relicsPerScope; at += 1) {
      await relics.call({ scope: 'ses_1', name: `r${at}` }, spec(), get, 1_000);
    }
    await expect(relics.call({ scope: 'ses_1', name: 'more' }, spec(), get, 1_000)).rejects.toMatchObject({
      code: 'busy',
    });
    expect(await call('ses_2')).toMatchObject({ end: 'answered' });
  });

  test('[R5] one tenant cannot use all places', async () => {
    const take = async (tenant: string, at: number): Promise<unknown> =>
      await relics
        .find({ scope: `ses_${tenant}_${at}`, name: 'r' }, spec(), tenant)
        .catch((fault: Error & { readonly code: string }) => fault.code);
    const taken = await Promise.all(Array.from({ length: DEFAULT_OPERATOR_LIMITS.relics }, (_, at) => take('ann', at)));
    expect(taken.filter((one) => one === 'busy')).toHaveLength(DEFAULT_OPERATOR_LIMITS.relics / 2);
    expect(await take('bob', 0)).not.toBe('busy');
  });

  test('[R5] a relic that cannot run here fails with the reason', async () => {
    await expect(call('ses_1', spec({ port: 1 }))).rejects.toThrow('port 1 is not for relics');
    const none = new Relics({
      host: null,
      absence: 'no Docker engine answers',
      clock,
      log: pino({ level: 'silent' }),
      operatorLimits: DEFAULT_OPERATOR_LIMITS,
    });
    await expect(none.call({ scope: 'ses_1', name: 'r' }, spec(), get, 1_000)).rejects.toThrow(
      'no Docker engine answers',
    );
  });
});

describe('through the HTTP API', () => {
  test('[R5] relics can be called, listed, started and stopped with signed requests', async () => {
    const runner = await startRunner({ sandboxes: [], relicHost: host });
    try {
      const session = new RelicCaller(runner, 'ses_http');
      const definition = { image: 'busybox', port: 80, health: { path: '/health' } };
      host.prepare = (service) => {
        service.answer = ({ method, path, body }) => ({
          end: 'answered',
          status: 201,
          type: 'application/json',
          body: JSON.stringify({ method, path, body }),
        });
      };
      expect(await session.call('r', definition, ['POST', '/a?b=%2F', { c: 1 }])).toMatchObject({
        httpStatus: 200,
        status: 201,
        body: { method: 'POST', path: '/a?b=%2F', body: '{"c":1}' },
      });
      expect(await session.list()).toMatchObject([{ space: 'ses_http', name: 'r', state: 'running' }]);
      const begun = await runner.ask('POST', '/relics/r2/start', { space: 'ses_http', relic: definition });
      expect(await begun.json()).toEqual({ state: 'running' });
      for (const [name, body] of [
        ['../x', definition],
        ['r', { ...definition, privileged: true }],
        ['r', { ...definition, mounts: ['/:/host'] }],
        ['r', { ...definition, image: '../../etc' }],
        ['r', { ...definition, image: null }],
        ['r', { ...definition, health: { path: '/x\r\nHost: y' } }],
      ] as const) {
        const refused = await session.call(encodeURIComponent(name), body, ['GET', '/']);
        expect([refused.httpStatus, refused.code]).toEqual([400, 'invalid_request']);
      }
      expect((await session.call('r', definition, ['GET', '/ x'])).httpStatus).toBe(400);
      expect((await session.call('r', definition, ['TRACE', '/'])).httpStatus).toBe(400);
      await session.stop(true);
      await eventually(async () => expect(await session.list()).toEqual([]));
      const health = (await (await fetch(`${runner.url}/health`)).json()) as Record<string, unknown>;
      expect(health).toMatchObject({ relics: { level: 'fake', running: 0 }, executors: ['tool', 'relic'] });
    } finally {
      await runner.close();
    }
  });
});
