/** The quantile of the interval of a mean, at a confidence of 95 %. */

/** Of Student's t distribution, for 1 to 8 degrees of freedom. */
const STUDENT_95 = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306] as const;

/**
 * The two-sided quantile of Student's t distribution: what 1.96 is for a known variance.
 *
 * @param freedom degrees of freedom: one less than the number of values; Infinity without any
 */
export function student95(freedom: number): number {
  if (freedom < 1) return Infinity;
  const known = STUDENT_95[freedom - 1];
  if (known !== undefined) return known;
  // The Cornish-Fisher expansion: exact to 0.001 from 9 degrees on.
  const z = 1.959964;
  return (
    z +
    (z ** 3 + z) / (4 * freedom) +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2) +
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * freedom ** 3)
  );
}
