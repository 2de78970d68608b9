/** Memory for a session: evicted, idle in memory, and with a run that the model keeps open. */
import { setTimeout as delay } from 'node:timers/promises';
import { createSession, holdTurn, inParallel, openReader, takeTurn } from './client.ts';
import type { Subject } from './client.ts';
import type { LoadOptions } from './options.ts';
import { HOLD, SHORT } from './script.ts';
import type { LoadSystem } from './system.ts';

export interface Memory {
  readonly resident: number;
  readonly heap: number;
}

/** KiB for a session. */
export interface SessionMemory {
  /** Just created and still in memory, without a connection. */
  readonly fresh: Memory;
  /** In memory with a connected reader, before its first turn. */
  readonly opened: Memory;
  /** In memory after one turn: a reader is connected, and no run is active. */
  readonly idle: Memory;
  /** The same with an active run: the model has begun its answer. */
  readonly running: Memory;
  /** After the eviction of its object. */
  readonly evicted: Memory;
}

const AT_ONCE = 8;
/** Until what the sessions have left running is done: the directory's update, timers, and the heartbeat. */
const SETTLE_MS = 2_500;

/** Measures one subject in its own system. The first sessions include one-time costs, and are not counted. */
export async function measureMemory(
  system: LoadSystem,
  subject: Subject,
  { memory: count, evictSeconds, smoke }: LoadOptions,
): Promise<SessionMemory> {
  const { base } = system;
  const sessions: string[] = [];
  const readers: (() => void)[] = [];
  const make = async (): Promise<string> => await createSession(base, subject);
  const turn = async (session: string): Promise<void> =>
    void (await takeTurn(base, subject, { session, content: SHORT }));
  const settle = async (): Promise<void> => await delay(smoke ? 100 : SETTLE_MS);
  await inParallel(smoke ? 2 : 50, AT_ONCE, async () => {
    const session = await make();
    await turn(session);
    readers.push(await openReader(base, subject, session));
  });
  await settle();
  const before = await system.memory();
  const since = async (): Promise<Memory> => {
    const now = await system.memory();
    const share = (from: number, to: number): number => (to - from) / count;
    return { resident: share(before.residentKb, now.residentKb), heap: share(before.heapKb, now.heapKb) };
  };
  await inParallel(count, AT_ONCE, async () => void sessions.push(await make()));
  await settle();
  const fresh = await since();
  const eachSession = async (work: (session: string) => Promise<void>): Promise<void> =>
    await inParallel(sessions.length, AT_ONCE, async (n) => await work(sessions[n] ?? ''));
  await eachSession(async (session) => void readers.push(await openReader(base, subject, session)));
  await settle();
  const opened = await since();
  await eachSession(turn);
  await settle();
  const idle = await since();
  await eachSession(async (session) => void readers.push(await holdTurn(base, subject, session, HOLD)));
  await settle();
  const running = await since();
  // The client of a run may leave, and the run goes on: a deletion would also remove the object that is measured.
  await eachSession(async (session) => await cancel(base, subject, session));
  for (const leave of readers) leave();
  await delay(evictSeconds * 1_000);
  return { fresh, opened, idle, running, evicted: await since() };
}

async function cancel(base: string, subject: Subject, session: string): Promise<void> {
  if (subject.cancelPath === null) return;
  const response = await fetch(`${base}${subject.cancelPath(session)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"reason":"measured"}',
  });
  await response.arrayBuffer();
}
