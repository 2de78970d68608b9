/** Whether an evaluation succeeds, and why not (O3). */
import { EXIT } from '../command.ts';
import type { ExitCode } from '../command.ts';
import type { Comparison } from './compare.ts';
import type { EvalReport } from './report.ts';

/**
 * What makes the command fail, next to errors: `failure`: a run that failed; `worse`: a case that passes less often than in
 * the earlier report; `regression`: the pass rate is lower than in the earlier report, beyond chance.
 */
export const FAIL_ON = ['failure', 'worse', 'regression'] as const;
export type FailOn = (typeof FAIL_ON)[number];

export interface EvalVerdict {
  readonly result: 'passed' | 'failed' | 'worse' | 'regression' | 'error' | 'stopped';
  /** One sentence; null if it passed. */
  readonly reason: string | null;
  readonly exit: ExitCode;
}

/** Missing runs and errors count first: with them, the other numbers are incomplete. @param comparison null without an earlier report */
export function verdictOf(report: EvalReport, comparison: Comparison | null, failOn: FailOn): EvalVerdict {
  const { passed, failed, errors, omitted } = report;
  const total = passed + failed + errors + omitted;
  const failing = (result: EvalVerdict['result'], reason: string): EvalVerdict => ({
    result,
    reason,
    exit: EXIT.failed,
  });
  if (omitted > 0) {
    return failing('stopped', `the evaluation was stopped: ${omitted} of ${total} runs were not made`);
  }
  if (errors > 0) {
    return failing('error', `${errors} of ${total} runs could not be made or judged, so the evaluation is incomplete`);
  }
  if (failOn === 'failure' && failed > 0) return failing('failed', `${failed} of ${total} runs failed`);
  const worse = comparison?.worse.length ?? 0;
  if (failOn === 'worse' && worse > 0) {
    return failing('worse', `${worse} of ${comparison?.compared ?? 0} cases pass less often than before`);
  }
  if (failOn === 'regression' && comparison?.is_regression === true) {
    return failing('regression', 'the pass rate is lower than before, and the 95 % interval excludes no change');
  }
  return { result: 'passed', reason: null, exit: EXIT.ok };
}
