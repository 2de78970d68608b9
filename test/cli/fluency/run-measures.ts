/** Measures of a run without any mistake. */
import type { RunMeasures } from '../../../cli/fluency/score/measure.ts';

export function runWith(changes: Partial<RunMeasures> = {}): RunMeasures {
  return {
    task: 'two-stations',
    kind: 'parallel',
    form: 'full',
    repetition: 1,
    solved: true,
    reason: null,
    endpointError: null,
    validity: [1],
    idealGenerations: 1,
    calls: { needed: 2, made: 2, missing: 0, superfluous: 0, repeated: 0, premature: 0 },
    rejected: 0,
    failed: 0,
    repaired: 0,
    warnings: [],
    references: { needed: 2, used: 2, missing: 0, unknown: 0 },
    makespanMs: 3_000,
    idealMs: 3_000,
    usage: { prompt: 1_500, completion: 100, calls: 1, estimated: false, cost: null },
    effort: 1_900,
    idealEffort: 1_900,
    firstActionMs: 40,
    ms: 900,
    mistakes: [],
    ...changes,
  };
}
