/** The tasks and tools of `cortex fluency`: their schema, and what must hold between them (O4). */
import { z } from 'zod';
import { readYaml } from '../../../src/catalog/read/yaml-file.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { nearestNames } from '../../../src/domain/nearest.ts';
import { referenceNames } from '../../../src/protocol/references/references.ts';
import { checksumOf } from './checksum.ts';

export const KINDS = ['parallel', 'dependencies', 'references', 'repair', 'long_outputs'] as const;
export type Kind = (typeof KINDS)[number];

/** What the files may hold: a report must stay readable, and a run must end. */
const MOST_TASKS = 200;
const MOST_TOOLS = 100;
const MOST_CALLS = 40;
const MOST_SLOTS = 32;
const MOST_NOMINAL_MS = 60_000;
const DEFAULT_SLOTS = 8;
const LONGEST_MESSAGE = 20_000;

/** Placeholder for the text of a task, in its message and in the parameters of its plan. */
export const TEXT_PLACEHOLDER = '{{text}}';

const json = z.json() as z.ZodType<Json>;
const jsonObject = z.record(z.string(), json) as z.ZodType<JsonObject>;
const name = z.string().regex(/^[a-z][a-z0-9_]{0,63}$/);
const callId = z.string().regex(/^[a-z][a-z0-9_]{0,31}$/);
const value = z.union([z.string().min(1), z.number()]);

const toolSpec = z.strictObject({
  summary: z.string().min(1).max(300),
  parameters: z.array(jsonObject).min(1),
  returns: jsonObject,
  ms: z.int().min(1).max(MOST_NOMINAL_MS),
  data: json,
  result: z.string().min(1).max(limits.queryChars),
  digest: name.optional(),
  fails_first: z
    .strictObject({
      times: z.int().min(1),
      code: name,
      message: z.string().min(1),
      retryable: z.literal(true).optional(),
    })
    .optional(),
});

const call = z.strictObject({
  id: callId,
  tool: name,
  parameters: jsonObject,
  after: z.array(callId).optional(),
  sees: z.array(callId).optional(),
  fails: z.literal(true).optional(),
});

const task = z.strictObject({
  name: z.string().regex(/^[a-z0-9-]{1,64}$/),
  message: z.string().min(1).max(LONGEST_MESSAGE),
  text: z.string().min(1).max(LONGEST_MESSAGE).optional(),
  tools: z.array(name).min(1).max(MOST_TOOLS),
  slots: z.int().min(1).max(MOST_SLOTS).default(DEFAULT_SLOTS),
  plan: z.array(call).min(1).max(MOST_CALLS),
  avoids: z.array(name).min(1).optional(),
  answer: z.string().min(1),
  judged: z.literal(true).optional(),
  expect: z.strictObject({
    contains: z.array(value).min(1).optional(),
    lacks: z.array(value).min(1).optional(),
    labelled: z.record(z.string().min(1), z.union([value, z.array(value).min(1)])).optional(),
    ordered: z.literal(true).optional(),
    json: json.optional(),
    checksums: z.array(z.string().min(1)).min(1).optional(),
  }),
});

const taskFile = z.strictObject({ kind: z.enum(KINDS), tasks: z.array(task).min(1).max(MOST_TASKS) });
const toolFile = z.strictObject({ tools: z.record(name, toolSpec) });

/** A tool of the tasks: a manifest, and what it answers. */
export type ToolSpec = z.infer<typeof toolSpec>;
/**
 * A call of an ideal plan. `after`: ids that must have ended, in addition to those that it refers to. `sees`: ids whose
 * results decide whether or how it is made, so the model has to read them first. `fails`: it fails in every plan.
 */
export type PlannedCall = z.infer<typeof call>;
/**
 * What an answer must be like: texts and numbers that it has or lacks, or the JSON that it is. `labelled`: values by the name
 * that they belong to, as the message has it. `ordered`: `contains` is in the order of the answer.
 */
export type Expectation = Omit<z.infer<typeof task>['expect'], 'checksums'>;
/**
 * `judged`: the answer cannot be written before the results are known. `slots`: actions that may run at a time. `avoids`:
 * tools that the message allows only in a case that does not occur.
 */
export type Task = Omit<z.infer<typeof task>, 'expect'> & { readonly kind: Kind; readonly expect: Expectation };

export interface Dataset {
  readonly tasks: readonly Task[];
  readonly tools: ReadonlyMap<string, ToolSpec>;
}

/** A file of a dataset: its name for errors, and its YAML. */
export interface DatasetFile {
  readonly name: string;
  readonly yaml: string;
}

