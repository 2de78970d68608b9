/**
 * Whether a measure returns to where it began. Pure.
 *
 * Two kinds of measures:
 *
 *  - `count`: something that can be counted exactly, such as rows. At the end it is at most what it was at the first
 *    checkpoint, plus what is kept on purpose (`allowed`).
 *  - `trend`: something that is noisy, such as memory. It grows if the lower end of the confidence interval of its least
 *    squares slope is above the bound.
 *
 * What belongs to a process is compared within the longest time without a restart, after its warm-up.
 */

export interface Point {
  /** Since the beginning, in hours. */
  readonly hours: number;
  readonly value: number;
  /** A number for each life of the process. */
  readonly life: number;
  /** What is kept on purpose at this time. */
  readonly allowed?: number;
}

export type Bound =
  | { readonly kind: 'count'; readonly slack: number }
  /** `warmUpPoints`: first points of a life that are left out. Default: 1. */
  | { readonly kind: 'trend'; readonly perHour: number; readonly warmUpPoints?: number };

export interface Measure {
  readonly name: string;
  readonly unit: string;
  readonly bound: Bound;
  /** It belongs to a process, which begins again with other values: only its longest life is compared. */
  readonly perLife: boolean;
  readonly points: readonly Point[];
}

export interface Trend {
  /** Least squares slope per hour, and its standard error. */
  readonly slope: number;
  readonly error: number;
}

export interface Verdict extends Trend {
  readonly first: number;
  readonly last: number;
  /** Points that were compared. */
  readonly points: number;
  readonly result: 'returns' | 'grows' | 'too few points';
}

/** A slope of fewer points says nothing. */
const LEAST_POINTS = 4;
/** The first points of a life are left out: code is compiled, and caches fill. */
const WARM_UP_POINTS = 1;
/** Standard errors between the slope and the lower end of its interval. */
const CONFIDENCE = 2;

export function verdictOf({ bound, points, perLife }: Measure): Verdict {
  const warmUp = (bound.kind === 'trend' ? bound.warmUpPoints : undefined) ?? WARM_UP_POINTS;
  const compared = perLife ? longestLife(points).slice(warmUp) : points;
  const first = compared[0];
  const last = compared.at(-1);
  const trend = trendOf(compared);
  const found = { first: first?.value ?? 0, last: last?.value ?? 0, points: compared.length, ...trend };
  if (first === undefined || last === undefined) return { ...found, result: 'too few points' };
  if (bound.kind === 'count') {
    if (compared.length < 2) return { ...found, result: 'too few points' };
    const most = first.value - (first.allowed ?? 0) + (last.allowed ?? 0) + bound.slack;
    return { ...found, result: last.value > most ? 'grows' : 'returns' };
  }
  if (compared.length < LEAST_POINTS) return { ...found, result: 'too few points' };
  return { ...found, result: trend.slope - CONFIDENCE * trend.error > bound.perHour ? 'grows' : 'returns' };
}

/** The points of the life with the most of them; the later one of two equals. */
export function longestLife(points: readonly Point[]): readonly Point[] {
  const lives = Map.groupBy(points, ({ life }) => life);
  return [...lives.values()].reduce<readonly Point[]>((best, own) => (own.length >= best.length ? own : best), []);
}

export function trendOf(points: readonly Point[]): Trend {
  const count = points.length;
  if (count < 2) return { slope: 0, error: 0 };
  const meanHours = points.reduce((sum, { hours }) => sum + hours, 0) / count;
  const meanValue = points.reduce((sum, { value }) => sum + value, 0) / count;
  const squares = points.reduce((sum, { hours }) => sum + (hours - meanHours) ** 2, 0);
  if (squares === 0) return { slope: 0, error: 0 };
  const slope = points.reduce((sum, { hours, value }) => sum + (hours - meanHours) * (value - meanValue), 0) / squares;
  const residual = points.reduce(
    (sum, { hours, value }) => sum + (value - meanValue - slope * (hours - meanHours)) ** 2,
    0,
  );
  return { slope, error: count < 3 ? 0 : Math.sqrt(residual / (count - 2) / squares) };
}
