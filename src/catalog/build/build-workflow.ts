/** Builds a workflow's definition from its manifest, with all defaults (M6). */
import { isImported, MANIFEST_ACTION_TYPES } from '../../domain/action-types.ts';
import type { ImportedType } from '../../domain/action-types.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { isOfAgents, INTERNAL_ACTIONS, isInternalAction } from '../../domain/internal-actions.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { WorkflowDefinition, WorkflowStep, WorkflowTrigger } from '../../domain/manifests/workflow.ts';
import { policiesOf } from './build-policies.ts';
import { toBase, toRetry, toTimeoutMs } from './build-base.ts';
import type { BuildContext } from './build-base.ts';
import { toRedact } from './build-redact.ts';
import { checkWorkflow } from '../check/check-workflow.ts';
import { cronIssue } from '../check/cron.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { toParameterSchema } from './parameters.ts';
import type { FieldPath } from '../check/problem.ts';
import type { StepInput, WorkflowInput } from '../schema/schema-workflow.ts';

export interface WorkflowContext extends BuildContext {
  readonly imports: AgentDefinition['imports'];
  /** Resolves a step's target to a name; reports an issue and returns null if it does not exist. */
  target(written: string, kind: ImportedType, field: FieldPath, isOptional?: boolean): string | null;
}

/** A workflow without declared inputs accepts any inputs. */
const ANYTHING: JsonObject = { type: 'object', additionalProperties: true };

export function toWorkflow(input: WorkflowInput, context: WorkflowContext): WorkflowDefinition {
  const used: Record<ImportedType, Set<string>> = {
    tool: new Set(context.imports.tools),
    agent: new Set(context.imports.agents),
    relic: new Set(context.imports.relics),
    workflow: new Set(context.imports.workflows),
  };
  const field = input.inputs === undefined ? 'parameters' : 'inputs';
  const written = input.inputs ?? input.parameters;
  const inputs =
    written === undefined || written === null
      ? ANYTHING
      : toParameterSchema(written, (fault) => context.addIssue([field, ...fault.path], fault.message), context.work);
  checkWorkflow(input, inputs, context);
  return {
    kind: 'Workflow',
    ...toBase(input, context.free),
    trigger: toTrigger(input.trigger, context),
    inputs,
    ...(input.defaults === undefined ? {} : { defaults: input.defaults as JsonObject }),
    steps: toSteps(input.steps, ['steps'], 0, {
      context,
      used,
      mayRunShell: input.capabilities?.includes('shell') === true,
    }),
    outputs: Object.fromEntries(
      Object.entries(input.outputs ?? {}).map(([name, output]) => [
        name,
        plainPath(typeof output === 'string' ? output : output.source),
      ]),
    ),
    failFast: input.fail_fast ?? true,
    maxParallelSteps: input.max_parallel_steps ?? limits.maxParallelActions,
    ...policiesOf(input, context),
    ...toRedact(input.redact, context),
    ...(input.expose === undefined ? {} : { expose: input.expose }),
    ...(input.capabilities === undefined ? {} : { capabilities: [...new Set(input.capabilities)] }),
    imports: {
      tools: [...used.tool],
      agents: [...used.agent],
      relics: [...used.relic],
      workflows: [...used.workflow],
    },
  };
}

/** Accepts `$(steps.s.field)` and `steps.s.field` in fields that contain only a path. */
function plainPath(source: string): string {
  return /^\s*\$[({](.*)[)}]\s*$/.exec(source)?.[1]?.trim() ?? source.trim();
}

function toTrigger(written: WorkflowInput['trigger'], { addIssue, intervals }: BuildContext): WorkflowTrigger {
  if (written === undefined || typeof written === 'string' || written.type === 'manual') return { type: 'manual' };
  switch (written.type) {
    case 'scheduled': {
      const timezone = written.timezone ?? 'UTC';
      if (!isTimezone(timezone)) {
        addIssue(['trigger', 'timezone'], `"${timezone}" is not an IANA time zone, such as Europe/Berlin`);
      }
      const cron = written.cron.trim();
      const issue = cronIssue(cron, intervals?.cronMinMs ?? null);
      if (issue !== null) addIssue(['trigger', 'cron'], issue);
      return { type: 'scheduled', cron, timezone, inputs: (written.inputs ?? {}) as JsonObject };
    }
    case 'webhook':
      return { type: 'webhook', secret: written.secret };
    case 'event':
      return { type: 'event', event: written.event };
  }
}

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) instanceof Intl.DateTimeFormat;
  } catch {
    return false;
  }
}

