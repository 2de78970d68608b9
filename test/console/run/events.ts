/** Builds the events of a run for tests. Times are milliseconds since its start. */
import { Trace } from '../../../console/run/trace.ts';
import type { SessionEvent } from '../../../src/client/index.ts';

export const START = 1_800_000_000_000;

type Draft = readonly [
  at: number,
  type: SessionEvent['type'],
  data?: object | undefined,
  actionId?: string | undefined,
  iteration?: number | undefined,
];

/** @param drafts in order; live events get no number */
export function eventsOf(...drafts: readonly Draft[]): SessionEvent[] {
  let seq = 0;
  return drafts.map(([at, type, data = {}, actionId, iteration = 1]) => {
    const isLive = ['thought', 'text', 'response', 'progress', 'llm_token'].includes(type);
    if (!isLive) seq += 1;
    return {
      seq: isLive ? null : seq,
      type,
      session_id: 'ses_1',
      run_id: 'run_1',
      iteration,
      timestamp: START + at,
      ...(actionId === undefined ? {} : { action_id: actionId, action_name: 'echo' }),
      data,
    } as unknown as SessionEvent;
  });
}

export function started(): Draft[] {
  return [
    [0, 'agent_started', { agent: 'assistant', version: '1.0', source: 'model' }, undefined, 0],
    [0, 'iteration_started', { iteration: 1 }],
  ];
}

export function queued(at: number, id: string, dependsOn: string[] = [], mode = 'async', iteration = 1): Draft {
  const data = { type: 'tool', mode, depends_on: dependsOn, output_key: null, parameters: { message: id } };
  return [at, 'action_queued', data, id, iteration];
}

export function ran(from: number, to: number, id: string, iteration = 1): Draft[] {
  return [
    [from, 'action_started', { attempt: 1 }, id, iteration],
    [to, 'action_completed', { output: id, ms: to - from, attempt: 1 }, id, iteration],
  ];
}

export function planned(at: number, waves: string[][], iteration = 1): Draft {
  return [
    at,
    'plan_generated',
    { total: waves.flat().length, waves, edges: [], critical_path: [] },
    undefined,
    iteration,
  ];
}

export function sorted(drafts: readonly Draft[]): SessionEvent[] {
  return eventsOf(...drafts.toSorted(([one], [other]) => one - other));
}

/** The trace after all events, or after those up to `seq`. */
export function traceOf(events: readonly SessionEvent[], seq = Infinity): Trace {
  const trace = new Trace();
  for (const event of events) if ((event.seq ?? 0) <= seq) trace.apply(event);
  return trace;
}
