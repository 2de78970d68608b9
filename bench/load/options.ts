/** The options of `npm run bench:load`, with their bounds. */
import { parseArgs } from 'node:util';

export interface LoadOptions {
  /** Live sessions of the first stage; each further stage has twice as many, up to `most`. */
  readonly first: number;
  readonly most: number;
  /**
   * Average time between two turns of a live session, in seconds: below the ten seconds after which the platform evicts
   * an idle object, and more than twice the time of an answer, so that turns of a session seldom overlap.
   */
  readonly intervalSeconds: number;
  /** Length of the measured part of a stage, in seconds. */
  readonly stageSeconds: number;
  /** Bound of the 99th percentile of the first byte, in ms. The first stage that exceeds it ends the ramp. */
  readonly p99Ms: number;
  /** Sessions whose memory is measured. */
  readonly memory: number;
  /** Sessions of each row of the cold turns. */
  readonly cold: number;
  /** Time without a request until the platform has evicted an object, in seconds. 0: the turns are not cold. */
  readonly evictSeconds: number;
  /** Lengths of the histories of the cold turns, in turns. */
  readonly histories: readonly number[];
  /** A run of seconds that shows that everything works. Writes no section. */
  readonly smoke: boolean;
}

interface Bound {
  readonly normal: number;
  readonly smoke: number;
  readonly from: number;
  readonly to: number;
}

const BOUNDS = {
  first: { normal: 128, smoke: 8, from: 1, to: 4_096 },
  most: { normal: 2_048, smoke: 8, from: 1, to: 16_384 },
  'interval-seconds': { normal: 8, smoke: 5, from: 5, to: 9 },
  'stage-seconds': { normal: 8, smoke: 3, from: 1, to: 600 },
  'p99-ms': { normal: 250, smoke: 10_000, from: 1, to: 60_000 },
  memory: { normal: 300, smoke: 8, from: 1, to: 4_096 },
  cold: { normal: 12, smoke: 2, from: 1, to: 256 },
  'evict-seconds': { normal: 15, smoke: 0, from: 0, to: 300 },
} as const satisfies Record<string, Bound>;

type Name = keyof typeof BOUNDS;

/**
 * @param args the command's arguments: `--most 512 --stage-seconds 20`, or `--smoke`
 * @throws Error an unknown option, or a value outside of its bounds
 */
export function loadOptions(args: readonly string[]): LoadOptions {
  const names = Object.keys(BOUNDS) as Name[];
  const { values } = parseArgs({
    args: [...args],
    options: {
      smoke: { type: 'boolean', default: false },
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' } as const])),
    },
  });
  const given: Readonly<Record<string, unknown>> = values;
  const smoke = given['smoke'] === true;
  const read = (name: Name): number => {
    const bound = BOUNDS[name];
    const text = given[name];
    if (text === undefined) return smoke ? bound.smoke : bound.normal;
    const value = Number(text);
    if (typeof text === 'string' && /^\d{1,9}$/.test(text) && value >= bound.from && value <= bound.to) return value;
    throw new Error(
      `--${name} must be a whole number from ${bound.from} to ${bound.to}, not "${String(text).slice(0, 40)}"`,
    );
  };
  const [first, most] = [read('first'), read('most')];
  if (first > most) throw new Error(`--first (${first}) must not exceed --most (${most})`);
  return {
    first,
    most,
    intervalSeconds: read('interval-seconds'),
    stageSeconds: read('stage-seconds'),
    p99Ms: read('p99-ms'),
    memory: read('memory'),
    cold: read('cold'),
    evictSeconds: read('evict-seconds'),
    histories: smoke ? [1] : [1, 50, 500],
    smoke,
  };
}