interface Building {
  readonly context: WorkflowContext;
  readonly used: Record<ImportedType, Set<string>>;
  readonly mayRunShell: boolean;
}

function toSteps(written: readonly StepInput[], field: FieldPath, depth: number, building: Building): WorkflowStep[] {
  const { context } = building;
  if (depth > limits.workflowDepth) {
    context.addIssue(field, `the steps are nested deeper than ${limits.workflowDepth} lists`);
    return [];
  }
  const names = new Set<string>();
  for (const [index, { name }] of written.entries()) {
    if (names.has(name))
      context.addIssue([...field, index, 'name'], `another step in this list is already called "${name}"`);
    names.add(name);
  }
  const steps = written.map((step, index) => toStep(step, [...field, index], depth, building));
  checkDependencies(steps, names, field, context);
  return steps;
}

function toStep(written: StepInput, field: FieldPath, depth: number, building: Building): WorkflowStep {
  const { context } = building;
  const inner = (steps: readonly StepInput[] | undefined, ...path: (string | number)[]): WorkflowStep[] =>
    toSteps(steps ?? [], [...field, ...path], depth + 1, building);
  const { on_failure: failed } = written;
  const handler = typeof failed === 'object' ? failed : { do: failed, steps: [] };
  checkFields(written, field, context);
  if (written.type === 'shell') checkShell(written, field, building);
  const retry = written.retry_policy ?? written.retry;
  return {
    name: written.name,
    type: written.type,
    ...toTarget(written, field, building),
    parameters: (written.parameters ?? {}) as JsonObject,
    condition: written.condition ?? null,
    dependsOn: written.depends_on === undefined ? null : [written.depends_on].flat(),
    timeoutMs: toTimeoutMs(written.timeout, [...field, 'timeout'], context),
    onFailure: handler.do ?? 'abort',
    compensate: [...inner(handler.steps, 'on_failure', 'steps'), ...inner(written.compensate, 'compensate')],
    retry: retry === undefined ? null : toRetry(retry),
    outputMapping: Object.fromEntries(
      Object.entries(written.output_mapping ?? {}).map(([name, path]) => [name, plainPath(path)]),
    ),
    steps: inner(written.steps, 'steps'),
    otherwise: [...inner(written.else, 'else'), ...inner(written.otherwise, 'otherwise')],
    items: (written.items ?? null) as Json,
    concurrency: written.concurrency ?? null,
    ...(written.value === undefined ? {} : { value: written.value }),
    ...(written.cases === undefined
      ? {}
      : {
          cases: written.cases.map(({ value, steps }, index) => ({
            value: String(value),
            steps: inner(steps, 'cases', index, 'steps'),
          })),
        }),
    ...(written.catch === undefined ? {} : { rescue: inner(written.catch, 'catch') }),
    ...(written.finally === undefined ? {} : { always: inner(written.finally, 'finally') }),
    ...(written.until === undefined ? {} : { until: written.until }),
    ...(written.max_rounds === undefined ? {} : { maxRounds: written.max_rounds }),
  };
}

function toTarget(
  written: StepInput,
  field: FieldPath,
  { context, used }: Building,
): Pick<WorkflowStep, 'target' | 'action'> {
  const { type, target, action } = written;
  if (type === 'internal') {
    const name = target ?? action;
    if (name === undefined || !isInternalAction(name) || isOfAgents(name)) {
      const found = name === undefined ? 'is missing' : `"${name}" is not an internal action of a workflow`;
      context.addIssue(
        [...field, 'target'],
        `${found} (allowed: ${INTERNAL_ACTIONS.filter((known) => !isOfAgents(known)).join(', ')})`,
      );
    }
    return { target: name ?? null, action: null };
  }
  if (!hasManifest(type)) return { target: target ?? null, action: action ?? null };
  if (target === undefined) {
    context.addIssue([...field, 'target'], `is missing: which ${type} the step uses`);
    return { target: null, action: null };
  }
  // `store.get` is a relic and its endpoint, a path is a file
  const [relic = '', endpoint] =
    type === 'relic' && action === undefined && !/[/\\]|\.ya?ml$/i.test(target) ? target.split('.', 2) : [target];
  const name = context.target(relic, type, [...field, 'target'], written.optional);
  if (name !== null) used[type].add(name);
  return { target: name ?? relic, action: type === 'relic' ? (action ?? endpoint ?? null) : null };
}