/**
 * @param builtins tools that tasks may use and no file defines
 * @throws Error that names the file, the member and the nearest known one
 */
export function readDataset(tools: DatasetFile, files: readonly DatasetFile[], builtins: readonly string[]): Dataset {
  const specs = new Map(Object.entries(parsed(tools, toolFile).tools));
  const known = [...builtins, ...specs.keys()];
  const tasks = files.flatMap((file) => {
    const { kind, tasks: read } = parsed(file, taskFile);
    return read.map((one): Task => {
      const message = one.message.replace(TEXT_PLACEHOLDER, () => one.text ?? '');
      const made = { ...one, kind, message, expect: withChecksums(one) };
      checkTask(made, known, `${file.name}: task "${one.name}"`);
      return made;
    });
  });
  const names = tasks.map((one) => one.name);
  const twice = names.find((one, at) => names.indexOf(one) !== at);
  if (twice !== undefined) throw new Error(`the task "${twice}" is a duplicate`);
  return { tasks, tools: specs };
}

/** The checksums of texts as values that the answer must have. */
function withChecksums({ text = '', expect: { checksums = [], ...expected } }: z.infer<typeof task>): Expectation {
  const sums = checksums.map((one) => checksumOf(one === TEXT_PLACEHOLDER ? text : one));
  return sums.length === 0 ? expected : { ...expected, contains: [...(expected.contains ?? []), ...sums] };
}

/** @throws Error if a name in the task is not known where it is used */
function checkTask(
  { tools, plan, avoids = [], answer, expect, message, text }: Task,
  known: readonly string[],
  where: string,
): void {
  const require = (kind: string, wanted: string, names: readonly string[]): void => {
    if (names.includes(wanted)) return;
    const [near] = nearestNames(wanted, names);
    const hint = near === undefined ? '' : `; did you mean "${near}"?`;
    throw new Error(`${where}: the ${kind} "${wanted}" is unknown (known: ${names.join(', ')})${hint}`);
  };
  for (const tool of tools) require('tool', tool, known);
  for (const tool of avoids) {
    require('tool', tool, tools);
    if (plan.some((one) => one.tool === tool)) throw new Error(`${where}: the plan calls "${tool}", which it avoids`);
  }
  const before: string[] = [];
  for (const { id, tool, parameters, after = [], sees = [] } of plan) {
    require('tool', tool, tools);
    for (const other of [...referenceNames(parameters), ...after, ...sees]) require('earlier call', other, before);
    if (before.includes(id)) throw new Error(`${where}: the call "${id}" is a duplicate`);
    before.push(id);
  }
  for (const other of referenceNames(answer)) require('call', other, before);
  if (text !== undefined && !message.includes(text)) throw new Error(`${where}: the message lacks ${TEXT_PLACEHOLDER}`);
  if (expect.contains === undefined && expect.json === undefined && expect.labelled === undefined) {
    throw new Error(`${where}: expect needs contains, labelled, checksums or json`);
  }
}

function parsed<T>({ name: file, yaml }: DatasetFile, schema: z.ZodType<T>): T {
  const { documents, errors } = readYaml(yaml);
  const [fault] = errors;
  if (fault !== undefined) throw new Error(`${file}: line ${fault.line}, column ${fault.column}: ${fault.message}`);
  const read = schema.safeParse(documents[0]?.value ?? {});
  if (read.success) return read.data;
  // A misspelt member is also a missing one: its name says more.
  const { issues } = read.error;
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  throw new Error(`${file}: ${messageOf(issue)}`);
}

/** The members of each map, by the name of the list or map that has it. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  '': ['kind', 'tasks', 'tools'],
  tasks: Object.keys(task.shape),
  tools: Object.keys(toolSpec.shape),
  plan: Object.keys(call.shape),
  expect: Object.keys(task.shape.expect.shape),
  fails_first: ['times', 'code', 'message', 'retryable'],
};

function messageOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return 'is not a dataset';
  const place = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  const at = place === '' ? '' : `${place.replace(/^\./, '')}: `;
  if (issue.code !== 'unrecognized_keys') return `${at}${issue.message}`;
  const [key = ''] = issue.keys;
  const holder = issue.path.findLast((step) => typeof step === 'string' && Object.hasOwn(MEMBERS, step));
  const known = MEMBERS[String(holder ?? '')] ?? [];
  const [near] = nearestNames(key, known);
  return `${at}"${key}" is unknown (known: ${known.join(', ')})${near === undefined ? '' : `. Did you mean "${near}"?`}`;
}
