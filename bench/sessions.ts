/**
 * `npm run bench:sessions`: sessions in one workerd, compared with a bare object that only relays and with the chat
 * agent of Cloudflare's Agents SDK: new sessions per second, a chat turn, time to first text, memory, idle readers,
 * and bursts of events.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { percentile, table, writeSection } from './report.ts';
import { barsOfOneUnit, writeBars } from './chart.ts';
import { contestants } from './sessions/contestants.ts';
import type { Contestant, Turn } from './sessions/contestants.ts';
import { installPeer, peerVersion, startHost } from './sessions/host.ts';
import type { Host } from './sessions/host.ts';
import { collectedMemory } from './sessions/memory.ts';
import { startScriptedLlm } from '../cli/scripted-llm/server.ts';

const TOKENS = 200;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 9);
const SESSIONS = Number(process.env['BENCH_SESSIONS'] ?? 100);
const TURNS = Number(process.env['BENCH_TURNS'] ?? 8);
const LIVE = Number(process.env['BENCH_LIVE'] ?? 500);
const READERS = 200;
const AT_ONCE = 8;
/** Until what new sessions have left to do is done: the list of sessions is written after a second. */
const SETTLE_MS = 2_500;
/** Of a connected session, in KiB. */
const MEMORY_TARGET = 350;

installPeer();
// one word per chunk, sent as fast as the client reads
const words = Array.from({ length: TOKENS }, (_, n) => [`word${n} `, { pauseMs: 0 }]).flat();
const model = await startScriptedLlm([{ stream: [...words, { finish: 'stop' }] }]);
const host = await startHost(model.baseUrl);
try {
  const all = contestants(`word${TOKENS - 1} `);
  const made = await measureNewSessions(all);
  for (const [name, rounds] of made) console.error(`${name}: ${medianOf(rounds, 'rate').toFixed(0)} new sessions/s`);
  const turns = await measureTurns(all);
  for (const [name, taken] of turns) {
    console.error(
      `${name}: ${percentile(
        taken.map(({ totalMs }) => totalMs),
        0.5,
      ).toFixed(1)} ms a turn`,
    );
  }
  const burst = await measureBurst(host);
  console.error(burst);
  const idle = await measureReaders(host);
  console.error(idle);
  const memory = await measureMemory(all);
  const body = report(all, made, turns, memory, idle, burst);
  writeSection('Sessions', 'npm run bench:sessions', body);
  console.log(body);
} finally {
  await host.stop();
  await model[Symbol.asyncDispose]();
}

