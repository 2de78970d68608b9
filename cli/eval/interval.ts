/** The uncertainty of a share: an interval that holds also for few repetitions. */

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Of the standard normal distribution, for a confidence of 95 %. */
const Z = 1.959964;

/**
 * The Wilson score interval of a share, at a confidence of 95 %.
 *
 * @param passed whole number, at most `total`
 * @returns shares from 0 to 1; the whole range if `total` is 0
 */
export function wilsonInterval(passed: number, total: number): Interval {
  if (total === 0) return { low: 0, high: 1 };
  const share = passed / total;
  const square = (Z * Z) / total;
  const centre = (share + square / 2) / (1 + square);
  const half = (Z * Math.sqrt((share * (1 - share)) / total + square / (4 * total))) / (1 + square);
  return { low: Math.max(0, centre - half), high: Math.min(1, centre + half) };
}
