/** Builds a tool's definition from its manifest, with all defaults (M3). */
import { bindingIssue } from '../../domain/bindings.ts';
import type { DescribedTool } from '../../domain/code-tool.ts';
import { limits } from '../../domain/limits.ts';
import { nearestNames } from '../../domain/nearest.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ToolDefinition, ToolImplementation } from '../../domain/manifests/tool.ts';
import { toImage } from './build-image.ts';
import { toBase, toNeeds, toRetry, toTimeoutMs } from './build-base.ts';
import type { BuildContext } from './build-base.ts';
import { toScript } from './build-script.ts';
import { toParameterSchema } from './parameters.ts';
import { knownParameters, placeholderIssue } from './placeholders.ts';
import type { ToolInput } from '../schema/schema.ts';
import { toCpus, toMebibytes, toMs } from '../schema/units.ts';

export function toTool(input: ToolInput, context: BuildContext): ToolDefinition {
  if (input.parameters !== undefined && input.parameters_schema !== undefined) {
    context.addIssue(['parameters_schema'], 'duplicates "parameters"; use one of them');
  }
  const field = input.parameters === undefined ? 'parameters_schema' : 'parameters';
  const timeout = input.timeout ?? input.implementation.resources?.timeout;
  const timeoutField = input.timeout === undefined ? ['implementation', 'resources', 'timeout'] : ['timeout'];
  const implementation = toImplementation(input, context);
  const code = implementation.type === 'code' ? codeOf(input, context) : null;
  let isValid = true;
  const parameters = toParameterSchema(
    code?.parameters ?? input.parameters ?? input.parameters_schema ?? null,
    (fault) => {
      isValid = false;
      context.addIssue([field, ...fault.path], fault.message);
    },
    context.work,
    code !== null,
  );
  // without valid parameters, every placeholder would be an issue
  if (implementation.type === 'http' && isValid) checkRequest(implementation, parameters, context);
  if (input.expose !== undefined && implementation.type === 'client') {
    context.addIssue(['expose'], 'is for tools that run here: the client of an agent executes this one');
  }
  return {
    kind: 'Tool',
    ...toBase(input, context.free),
    implementation,
    parameters,
    returns: input.returns ?? null,
    effects: code?.effects ?? input.effects ?? 'unsafe',
    approval: input.approval ?? 'never',
    dispatch: input.dispatch ?? 'eager',
    concurrency: input.concurrency ?? null,
    timeoutMs: toTimeoutMs(
      timeout,
      timeoutField,
      context,
      implementation.type === 'client' ? limits.clientToolMostMs : limits.maxActionTimeoutMs,
    ),
    retry: input.retry === undefined ? null : toRetry(input.retry),
    cacheTtlMs: input.cache_ttl === undefined ? null : toMs(input.cache_ttl),
    ...(input.workspace === 'none' ? { workspace: false } : {}),
    ...(input.expose === undefined ? {} : { expose: input.expose }),
    examples: input.examples ?? (code?.example === undefined ? [] : [code.example]),
  };
}

/** The project's code for a tool; reports an issue and returns null if there is none. */
function codeOf(
  { name, parameters, parameters_schema: schema, effects, implementation }: ToolInput,
  { codeTools, addIssue }: BuildContext,
): DescribedTool | null {
  const twice = { parameters, parameters_schema: schema, effects };
  for (const [member, value] of Object.entries(twice)) {
    if (value !== undefined) addIssue([member], 'is in the code of the tool; remove it here');
  }
  const { bindings = [] } = implementation.type === 'code' ? implementation : {};
  for (const [at, binding] of bindings.entries()) {
    const issue = bindingIssue(binding);
    if (issue !== null) addIssue(['implementation', 'bindings', at], issue);
  }
  const found = codeTools.get(name) ?? null;
  if (found === null) {
    const near = nearestNames(name, [...codeTools.keys()]);
    const nearest = near.length > 0 ? ` (nearest: ${near.join(', ')})` : '';
    addIssue(
      ['implementation', 'type'],
      `no code tool is called "${name}"${nearest}; tools/${name}.ts of the project must export it, and uploaded manifests cannot bring code`,
    );
  }
  return found;
}

function checkRequest(
  { url, headers }: Extract<ToolImplementation, { type: 'http' }>,
  parameters: JsonObject,
  { addIssue }: BuildContext,
): void {
  const known = knownParameters(parameters);
  const issue = placeholderIssue({ text: url, kind: 'url' }, known);
  if (issue !== null) addIssue(['implementation', 'url'], issue);
  for (const [name, text] of Object.entries(headers)) {
    const wrong = placeholderIssue({ text, kind: 'header' }, known);
    if (wrong !== null) addIssue(['implementation', 'headers', name], wrong);
  }
}

function toImplementation(input: ToolInput, context: BuildContext): ToolImplementation {
  const written = input.implementation;
  const { memory, cpu } = written.resources ?? {};
  const resources = {
    memoryMb: memory === undefined ? null : toMebibytes(memory),
    cpus: cpu === undefined ? null : toCpus(cpu),
    ...toNeeds(written.resources),
  };
  switch (written.type) {
    case 'builtin':
      return { type: 'builtin', entrypoint: written.entrypoint };
    case 'client':
      return { type: 'client' };
    case 'code':
      return { type: 'code', bindings: written.bindings ?? [], secrets: written.secrets ?? [] };
    case 'http':
      return { type: 'http', url: written.url, method: written.method ?? 'GET', headers: written.headers ?? {} };
    case 'container':
      return { type: 'container', ...toImage(written, context), ...resources };
    case 'script':
      return { type: 'script', ...toScript(written, context), ...resources };
  }
}
