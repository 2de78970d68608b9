/** Vitest's JSON report, as far as the commands that run tests use it. */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';

interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly startTime: number;
    readonly endTime: number;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

export interface TestReport {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Slowest first; paths from the repository's root. */
  readonly files: readonly { readonly file: string; readonly seconds: number }[];
  /** What failed, with its messages. */
  readonly failures: readonly string[];
}

/** Null if the report is missing or cannot be read. */
export function readReport(path: string): TestReport | null {
  let report: VitestReport;
  try {
    report = JSON.parse(readFileSync(path, 'utf8')) as VitestReport;
  } catch {
    return null;
  }
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests,
    skipped: report.numPendingTests + report.numTodoTests,
    files: report.testResults
      .map(({ name, startTime, endTime }) => ({
        file: relative(PACKAGE_ROOT, name),
        seconds: (endTime - startTime) / 1_000,
      }))
      .toSorted((a, b) => b.seconds - a.seconds),
    failures: report.testResults.flatMap(({ name, status, message, assertionResults }) => {
      const file = relative(PACKAGE_ROOT, name);
      const failed = assertionResults.filter((test) => test.status === 'failed');
      if (status === 'failed' && failed.length === 0) return [`${file}\n${message}`];
      return failed.map(({ fullName, failureMessages }) => `${file}: ${fullName}\n${failureMessages.join('\n')}`);
    }),
  };
}