/** Runs `work` a number of times, some of them concurrently. */
async function inParallel(count: number, atOnce: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

interface Made {
  /** New sessions per second. */
  readonly rate: number;
  /** CPU time of workerd for one of them, with what it does afterwards. */
  readonly cpuMs: number;
}

function medianOf(rounds: readonly Made[], value: keyof Made): number {
  return percentile(
    rounds.map((round) => round[value]),
    0.5,
  );
}

/** By round; all systems take turns. */
async function measureNewSessions(all: readonly Contestant[]): Promise<Map<string, Made[]>> {
  const made = new Map(all.map(({ name }) => [name, [] as Made[]]));
  for (let round = -2; round < ROUNDS; round += 1) {
    for (const { name, create } of all) {
      const startedAt = performance.now();
      const before = host.usage().cpuMs;
      await inParallel(SESSIONS, AT_ONCE, async () => void (await create(host.base)));
      const rate = (SESSIONS * 1_000) / (performance.now() - startedAt);
      await delay(SETTLE_MS);
      const cpuMs = (host.usage().cpuMs - before) / SESSIONS;
      if (round >= 0) made.get(name)?.push({ rate, cpuMs });
    }
  }
  return made;
}

async function measureTurns(all: readonly Contestant[]): Promise<Map<string, Turn[]>> {
  const turns = new Map<string, Turn[]>();
  for (let round = -2; round < ROUNDS; round += 1) {
    for (const { name, create, turn } of all) {
      if (turn === null) continue;
      for (let n = 0; n < TURNS; n += 1) {
        const taken = await turn(host.base, await create(host.base));
        if (round >= 0) turns.set(name, [...(turns.get(name) ?? []), taken]);
      }
    }
  }
  return turns;
}

/** KiB per session, each system in its own workerd: with a page connected to each session, and after the disconnect. */
async function measureMemory(all: readonly Contestant[]): Promise<Map<string, { live: number; idle: number }>> {
  const found = new Map<string, { live: number; idle: number }>();
  for (const { name, create, connect } of all) {
    if (connect === null) continue;
    const own = await startHost(model.baseUrl);
    try {
      const ends: (() => void)[] = [];
      const open = async (count: number): Promise<void> =>
        await inParallel(count, AT_ONCE, async () => void ends.push(await connect(own.base, await create(own.base))));
      const resident = async (): Promise<number> => (await collectedMemory(own)).residentKb;
      // The first sessions include one-time costs.
      await open(50);
      await delay(SETTLE_MS);
      const before = await resident();
      await open(LIVE);
      await delay(SETTLE_MS);
      const live = ((await resident()) - before) / LIVE;
      for (const end of ends) end();
      // The platform evicts idle objects after ten seconds.
      await delay(15_000);
      found.set(name, { live, idle: ((await resident()) - before) / LIVE });
    } finally {
      await own.stop();
    }
    console.error(`memory, ${name}: done`);
  }
  return found;
}

/** CPU time of workerd per second: without readers, and with idle readers. */
async function measureReaders(host: Host): Promise<{ none: number; waiting: number }> {
  const second = async (): Promise<number> => {
    const before = host.usage().cpuMs;
    await delay(10_000);
    return (host.usage().cpuMs - before) / 10;
  };
  const ours = contestants('').find(({ name }) => name === 'Cortex Edge');
  if (ours?.connect == null) throw new Error('nobody is measured');
  const { connect } = ours;
  await delay(2_000);
  const none = await second();
  const session = await ours.create(host.base);
  const ends = await Promise.all(Array.from({ length: READERS }, () => connect(host.base, session)));
  await delay(1_000);
  const waiting = await second();
  for (const end of ends) end();
  return { none, waiting };
}

/** Events per second from the object to the client, for a number of events per turn. */
async function measureBurst(host: Host): Promise<{ turn: number; journaled: number; live: number }[]> {
  const rate = async (turn: number, live: boolean): Promise<number> => {
    const rates: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const turns = Math.min(200, Math.round(50_000 / turn));
      const response = await fetch(`${host.base}/burst?turns=${turns}&events=${turn}&live=${live ? 1 : 0}`);
      const startedAt = performance.now();
      let events = 0;
      if (response.body !== null) {
        const decoder = new TextDecoder();
        for await (const chunk of response.body) {
          const text = decoder.decode(chunk as Uint8Array, { stream: true });
          for (let at = text.indexOf('\nevent: '); at !== -1; at = text.indexOf('\nevent: ', at + 1)) events += 1;
          if (text.startsWith('event: ')) events += 1;
        }
      }
      rates.push((events * 1_000) / (performance.now() - startedAt));
    }
    return percentile(rates, 0.5);
  };
  const rows = [];
  for (const turn of [1, 10, 100, 1_000]) {
    rows.push({ turn, journaled: await rate(turn, false), live: await rate(turn, true) });
  }
  return rows;
}

