/** The dataset of an evaluation: messages, and what their runs must be like (O3). */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { conditionIssue } from '../../src/bounded/conditions/condition.ts';
import { compilePattern } from '../../src/bounded/pattern.ts';
import { describeIssue } from '../../src/catalog/check/issues.ts';
import { readYaml } from '../../src/catalog/read/yaml-file.ts';
import type { Json } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { nearestNames } from '../../src/domain/nearest.ts';
import { WorkMeter } from '../../src/domain/work.ts';

/** What one file may hold: its report must stay readable. */
export const MOST_CASES = 1_000;
export const NAME_CHARS = 200;
const MOST_EXPECTATIONS = 50;
const AGENT_CHARS = 64;
/** Of a judge: each vote is a model call. */
const MOST_VOTES = 9;
const CRITERIA_CHARS = 4_000;
/** Work of compiling one pattern. */
const PATTERN_STEPS = 50_000_000;

const json = z.json() as z.ZodType<Json>;
const text = z.string().max(limits.messageBytes);
const agentName = z.string().min(1).max(AGENT_CHARS);

const judge = z.preprocess(
  (given) => (typeof given === 'string' ? { criteria: given } : given),
  z.strictObject({
    /** What must be true of the answer. */
    criteria: z.string().trim().min(1).max(CRITERIA_CHARS),
    /** How often the judge is asked; the majority decides. */
    votes: z
      .number()
      .int()
      .min(1)
      .max(MOST_VOTES)
      .refine((votes) => votes % 2 === 1, { error: 'must be odd, so that there is a majority' })
      .default(1),
    /** The expected verdict: `fail` is for answers that a judge must not accept. */
    verdict: z.enum(['pass', 'fail']).default('pass'),
  }),
);

const SCORERS = {
  exact: text,
  contains: text.min(1),
  matches: checkedText(limits.patternChars, patternIssue),
  json,
  cel: checkedText(limits.conditionChars, conditionIssue),
  judge,
} as const;

const expectation = z
  .strictObject({
    exact: SCORERS.exact.exactOptional(),
    contains: SCORERS.contains.exactOptional(),
    matches: SCORERS.matches.exactOptional(),
    json: SCORERS.json.exactOptional(),
    cel: SCORERS.cel.exactOptional(),
    judge: SCORERS.judge.exactOptional(),
  })
  .refine((one) => Object.keys(one).length === 1, {
    error: `must be a map with one of ${Object.keys(SCORERS).join(', ')}`,
  });

const turn = z.strictObject({ role: z.enum(['user', 'assistant']), content: text.min(1) });

/** What only a run has. */
const OF_RUNS = ['agent', 'variables', 'history', 'approvals'] as const;

const evalCase = z.strictObject({
  name: z.string().min(1).max(NAME_CHARS),
  message: text.min(1),
  agent: agentName.exactOptional(),
  /** Instead of a run: an answer that is only scored. For cases with known verdicts, which check a judge. */
  answer: text.exactOptional(),
  /** First session variables. */
  variables: z.record(z.string(), json).exactOptional(),
  /** The conversation before the message. */
  history: z.array(turn).max(limits.seededMessages).exactOptional(),
  /** The answer to every request for approval. Default: the run is cancelled when it waits. */
  approvals: z.enum(['approve', 'deny']).exactOptional(),
  expect: z.array(expectation).min(1).max(MOST_EXPECTATIONS),
});

const checkedCase = evalCase.superRefine((one, context) => {
  if (one.answer === undefined) return;
  const useless = OF_RUNS.find((name) => one[name] !== undefined);
  if (useless === undefined) return;
  context.addIssue({ code: 'custom', path: [useless], message: 'has no effect: a case with an answer is not run' });
});

const dataset = z.strictObject({
  agent: agentName.exactOptional(),
  cases: z.array(checkedCase).min(1).max(MOST_CASES),
});

export type Dataset = z.infer<typeof dataset>;
export type EvalCase = Dataset['cases'][number];
export type Expectation = EvalCase['expect'][number];
export type JudgeCriteria = NonNullable<Expectation['judge']>;
export type Turn = z.infer<typeof turn>;

/** Text that must also compile, because a run cannot fulfil an expectation that cannot be evaluated. */
function checkedText(most: number, issueOf: (given: string) => string | null): z.ZodString {
  return z
    .string()
    .min(1)
    .max(most)
    .superRefine((given, context) => {
      const message = issueOf(given);
      if (message !== null) context.addIssue({ code: 'custom', message });
    });
}

function patternIssue(pattern: string): string | null {
  const compiled = compilePattern(pattern, new WorkMeter(PATTERN_STEPS));
  return compiled.ok ? null : compiled.reason;
}

/** Members by the last name in the path of an issue. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  '': Object.keys(dataset.shape),
  cases: Object.keys(evalCase.shape),
  expect: Object.keys(SCORERS),
  history: Object.keys(turn.shape),
  judge: ['criteria', 'votes', 'verdict'],
};

/** @throws Error that names the line, or the member and the nearest known one */
export function readDataset(yaml: string): Dataset {
  const { documents, errors } = readYaml(yaml);
  const [fault] = errors;
  if (fault !== undefined) throw new Error(`line ${fault.line}, column ${fault.column}: ${fault.message}`);
  const [first, second] = documents;
  if (second !== undefined) {
    const { line } = second.place([]);
    throw new Error(`line ${line}: has a second YAML document (allowed: 1); put all cases into one list`);
  }
  const value = first?.value ?? {};
  const read = dataset.safeParse(value);
  if (!read.success) {
    const { issues } = read.error;
    // A misspelt member is also a missing one: its name says more.
    throw new Error(messageOf(issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0], value));
  }
  const names = read.data.cases.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`cases: two cases are called "${twice}"`);
  return read.data;
}

/**
 * Identifies the content of a case, so that only equal cases are compared. Its name and the order of members do not count.
 *
 * @returns SHA-256, hexadecimal
 */
export function digestOfCase({ name: _name, ...content }: EvalCase): string {
  return sha256(canonical(content));
}

/** Identifies the cases of a dataset with their names, in any order. @returns SHA-256, hexadecimal */
export function digestOfDataset({ cases }: Dataset): string {
  return sha256(
    cases
      .map((one) => JSON.stringify([one.name, digestOfCase(one)]))
      .sort()
      .join('\n'),
  );
}

function sha256(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** JSON with sorted members. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

function messageOf(issue: z.core.$ZodIssue | undefined, value: Json): string {
  if (issue === undefined) return 'is not a dataset';
  const place = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  const at = place === '' ? '' : `${place.replace(/^\./, '')}: `;
  if (issue.code === 'custom') return `${at}${issue.message}`;
  if (issue.code !== 'unrecognized_keys') return `${at}${describeIssue(issue, value)}`;
  const [key = ''] = issue.keys;
  const known = KNOWN[String(issue.path.findLast((step) => typeof step === 'string') ?? '')] ?? [];
  const [near] = nearestNames(key, known);
  return `${at}"${key}" is unknown (known: ${known.join(', ')})${near === undefined ? '' : `. Did you mean "${near}"?`}`;
}
