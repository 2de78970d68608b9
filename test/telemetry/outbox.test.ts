import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import type { LogEvent, LogFields } from '../../src/domain/log.ts';
import { TelemetryOutbox } from '../../src/telemetry/outbox.ts';
import type { Parts, SendResult, Signal } from '../../src/telemetry/outbox.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';

const SENT: SendResult = { type: 'sent' };
const failed = (afterMs: number | null = null): SendResult => ({ type: 'failed', why: 'busy', afterMs });

/** A session whose events up to `lastSeq` are durable; each tenth one ends something, one second after the other. */
class Scene {
  readonly clock = new VirtualClock(1_000_000);
  readonly stored = new Map<string, unknown>();
  readonly requests: string[] = [];
  readonly logged: [LogEvent, LogFields][] = [];
  writes = 0;
  lastSeq = 0;
  answers: SendResult[] = [];
  /** Names of the requests for traces. */
  parts = [''];
  /** How often reading fails. */
  unreadable = 0;
  /** Called before the answer to a request. */
  during: (() => Promise<void>) | null = null;

  open(): TelemetryOutbox {
    return new TelemetryOutbox({
      storage: {
        get: <T>(key: string) => this.stored.get(key) as T | undefined,
        put: (key, value) => {
          this.writes += 1;
          this.stored.set(key, structuredClone(value));
        },
      },
      clock: this.clock,
      journal: () => ({
        lastSeq: this.lastSeq,
        first: 0,
        hasOpen: false,
        endAfter: (seq) => (Math.floor(this.lastSeq / 10) * 10 > seq ? 1_000_000 : null),
      }),
      read: (range) => this.read(range),
      send: async (signal: Signal, body) => {
        await this.during?.();
        this.requests.push(body);
        expect(body.startsWith(signal)).toBe(true);
        return this.answers.shift() ?? SENT;
      },
      log: (event, fields) => void this.logged.push([event, fields]),
    });
  }

  async *read({ after, until }: { readonly after: number; readonly until: number }): Parts {
    if (this.unreadable > 0) {
      this.unreadable -= 1;
      throw new Error('the events cannot be read');
    }
    for (const part of this.parts) yield { signal: 'traces', body: `traces ${part}${after + 1}-${until}` };
    yield { signal: 'metrics', body: `metrics ${after + 1}-${until}` };
    return 1_000_000 + until;
  }

  take(): string[] {
    return this.requests.splice(0);
  }
}

/** A session whose event `lastSeq` has ended something. */
function ended(lastSeq = 10): { readonly scene: Scene; readonly outbox: TelemetryOutbox } {
  const scene = new Scene();
  const outbox = scene.open();
  scene.lastSeq = lastSeq;
  outbox.ended();
  return { scene, outbox };
}

async function due(outbox: TelemetryOutbox, { clock }: Scene): Promise<void> {
  await clock.advance(Math.max(0, (outbox.dueAt ?? 0) - clock.now()));
  await outbox.update();
}

