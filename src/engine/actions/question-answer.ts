/** The values of a decision about an approval request: those that its question asks for (J8). */
import { jsonChars, TooDeep } from '../../bounded/json-size.ts';
import { EngineError } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../../domain/work.ts';
import { validateJson } from '../../executors/validate-parameters.ts';
import type { ApprovalView } from './approval-view.ts';

export interface Decision {
  readonly approved: boolean;
  readonly note: string | null;
  /** Values for a question; null: its defaults. */
  readonly content: JsonObject | null;
}

/**
 * The values that the target gets; undefined if the request asks for approval only, or is denied.
 *
 * @throws EngineError `invalid_answer`, which says which values are needed; the request stays open
 */
export function answerContent(
  { approval_id: id, question }: Pick<ApprovalView, 'approval_id' | 'question'>,
  { approved, content }: Pick<Decision, 'approved' | 'content'>,
): JsonObject | undefined {
  const invalid = (message: string): EngineError => new EngineError('invalid_answer', message, { approval_id: id });
  if (!approved || question === null) {
    if (content === null) return undefined;
    throw invalid(
      approved
        ? 'content: the request asks for approval only, not for values'
        : 'content: a denied question has no values',
    );
  }
  const { schema = EMPTY } = question;
  const values = content ?? defaultsOf(schema);
  const issue = sizeIssue(values) ?? validateJson({ ...schema, additionalProperties: false }, values, 'content');
  if (issue !== null) throw invalid(issue);
  return values;
}

/** A question without values. */
const EMPTY: JsonObject = { type: 'object', properties: {} };

function defaultsOf({ properties }: JsonObject): JsonObject {
  const entries = Object.entries(isJsonObject(properties) ? properties : {}).flatMap(([name, property]) =>
    isJsonObject(property) && property['default'] !== undefined ? [[name, property['default']] as [string, Json]] : [],
  );
  // fromEntries defines own properties, even for `__proto__`.
  return Object.fromEntries(entries);
}

function sizeIssue(values: JsonObject): string | null {
  const most = limits.questionContentChars;
  try {
    if (jsonChars(values, most, limits.outcomeDepth, new WorkMeter(limits.schemaSteps)) <= most) return null;
  } catch (fault) {
    if (!(fault instanceof TooDeep || fault instanceof WorkExceeded)) throw fault;
  }
  return `content: is too large (allowed: ${most} characters)`;
}
