/** The dataset of an evaluation: messages, and what their runs must be like (K4). */
import { z } from 'zod';
import { readYaml } from '../../src/catalog/read/yaml-file.ts';
import type { Json } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { nearestNames } from '../../src/domain/nearest.ts';
import { SCORER_NAMES } from './scorers.ts';

/** What one file may hold: its report must stay readable. */
const MOST_CASES = 1_000;
const MOST_EXPECTATIONS = 50;

const json = z.json() as z.ZodType<Json>;
const text = z.string().max(limits.messageBytes);

const expectation = z.union(
  [
    z.strictObject({ exact: text }),
    z.strictObject({ contains: text.min(1) }),
    z.strictObject({ matches: z.string().min(1).max(limits.patternChars) }),
    z.strictObject({ json }),
    z.strictObject({ cel: z.string().min(1).max(limits.conditionChars) }),
  ],
  { error: `must be a map with one of ${SCORER_NAMES.join(', ')}` },
);

const dataset = z.strictObject({
  agent: z.string().min(1).max(64).optional(),
  cases: z
    .array(
      z.strictObject({
        name: z.string().min(1).max(200),
        message: text.min(1),
        agent: z.string().min(1).max(64).optional(),
        variables: z.record(z.string(), json).optional(),
        expect: z.array(expectation).min(1).max(MOST_EXPECTATIONS),
      }),
    )
    .min(1)
    .max(MOST_CASES),
});

export type Dataset = z.infer<typeof dataset>;
export type EvalCase = Dataset['cases'][number];

const KNOWN: Readonly<Record<string, readonly string[]>> = {
  '': ['agent', 'cases'],
  cases: ['name', 'message', 'agent', 'variables', 'expect'],
};

/** @throws Error that names the line, or the member and the nearest known one */
export function readDataset(yaml: string): Dataset {
  const { documents, errors } = readYaml(yaml);
  const [fault] = errors;
  if (fault !== undefined) throw new Error(`line ${fault.line}, column ${fault.column}: ${fault.message}`);
  const read = dataset.safeParse(documents[0]?.value ?? {});
  if (!read.success) {
    const { issues } = read.error;
    // A misspelt member is also a missing one: its name says more.
    throw new Error(messageOf(issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]));
  }
  const names = read.data.cases.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`cases: two cases are called "${twice}"`);
  return read.data;
}

function messageOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return 'is not a dataset';
  const place = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  const at = place === '' ? '' : `${place.replace(/^\./, '')}: `;
  if (issue.code !== 'unrecognized_keys') return `${at}${issue.message}`;
  const [key = ''] = issue.keys;
  const known = KNOWN[String(issue.path[0] ?? '')] ?? SCORER_NAMES;
  const [near] = nearestNames(key, known);
  return `${at}"${key}" is unknown (known: ${known.join(', ')})${near === undefined ? '' : `. Did you mean "${near}"?`}`;
}
