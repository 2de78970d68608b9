/** One run in an export of a session. Reads recorded events only: nothing is run again. */
import type { SessionEvent } from '../../src/domain/event.ts';
import type { RunStatus } from '../../src/domain/session.ts';
import { nearestNames } from '../../src/domain/nearest.ts';
import { visible } from './visible.ts';

/** Events of one run that are held in memory. */
const MOST_EVENTS = 1_000_000;

export interface RecordedRun {
  readonly run_id: string;
  readonly status: RunStatus;
  readonly started_at: number;
  readonly ended_at: number | null;
  readonly events: readonly SessionEvent[];
}

/**
 * @param lines of an export: the runs stand before the events
 * @param wanted id of the run; undefined: the last one
 * @throws Error for a line that is no JSON, and for an export without the run
 */
export async function recordedRun(lines: AsyncIterable<string>, wanted: string | undefined): Promise<RecordedRun> {
  const runs: Omit<RecordedRun, 'events'>[] = [];
  const events: SessionEvent[] = [];
  let number = 0;
  for await (const text of lines) {
    number += 1;
    if (text.trim() === '') continue;
    const line = parsed(text, number);
    if ('run' in line) runs.push(line['run'] as RecordedRun);
    if (!('seq' in line && 'type' in line) || line['run_id'] !== (wanted ?? runs.at(-1)?.run_id)) continue;
    events.push(line as unknown as SessionEvent);
    if (events.length > MOST_EVENTS) throw new Error(`the run has more than ${MOST_EVENTS} events`);
  }
  const run = wanted === undefined ? runs.at(-1) : runs.find(({ run_id: id }) => id === wanted);
  if (run !== undefined) return { ...run, events };
  if (wanted === undefined) throw new Error('the export contains no run');
  const ids = runs.map(({ run_id: id }) => id);
  const near = nearestNames(wanted, ids)[0] ?? ids.at(-1);
  const hint = near === undefined ? '' : `; it has ${ids.length} runs, such as ${near}`;
  throw new Error(`the export contains no run "${visible(wanted.slice(0, 100))}"${hint}`);
}

function parsed(text: string, number: number): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Told below.
  }
  throw new Error(`line ${number} is not a JSON object: not an export of a session (cortex sessions export <id>)`);
}
