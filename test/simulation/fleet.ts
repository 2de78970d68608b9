/** Histories whose programs run on several runners (R7), which are lost while jobs run. */
import { historyOf } from './arbitrary.ts';
import type { ActionScript, Fault, History, Target } from './history.ts';
import { RUNNERS } from './world/fleet.ts';

const AWAY_MS = [1, 20, 300, 2_500, 20_000, 45_000] as const;
/** Tools whose calls become programs. */
const REPLACED: ReadonlySet<Target> = new Set(['pure', 'unsafe', 'late']);

/** The history of the seed, with more programs and with losses of runners. */
export function fleetHistoryOf(seed: number): History {
  const history = historyOf(seed);
  const loss = (nth: number): Fault => ({
    type: 'runner',
    runner: (seed + nth) % RUNNERS,
    at: nth === 1 ? (seed * 17) % 60 : (seed * 97 * nth) % 1_000,
    forMs: AWAY_MS[(seed * 5 + nth) % AWAY_MS.length] ?? 0,
  });
  const losses = Array.from({ length: 1 + (seed % 4) }, (_, at) => loss(at + 1));
  return {
    ...history,
    messages: history.messages.map((message) => ({
      ...message,
      generations: message.generations.map((generation) => ({
        ...generation,
        items: generation.items.map((item) =>
          item.type === 'action' && mayBeProgram(item.action)
            ? { ...item, action: { ...item.action, target: 'python' as const } }
            : item,
        ),
      })),
    })),
    faults: [...history.faults, ...losses],
  };
}

/** Only tools ask. */
function mayBeProgram({ target, attempts }: ActionScript): boolean {
  return REPLACED.has(target) && attempts.every(({ end }) => end !== 'asks');
}