describe('[O1] the export', () => {
  test('is due soon after an end, and has everything since the last one', async () => {
    const scene = new Scene();
    const outbox = scene.open();
    expect(outbox.dueAt).toBeNull();
    scene.lastSeq = 10;
    outbox.ended();
    expect(outbox.dueAt).toBe(1_000_000 + limits.telemetryDelayMs);
    await outbox.update();
    expect(scene.take()).toEqual([]);
    await due(outbox, scene);
    expect(scene.take()).toEqual(['traces 1-10', 'metrics 1-10']);
    expect(outbox.dueAt).toBeNull();
    scene.lastSeq = 24;
    outbox.ended();
    await due(outbox, scene);
    expect(scene.take()).toEqual(['traces 11-24', 'metrics 11-24']);
  });

  test('nothing is stored or sent while nothing has ended', async () => {
    const scene = new Scene();
    const outbox = scene.open();
    scene.lastSeq = 9;
    outbox.ended();
    await outbox.update();
    expect([scene.take(), scene.writes]).toEqual([[], 0]);
  });

  test('continues on another host, at least once', async () => {
    const scene = new Scene();
    const first = scene.open();
    first.wrote(1);
    scene.lastSeq = 10;
    first.ended();
    await scene.clock.advance(limits.telemetryDelayMs);
    // The host ends after the collector's answer, and before the cursor is durable.
    const durable = new Map(scene.stored);
    await first.update();
    expect(scene.take()).toHaveLength(2);
    scene.stored.clear();
    for (const [key, value] of durable) scene.stored.set(key, value);
    const second = scene.open();
    await due(second, scene);
    expect(scene.take()).toEqual(['traces 1-10', 'metrics 1-10']);
  });

  test('a failure repeats the same events, without what the collector has', async () => {
    const { scene, outbox } = ended();
    scene.answers = [SENT, failed()];
    await due(outbox, scene);
    expect(scene.take()).toEqual(['traces 1-10', 'metrics 1-10']);
    // more has ended meanwhile, and the host is another one
    scene.lastSeq = 30;
    const other = scene.open();
    expect(other.dueAt).toBe(scene.clock.now() + limits.telemetryRetryMs);
    await due(other, scene);
    expect(scene.take()).toEqual(['metrics 1-10']);
    await due(other, scene);
    expect(scene.take()).toEqual(['traces 11-30', 'metrics 11-30']);
  });

  test('waits longer after each failure, and as long as the collector says', async () => {
    const { scene, outbox } = ended();
    const delays: number[] = [];
    for (const answer of [failed(), failed(), failed(60_000), failed()]) {
      scene.answers = [answer];
      await due(outbox, scene);
      delays.push((outbox.dueAt ?? 0) - scene.clock.now());
    }
    expect(delays).toEqual([5_000, 10_000, 60_000, 40_000]);
  });

  test('gives up after a bounded number of failures, and says so', async () => {
    const { scene, outbox } = ended();
    for (let times = 0; times < limits.telemetryAttempts; times += 1) {
      expect(scene.logged).toEqual([]);
      scene.answers = [failed(), SENT];
      await due(outbox, scene);
    }
    expect(scene.logged).toMatchObject([['telemetry_dropped', { code: 'unavailable' }]]);
    expect(scene.clock.now() - 1_000_000).toBeGreaterThan(3_600_000);
    expect(outbox.dueAt).toBeNull();
  });

  test('what the collector refuses is dropped at once, and said, and holds back nothing', async () => {
    const { scene, outbox } = ended();
    scene.parts = ['a ', 'b '];
    scene.answers = [{ type: 'refused', why: 'the collector answered 400' }];
    await due(outbox, scene);
    expect(scene.take()).toEqual(['traces a 1-10', 'traces b 1-10', 'metrics 1-10']);
    expect(scene.logged).toMatchObject([
      ['telemetry_dropped', { code: 'refused', message: 'traces: the collector answered 400' }],
    ]);
    expect(outbox.dueAt).toBeNull();
  });

  test('after a failure, the other requests of the signal wait for the repeat', async () => {
    const { scene, outbox } = ended();
    scene.parts = ['a ', 'b '];
    scene.answers = [failed()];
    await due(outbox, scene);
    expect(scene.take()).toEqual(['traces a 1-10', 'metrics 1-10']);
    await due(outbox, scene);
    expect(scene.take()).toEqual(['traces a 1-10', 'traces b 1-10']);
  });

  test('events that cannot be read are tried again later, and then dropped', async () => {
    const { scene, outbox } = ended();
    scene.unreadable = limits.telemetryAttempts;
    await due(outbox, scene);
    expect(outbox.dueAt).toBe(scene.clock.now() + limits.telemetryRetryMs);
    for (let times = 1; times < limits.telemetryAttempts; times += 1) await due(outbox, scene);
    expect(scene.logged.map(([event]) => event)).toContain('telemetry_dropped');
    expect(outbox.dueAt).toBeNull();
  });

  test('one at a time; meanwhile the alarm is for a host that ends', async () => {
    const { scene, outbox } = ended();
    await scene.clock.advance(limits.telemetryDelayMs);
    const { promise, resolve } = Promise.withResolvers<void>();
    scene.during = () => promise;
    const first = outbox.update();
    expect(outbox.dueAt).toBe(scene.clock.now() + limits.telemetryTimeoutMs);
    await outbox.update();
    resolve();
    await first;
    expect(scene.take()).toEqual(['traces 1-10', 'metrics 1-10']);
  });

  test('a deleted session is exported before, once and within a bound; nothing is stored after', async () => {
    const { scene, outbox } = ended();
    const { promise, resolve } = Promise.withResolvers<void>();
    scene.during = () => promise;
    const closing = outbox.close();
    await scene.clock.advance(limits.telemetryCloseMs);
    await closing;
    resolve();
    await scene.clock.advance(1);
    expect(scene.take()[0]).toBe('traces 1-10');
    expect([scene.writes, outbox.dueAt]).toEqual([0, null]);
    expect(scene.logged).toMatchObject([['telemetry_dropped', { code: 'deleted' }]]);
  });

  test('a deleted session is exported whole, also after a failure', async () => {
    const { scene, outbox } = ended();
    scene.answers = [failed()];
    await due(outbox, scene);
    scene.take();
    scene.lastSeq = 30;
    outbox.ended();
    await outbox.close();
    expect(scene.take()).toEqual(['traces 1-10', 'traces 11-30', 'metrics 11-30']);
    expect(scene.logged).toEqual([]);
  });

  test('many events are exported in several steps', async () => {
    const { scene, outbox } = ended(limits.telemetryEvents + 10);
    await due(outbox, scene);
    expect(scene.take().filter((body) => body.startsWith('traces'))).toEqual([
      `traces 1-${limits.telemetryEvents}`,
      `traces ${limits.telemetryEvents + 1}-${limits.telemetryEvents + 10}`,
    ]);
  });
});
