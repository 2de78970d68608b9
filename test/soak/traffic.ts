/** Sessions that come and go at a low, steady rate. */
import { setTimeout as delay } from 'node:timers/promises';
import { LOST, request } from '../chaos/client.ts';
import type { Random } from './random.ts';
import { VISITS } from './visits.ts';
import type { VisitContext, VisitKind } from './visits.ts';

/** Mean time between two beginnings. */
const APART_MS = 900;
/** Visits at the same time; a further one waits. */
const MOST_AT_ONCE = 8;
/** Pages of a list in a sweep. */
const MOST_PAGES = 50;

type Settings = Omit<VisitContext, 'number' | 'failed'>;

export class Traffic {
  readonly #settings: Settings;
  readonly #random: Random;
  readonly #open = new Set<Promise<void>>();
  #waiting: VisitKind[] = [];
  #started = 0;
  readonly failures: string[] = [];

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#random = settings.random;
  }

  /** Visits that have begun. */
  get started(): number {
    return this.#started;
  }

  /** Starts visits for a time, then waits until all have ended. @param signal ends it early */
  async run(ms: number, signal: AbortSignal): Promise<void> {
    for (const until = Date.now() + ms; Date.now() < until && !signal.aborted;) {
      if (this.#open.size >= MOST_AT_ONCE) await Promise.race(this.#open);
      else this.#begin();
      await delay(2 * APART_MS * this.#random.next(), undefined, { signal }).catch(() => undefined);
    }
    await Promise.all(this.#open);
  }

  /** Deletes what a visit could not know of, because an answer was lost. @returns how many sessions there were */
  async sweep(): Promise<number> {
    let found = 0;
    for (const [path, list] of [
      ['executions', 'executions'],
      ['sessions', 'sessions'],
    ] as const) {
      for (let page = 0; page < MOST_PAGES; page += 1) {
        const answer = await request(`${this.#settings.url}/${path}?limit=100`);
        if (answer === LOST || answer.status !== 200) break;
        const rows = (answer.body as Record<string, readonly { readonly session_id: string }[]>)[list] ?? [];
        if (rows.length === 0) break;
        for (const id of new Set(rows.map(({ session_id: own }) => own))) {
          await request(`${this.#settings.url}/agent/session/${id}`, { method: 'DELETE' });
          found += 1;
        }
        await delay(500);
      }
    }
    return found;
  }

  /** Each kind once, in random order, and then again. */
  #begin(): void {
    if (this.#waiting.length === 0) {
      const kinds = Object.keys(VISITS) as VisitKind[];
      this.#waiting = kinds
        .map((kind) => ({ kind, at: this.#random.next() }))
        .toSorted((a, b) => a.at - b.at)
        .map(({ kind }) => kind);
    }
    const kind = this.#waiting.pop();
    if (kind === undefined) return;
    const number = (this.#started += 1);
    const failed = (what: string): void => void this.failures.push(`visit ${number} (${kind}): ${what}`);
    const visit: Promise<void> = VISITS[kind]({ ...this.#settings, number, failed }).finally(() =>
      this.#open.delete(visit),
    );
    this.#open.add(visit);
  }
}
