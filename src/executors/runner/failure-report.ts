/** The failure that a program reports in its own words, as a JSON object in its output (R3). */
import { excerptOf } from '../../bounded/json-size.ts';
import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { parseOutput } from './job-output.ts';

const REASON_CHARS = 8_000;
const REASON_FIELDS = ['error', 'error_message', 'message'] as const;

export interface FailureReport {
  /** Null if the object says only that the program failed. */
  readonly reason: string | null;
  /** Null if the object does not say. */
  readonly retryable: boolean | null;
}

/** Reads `{"success": false, "error": …}` or `{"status": "error", "message": …}`; null for any other value. */
export function failureReportOf(output: unknown): FailureReport | null {
  if (!isJsonObject(output)) return null;
  return output['success'] === false || output['status'] === 'error' ? reportOf(output) : null;
}

/**
 * The report of a program that ended with a non-zero exit code: the whole stdout, or its last line after other output.
 * The exit code already says that it failed, so an object with a reason is enough.
 */
export function reportAtExit(stdout: string): FailureReport | null {
  const text = stdout.trimEnd();
  const output = parsedObject(text) ?? parsedObject(text.slice(text.lastIndexOf('\n') + 1));
  if (output === null || output['success'] === true) return null;
  const report = reportOf(output);
  return report.reason === null ? null : report;
}

function reportOf(output: JsonObject): FailureReport {
  const { retryable } = output;
  return { reason: reasonOf(output), retryable: typeof retryable === 'boolean' ? retryable : null };
}

function parsedObject(text: string): JsonObject | null {
  if (!text.trimStart().startsWith('{')) return null;
  const value: Json = parseOutput(text);
  return isJsonObject(value) ? value : null;
}

function reasonOf(output: JsonObject): string | null {
  for (const field of REASON_FIELDS) {
    const found = output[field];
    const text = typeof found === 'string' ? found.trim() : isGiven(found) ? excerptOf(found, limits.excerptChars) : '';
    if (text !== '') return text.length > REASON_CHARS ? `${text.slice(0, REASON_CHARS)}…` : text;
  }
  return null;
}

function isGiven(value: Json | undefined): boolean {
  return value !== undefined && value !== null;
}
