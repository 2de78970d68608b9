/** What a check of `cortex doctor` has found. */
import { PROBLEMS } from './problems.ts';
import type { CheckId, ProblemId } from './problems.ts';

export interface Finding {
  readonly check: CheckId;
  readonly state: 'ok' | 'warning' | 'problem';
  /** One line: what was looked at, and how it is. */
  readonly message: string;
  /** Null if the state is `ok`. */
  readonly problem: ProblemId | null;
  readonly meaning: string | null;
  /** A command, or lines of a file. */
  readonly fix: string | null;
}

/** Findings of problems, and texts of what is as it should be. */
export type CheckResult = string | Finding | readonly (string | Finding)[];

/** @param fix replaces the general one of the table */
export function found(id: ProblemId, message: string, fix: string = PROBLEMS[id].fix): Finding {
  const { check, level, meaning } = PROBLEMS[id];
  return { check, state: level, message, problem: id, meaning, fix };
}
