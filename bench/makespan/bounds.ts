/** Lower bounds and the times of ideal actors of other kinds, computed in milliseconds. */
import { nativeGeneration, nativeSegment, protocolGenerations, tokenCount } from './generation.ts';
import type { Generation, OutputForm } from './generation.ts';
import type { Pace, WorkAction, Workload } from './workloads.ts';

interface Timeline {
  readonly endMs: number;
  /** The arrival time of each action's last character. */
  readonly releases: ReadonlyMap<string, number>;
}

/** The arrival times of the tokens of a generation requested at `startMs`. */
export function timeline({ segments }: Generation, pace: Pace, startMs: number): Timeline {
  const releases = new Map<string, number>();
  let tokens = 0;
  const at = (token: number): number =>
    startMs + pace.firstTokenMs + (Math.max(0, token - 1) * 1_000) / pace.tokensPerSecond;
  for (const segment of segments) {
    tokens += tokenCount(segment);
    if (segment.type === 'call') releases.set(segment.id, at(tokens - segment.tailTokens));
    else if (segment.closes !== null) releases.set(segment.closes, at(tokens));
  }
  return { endMs: at(tokens), releases };
}

/**
 * The end of each action, if it starts at max(release, end of its dependencies) as soon as a slot is
 * free. With enough slots or equal durations, this is optimal.
 */
export function finishTimes(
  actions: readonly WorkAction[],
  releases: ReadonlyMap<string, number>,
  slots: number,
  earlier: ReadonlyMap<string, number> = new Map(),
): Map<string, number> {
  const ends = new Map(earlier);
  const waiting = [...actions];
  const busy: number[] = [];
  while (waiting.length > 0) {
    let next = -1;
    let nextReadyAt = Number.POSITIVE_INFINITY;
    for (const [index, { id, after }] of waiting.entries()) {
      if (!after.every((other) => ends.has(other))) continue;
      const readyAt = Math.max(releases.get(id) ?? 0, ...after.map((other) => ends.get(other) ?? 0));
      if (readyAt < nextReadyAt) [next, nextReadyAt] = [index, readyAt];
    }
    const [action] = waiting.splice(next, 1);
    if (next === -1 || action === undefined) throw new Error('the workload has a dependency that is never met');
    busy.sort((a, b) => a - b);
    const freeAt = busy.length < slots ? 0 : (busy.shift() ?? 0);
    const endAt = Math.max(nextReadyAt, freeAt) + action.ms;
    busy.push(endAt);
    ends.set(action.id, endAt);
  }
  return ends;
}

/** The end of the answer if every action of this system starts as soon as possible. */
export function lowerBound(workload: Workload, output: OutputForm): number {
  let now = 0;
  let ends = new Map<string, number>();
  for (const generation of protocolGenerations(workload, output)) {
    const { endMs, releases } = timeline(generation, workload.pace, now);
    const declared = workload.actions.filter(({ id }) => releases.has(id));
    ends = finishTimes(declared, releases, workload.slots, ends);
    now = Math.max(endMs, ...declared.map(({ id }) => ends.get(id) ?? 0));
  }
  return now;
}

/** One call per generation, one after the other. */
export function sequentialReAct(workload: Workload): number {
  const byId = new Map(workload.actions.map((action) => [action.id, action]));
  let now = 0;
  for (const action of workload.actions) {
    now = timeline({ segments: [nativeSegment(action, byId)] }, workload.pace, now).endMs + action.ms;
  }
  return timeline(nativeGeneration(workload, new Set(byId.keys())), workload.pace, now).endMs;
}

/** Native parallel calls with an ideal client: each starts when its arguments are complete; the next round is requested at once. */
export function idealNative(workload: Workload): number {
  let now = 0;
  const done = new Set<string>();
  for (;;) {
    const generation = nativeGeneration(workload, done);
    const { endMs, releases } = timeline(generation, workload.pace, now);
    if (generation.calls.length === 0) return endMs;
    const round = generation.calls.map((action) => ({ ...action, after: [] }));
    now = Math.max(endMs, ...finishTimes(round, releases, workload.slots).values());
    for (const { id } of round) done.add(id);
  }
}

/** The whole plan first, then wave by wave, then the answer. The plan is in the compact form. */
export function planThenWaves(workload: Workload, equalTokens: boolean): number {
  const plans = protocolGenerations(workload, { form: 'compact', oneGeneration: false, equalTokens });
  let now = 0;
  const done = new Set<string>();
  for (const plan of plans) {
    const { endMs, releases } = timeline(plan, workload.pace, now);
    now = endMs;
    let left = workload.actions.filter(({ id }) => releases.has(id));
    while (left.length > 0) {
      const wave = left.filter(({ after }) => after.every((id) => done.has(id)));
      const starts = new Map(wave.map(({ id }) => [id, now]));
      now = Math.max(
        ...finishTimes(
          wave.map((action) => ({ ...action, after: [] })),
          starts,
          workload.slots,
        ).values(),
      );
      for (const { id } of wave) done.add(id);
      left = left.filter(({ id }) => !done.has(id));
    }
  }
  return now;
}