function hasManifest(type: StepInput['type']): type is ImportedType {
  const found = MANIFEST_ACTION_TYPES.find((one) => one === type);
  return found !== undefined && isImported(found);
}

/** The fields that only some types have, with those types. */
const FIELDS: Readonly<Record<string, readonly StepInput['type'][]>> = {
  else: ['conditional', 'switch'],
  items: ['for_each', 'reduce'],
  steps: ['conditional', 'parallel', 'for_each', 'race', 'reduce', 'loop', 'try'],
  value: ['value', 'return', 'switch', 'reduce'],
  cases: ['switch'],
  catch: ['try'],
  finally: ['try'],
  until: ['loop'],
  max_rounds: ['loop'],
};

/** Reports missing and unsupported fields of a step's type. */
function checkFields(step: StepInput, field: FieldPath, { addIssue }: BuildContext): void {
  const { type } = step;
  const need = (name: keyof StepInput, what: string): void => {
    if (step[name] === undefined) addIssue([...field, name], `is missing: ${what}`);
  };
  for (const [name, types] of Object.entries(FIELDS)) {
    if (step[name as keyof StepInput] === undefined || types.includes(type)) continue;
    const list = types.length === 1 ? types[0] : `${types.slice(0, -1).join(', ')} and ${types.at(-1)}`;
    addIssue([...field, name], `is allowed only for ${list} steps; this step is ${type}`);
  }
  switch (type) {
    case 'conditional':
      need('condition', 'a CEL expression');
      if ((step.steps ?? step.else ?? step.otherwise) === undefined)
        need('steps', 'the steps to run if the condition is true');
      break;
    case 'switch':
      need('value', 'what the cases are compared with');
      need('cases', 'the values, each with its steps');
      break;
    case 'for_each':
    case 'reduce':
      need('items', 'the list, or a reference to one');
      need('steps', 'the steps to run for each item');
      break;
    case 'parallel':
    case 'race':
      need('steps', 'the steps to run in parallel');
      break;
    case 'loop':
      need('steps', 'the steps to repeat');
      break;
    case 'try':
      need('steps', 'the steps that may fail');
      break;
    case 'ask':
      if (typeof step.parameters?.['prompt'] !== 'string')
        addIssue([...field, 'parameters'], 'needs the text "prompt": the question to a person');
      break;
    default:
      break;
  }
}

/** The command is fixed text; values reach it as environment variables (P14, X4). */
function checkShell({ parameters = {} }: StepInput, field: FieldPath, { context, mayRunShell }: Building): void {
  const { command, inputs } = parameters;
  if (typeof command !== 'string' || command.trim() === '') {
    context.addIssue([...field, 'parameters'], 'needs the text "command"');
  }
  if (inputs !== undefined && !isJsonObject(inputs)) {
    context.addIssue([...field, 'parameters', 'inputs'], 'must be a map of variable name to value');
  }
  if (!mayRunShell) context.addIssue([...field, 'type'], 'shell needs "capabilities: [shell]" in the workflow');
}

/** Dependencies must name steps of the same list. */
function checkDependencies(
  steps: readonly WorkflowStep[],
  names: ReadonlySet<string>,
  field: FieldPath,
  { addIssue }: BuildContext,
): void {
  for (const [index, { dependsOn }] of steps.entries()) {
    for (const [place, name] of (dependsOn ?? []).entries()) {
      if (names.has(name)) continue;
      const near = nearestNames(name, [...names]);
      const hint = near.length > 0 ? `did you mean ${near[0]}?` : `known: ${[...names].join(', ')}`;
      addIssue([...field, index, 'depends_on', place], `no step in this list is called "${name}" (${hint})`);
    }
  }
}
