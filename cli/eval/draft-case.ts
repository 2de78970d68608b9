/**
 * A recorded run as a case (O3). The expectations are proposals from what the run did: a person keeps those that matter.
 *
 * Redacted text is never expected: the next run of the same message may hide another part, or nothing.
 */
import { isJsonObject, parseJson } from '../../src/domain/json.ts';
import type { Json } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { cutText } from './cut-text.ts';
import { NAME_CHARS } from './dataset.ts';
import type { EvalCase, Expectation } from './dataset.ts';
import { isRedacted } from './recording.ts';
import type { RecordedAction, Recording } from './recording.ts';

/** Longer answers are seldom repeated word by word: a judge compares them. */
const CONTAINED_CHARS = 100;
/** Of an answer in the criteria of a judge. */
const QUOTED_CHARS = 2_000;
/** Parameters beyond these are not compared. */
const PARAMETER_CHARS = 200;
const MOST_ACTIONS = 20;
const TITLE_CHARS = 60;

/** @param taken names of the dataset that the case is added to */
export function draftCase(recording: Recording, taken: ReadonlySet<string>, datasetAgent: string | null): EvalCase {
  const { agent, message, history, variables, approvals } = recording;
  return {
    name: freeName(titleOf(message), taken),
    ...(agent === datasetAgent ? {} : { agent }),
    message,
    ...(history.length === 0 ? {} : { history: [...history] }),
    ...(Object.keys(variables).length === 0 ? {} : { variables }),
    ...(approvals === null ? {} : { approvals }),
    expect: expectationsOf(recording),
  };
}

function titleOf(message: string): string {
  const line = message.replaceAll(/\s+/g, ' ').trim();
  return line.length > TITLE_CHARS ? `${cutText(line, TITLE_CHARS - 1)}…` : line;
}

function freeName(title: string, taken: ReadonlySet<string>): string {
  let name = title;
  for (let number = 2; taken.has(name); number += 1) name = `${cutText(title, NAME_CHARS - 10)} (${number})`;
  return name;
}

function expectationsOf({ actions, answer }: Recording): Expectation[] {
  const conditions = [...new Set(actions.flatMap((action) => conditionOf(action) ?? []))].slice(0, MOST_ACTIONS);
  const expected = [...conditions.map((cel) => ({ cel })), ...answerExpectations(answer)];
  return expected.length > 0 ? expected : [judged('Replace this: what a good answer must contain.')];
}

function answerExpectations(answer: string | null): Expectation[] {
  const text = answer?.trim() ?? '';
  if (text === '') return [];
  const isOpen = !isRedacted(text);
  const value = parseJson(text);
  if (isOpen && value !== undefined && (isJsonObject(value) || Array.isArray(value))) return [{ json: value }];
  if (isOpen && text.length <= CONTAINED_CHARS && !text.includes('\n')) return [{ contains: text }];
  const quoted = text.length > QUOTED_CHARS ? `${cutText(text, QUOTED_CHARS)}…` : text;
  const hidden = isOpen ? '' : ' Parts that read [redacted] may be anything.';
  const criteria = `The answer says the same as this one, in any words.${hidden}\n${quoted}`;
  return [judged(criteria)];
}

function judged(criteria: string): Expectation {
  return { judge: { criteria, votes: 1, verdict: 'pass' } };
}

/** The CEL condition that the action has run with its simple parameters; null for internal actions. */
function conditionOf({ type, name, parameters }: RecordedAction): string | null {
  if (type === 'internal') return null;
  const isNamed = name !== type;
  const parts = [
    isNamed ? `a.name == ${celText(name)}` : `a.type == ${celText(type)}`,
    'a.status == "completed"',
    ...Object.entries(parameters).flatMap(([key, value]) => {
      const literal = celLiteral(value);
      return literal === null ? [] : [`${celMember(key)} == ${literal}`];
    }),
  ];
  const condition = `actions.exists(a, ${parts.join(' && ')})`;
  return condition.length > limits.conditionChars ? `actions.exists(a, ${parts.slice(0, 2).join(' && ')})` : condition;
}

function celMember(key: string): string {
  return `a.parameters[${celText(key)}]`;
}

/** Null for a value that is not compared. */
function celLiteral(value: Json): string | null {
  if (typeof value === 'string') {
    const isCompared = value.length <= PARAMETER_CHARS && value.isWellFormed() && !isRedacted(value);
    return isCompared ? celText(value) : null;
  }
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : null;
}

/** JSON's escapes are those of CEL. */
function celText(text: string): string {
  return JSON.stringify(text);
}
