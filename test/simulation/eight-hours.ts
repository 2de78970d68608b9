/** A history of eight hours, assembled from generated ones: what happens to a session that is used all day. */
import { historyOf } from './arbitrary.ts';
import type { Fault, GenerationScript, History, MessageScript } from './history.ts';
import { USUAL_AGENT } from './usual.ts';

export const EIGHT_HOURS_MS = 8 * 3_600_000;
const MESSAGES = 16;
/** A reader stays to the end, and gets every event. */
const READERS = 12;
const LOSSES = 40;
const EVERY_MS = EIGHT_HOURS_MS / MESSAGES;
/** The last things begin this long before the end. */
const LAST_MS = 60_000;

/** @param seed the first seed of the histories that it is made of */
export function eightHours(seed: number): History {
  const parts = Array.from({ length: MESSAGES }, (_, at) => historyOf(seed + at));
  const startOf = (part: number): number => part * EVERY_MS;
  const requests = parts.flatMap((own, part) =>
    own.requests.flatMap((request) =>
      request.type === 'reader' || request.type === 'cancel' ? [{ ...request, at: startOf(part) + request.at }] : [],
    ),
  );
  const readers = requests.filter(({ type }) => type === 'reader').slice(0, READERS);
  return {
    order: seed,
    agent: { ...USUAL_AGENT, feed: true },
    seeded: [],
    decisions: parts.flatMap(({ decisions }) => decisions),
    messages: parts.flatMap(({ messages: [message] }, part) =>
      message === undefined
        ? []
        : [{ ...message, ...INDEPENDENT, at: startOf(part), generations: withoutRecalls(message) }],
    ),
    requests: [...requests.filter(({ type }) => type === 'cancel'), ...readers],
    faults: [...losses(), { type: 'index', at: EIGHT_HOURS_MS - LAST_MS, forMs: 0, works: true }],
  };
}

/** It names no other message, so that it can be in another place. */
const INDEPENDENT = { type: 'message', branch: null } as const;

const withoutRecalls = ({ generations }: MessageScript): GenerationScript[] =>
  generations.map((generation) => ({ ...generation, items: generation.items.filter(({ type }) => type !== 'recall') }));

/** Every host is lost: half of them at a call of a port, the others in the middle of nothing. */
function losses(): Fault[] {
  return Array.from({ length: LOSSES }, (_, nth): Fault =>
    nth % 2 === 0
      ? { type: 'eviction', at: (nth * (EIGHT_HOURS_MS - LAST_MS)) / LOSSES + 300, keeps: 0.5 }
      : { type: 'crash', life: nth, call: 100 + ((nth * 97) % 700), keeps: 0.5 },
  );
}
