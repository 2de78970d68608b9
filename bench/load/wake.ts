/** The first byte of a turn when the session's object has been evicted, and when it is in memory. */
import { setTimeout as delay } from 'node:timers/promises';
import { createSession, forkSession, inParallel, takeTurn } from './client.ts';
import type { Subject, Turn } from './client.ts';
import type { LoadOptions } from './options.ts';
import { SHORT } from './script.ts';
import type { LoadSystem } from './system.ts';

export interface Wake {
  readonly subject: Subject;
  /** Turns of the session before the measured ones. */
  readonly turns: number;
  readonly coldMs: readonly number[];
  readonly warmMs: readonly number[];
}

/** @param rows subjects with the lengths of their histories */
export async function measureWake(
  { base }: LoadSystem,
  rows: readonly { readonly subject: Subject; readonly turns: number; readonly canFork: boolean }[],
  { cold, evictSeconds }: LoadOptions,
): Promise<Wake[]> {
  const made: { subject: Subject; turns: number; sessions: string[] }[] = [];
  for (const { subject, turns, canFork } of rows) {
    const turn = async (session: string): Promise<Turn> => await takeTurn(base, subject, { session, content: SHORT });
    const history = async (): Promise<string> => {
      const session = await createSession(base, subject);
      for (let n = 0; n < turns; n += 1) await turn(session);
      return session;
    };
    const sessions: string[] = [];
    const original = canFork ? await history() : null;
    await inParallel(cold, 2, async () => {
      sessions.push(original === null ? await history() : await forkSession(base, original));
    });
    made.push({ subject, turns, sessions });
  }
  await delay(evictSeconds * 1_000);
  const wakes: Wake[] = made.map(({ subject, turns }) => ({ subject, turns, coldMs: [], warmMs: [] }));
  // One session of each row in turn, so that a disturbance of the machine affects all rows.
  for (let n = 0; n < cold; n += 1) {
    for (const [row, { subject, sessions }] of made.entries()) {
      const [session = '', wake] = [sessions[n], wakes[row]];
      if (wake === undefined) continue;
      const first = await takeTurn(base, subject, { session, content: SHORT });
      if (evictSeconds > 0 && first.turnOfObject !== null && first.turnOfObject !== 1) {
        throw new Error(`the object was not evicted after ${evictSeconds} s: this is its turn ${first.turnOfObject}`);
      }
      const second = await takeTurn(base, subject, { session, content: SHORT });
      wakes[row] = { ...wake, coldMs: [...wake.coldMs, first.firstMs], warmMs: [...wake.warmMs, second.firstMs] };
    }
  }
  return wakes;
}