function report(
  all: readonly Contestant[],
  made: ReadonlyMap<string, readonly Made[]>,
  turns: ReadonlyMap<string, readonly Turn[]>,
  memory: ReadonlyMap<string, { live: number; idle: number }>,
  idle: { none: number; waiting: number },
  burst: readonly { turn: number; journaled: number; live: number }[],
): string {
  const rate = (name: string): number => medianOf(made.get(name) ?? [], 'rate');
  const total = (name: string, share = 0.5): number =>
    percentile(
      (turns.get(name) ?? []).map((turn) => turn.totalMs),
      share,
    );
  const first = (name: string): number =>
    percentile(
      (turns.get(name) ?? []).map((turn) => turn.firstMs),
      0.5,
    );
  const names = all.map(({ name }) => name);
  const chatting = names.filter((name) => turns.has(name));
  const title = (name: string): string => (name === 'Agents SDK' ? `Agents SDK (ai-chat ${peerVersion()})` : name);
  const [bare = ''] = names;
  writeBars(
    join(PACKAGE_ROOT, 'docs/sessions.svg'),
    {
      title: 'Sessions in one workerd',
      note: 'Compared with a bare object that relays and stores nothing.',
    },
    [
      barsOfOneUnit(
        'new sessions a second (more is better)',
        '',
        names.map((name) => ({ label: title(name), value: rate(name) })),
      ),
      barsOfOneUnit(
        `a chat turn of ${TOKENS} tokens (less is better)`,
        ' ms',
        chatting.map((name) => ({ label: title(name), value: total(name) })),
      ),
    ],
  );
  const verdict = (met: boolean): string => (met ? 'met' : 'missed');
  const ours = 'Cortex Edge';
  return `All systems run in one workerd, over HTTP on loopback. Values are medians of ${ROUNDS} rounds, in which the systems take turns. The
bare object (a Durable Object) stores one row per session, reads the model's words, sends each as an event and stores none of
them. The listed one also writes a row to a second object after its answer, one of 16: a list of all sessions needs that. Cortex Edge has such
a list; a session is added to it a second after its creation, or at the end of its first run. The CPU time includes this write. In the
row after the listed one, the bare object forwards the model's bytes unread. The Agents SDK runs the chat agent
from its documentation, over a WebSocket that is already open. The model is a server that sends ${TOKENS} words without pauses,
one per chunk, so the values measure everything except the model.

![Sessions](sessions.svg)

${table(
  [
    '',
    'new sessions/s',
    'relative to the bare object',
    'CPU per session',
    'chat turn p50',
    'p95',
    'relative to the bare object',
    'first words p50',
  ],
  names.map((name) => [
    title(name),
    rate(name).toFixed(0),
    (rate(name) / rate(bare)).toFixed(2),
    `${medianOf(made.get(name) ?? [], 'cpuMs').toFixed(1)} ms`,
    ...(turns.has(name)
      ? [
          `${total(name).toFixed(1)} ms`,
          `${total(name, 0.95).toFixed(1)} ms`,
          `${(total(name) / total(bare)).toFixed(2)} ×`,
          `${first(name).toFixed(1)} ms`,
        ]
      : ['–', '–', '–', '–']),
  ]),
)}

Targets: at least 0.8 of the bare object's new sessions: **${verdict(rate(ours) / rate(bare) >= 0.8)}** (${(rate(ours) / rate(bare)).toFixed(2)}); a turn in at most
1.3 times the bare object's time, although it is journaled completely: **${verdict(total(ours) / total(bare) <= 1.3)}** (${(total(ours) / total(bare)).toFixed(2)}).

### Memory and idle readers

Resident memory of workerd per session after a garbage collection, for ${LIVE} sessions, with a connected client and 15 seconds
after it has disconnected (the system keeps freed memory for a while). The client reads an event stream of Cortex Edge or of the
bare object, or a WebSocket of the SDK.

${table(
  ['', 'connected session', 'after disconnection'],
  names
    .filter((name) => memory.has(name))
    .map((name) => [
      title(name),
      `${(memory.get(name)?.live ?? Number.NaN).toFixed(0)} KiB`,
      `${(memory.get(name)?.idle ?? Number.NaN).toFixed(0)} KiB`,
    ]),
)}

Target: at most ${MEMORY_TARGET} KiB for a connected session: **${verdict((memory.get(ours)?.live ?? Infinity) <= MEMORY_TARGET)}**.

With ${READERS} idle readers of one session, workerd uses ${idle.waiting.toFixed(1)} ms of CPU time per second (without readers: ${idle.none.toFixed(1)} ms). One timer sends
the heartbeats of all readers.

### Bursts

Events per second from the object to the client, through the session's journal, broadcaster and stream, by the number of events
that a step appends and sends together. Each event has about 330 bytes. \`journaled\` events are written, synced to disk and then
sent; \`live\` events are only sent.

${table(
  ['events per step', 'journaled', 'live'],
  burst.map(({ turn, journaled, live }) => [
    String(turn),
    `${(journaled / 1_000).toFixed(0)} k/s`,
    `${(live / 1_000).toFixed(0)} k/s`,
  ]),
)}

Target: 100,000 events/s in bursts of 1,000: **${verdict((burst.at(-1)?.live ?? 0) >= 100_000)}** live, **${verdict((burst.at(-1)?.journaled ?? 0) >= 100_000)}** journaled.`;
}
