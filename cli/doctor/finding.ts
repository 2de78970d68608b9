/** What a check of `cortex doctor` has found. */
import { CHECKS, PROBLEMS } from './problems.ts';
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

export function ok(check: CheckId, message: string): Finding {
  return { check, state: 'ok', message, problem: null, meaning: null, fix: null };
}

/** @param fix replaces the general one of the table */
export function found(id: ProblemId, message: string, fix: string = PROBLEMS[id].fix): Finding {
  const { check, level, meaning } = PROBLEMS[id];
  return { check, state: level, message, problem: id, meaning, fix };
}

const MARKS = { ok: '✓', warning: '!', problem: '✗' } as const;

/** A line for each finding, in the order of the checks; below a problem, what it means and what removes it. */
export function reportOf(findings: readonly Finding[]): string[] {
  const order = Object.keys(CHECKS);
  const sorted = findings.toSorted((a, b) => order.indexOf(a.check) - order.indexOf(b.check));
  const width = Math.max(...sorted.map(({ check }) => CHECKS[check].length));
  const indent = ' '.repeat(width + 4);
  return sorted.flatMap(({ check, state, message, meaning, fix }) => [
    `${MARKS[state]} ${CHECKS[check].padEnd(width)}  ${message}`,
    ...(meaning === null ? [] : [`${indent}${meaning}`]),
    ...(fix === null ? [] : fix.split('\n').map((line, at) => `${indent}${at === 0 ? 'fix: ' : '     '}${line}`)),
  ]);
}

/** The last line of the report. */
export function summaryOf(findings: readonly Finding[]): string {
  const count = (state: Finding['state'], noun: string): string => {
    const number = findings.filter((one) => one.state === state).length;
    return `${number} ${noun}${number === 1 ? '' : 's'}`;
  };
  return `${count('problem', 'problem')}, ${count('warning', 'warning')}`;
}
