/** Client tools that come with a message (C3): data of the run's input, never part of the agent. */
import { excerptOf } from '../../bounded/json-size.ts';
import { checkShape } from '../../bounded/schema-shape.ts';
import { EngineError } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import { takenNames } from '../../domain/taken-names.ts';
import { TOOL_DEFAULTS } from '../../domain/tool-defaults.ts';
import { textBytes } from '../../domain/tokens.ts';
import { WorkMeter } from '../../domain/work.ts';
import { schemaIssue, UNCHECKED, validateParameters } from '../../executors/validate-parameters.ts';

export interface PassedTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the parameters object. */
  readonly parameters: JsonObject;
}

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
/**
 * Checks the tools of a message against the agent's opt-in, the limits, and all names that already mean something.
 *
 * @throws EngineError `client_tools_denied`, `invalid_client_tools`
 */
export function admitTools(tools: readonly PassedTool[], resolved: ResolvedAgent): readonly PassedTool[] {
  const { agent } = resolved;
  if (agent.clientTools !== 'allow') {
    const message = `The agent "${agent.name}" accepts no tools with a message: its manifest does not say "client_tools: allow"`;
    throw new EngineError('client_tools_denied', message);
  }
  if (tools.length > limits.clientTools) {
    throw invalid(`"tools" has ${tools.length} entries (allowed: ${limits.clientTools})`);
  }
  const bytes = textBytes(JSON.stringify(tools));
  if (bytes > limits.clientToolBytes) {
    throw invalid(`"tools" has ${bytes} bytes of JSON (allowed: ${limits.clientToolBytes})`);
  }
  const taken = takenNames(resolved);
  const meter = new WorkMeter(limits.manifestSchemaSteps);
  for (const [index, { name, parameters }] of tools.entries()) {
    const shown = excerptOf(name, limits.excerptChars);
    const at = `tools.${index}`;
    if (!NAME.test(name)) {
      throw invalid(`${at}.name: ${shown} is not a name (allowed: a letter, then up to 63 letters, digits, _ and -)`);
    }
    const meaning = taken.get(name.toLowerCase());
    if (meaning !== undefined) throw invalid(`${at}.name: ${shown} is already the name of ${meaning}`);
    taken.set(name.toLowerCase(), 'another tool of this message');
    const issue = issueOfParameters(parameters, meter);
    if (issue !== null) throw invalid(`${at}.parameters: ${issue}`);
  }
  return tools;
}

/** Why no call could be checked against this schema; null if all can. */
function issueOfParameters(schema: JsonObject, meter: WorkMeter): string | null {
  if (schema['type'] !== 'object') return '"type" must be "object"';
  let issue: string | null = null;
  checkShape(schema, (path, message) => (issue ??= `${path.join('.')}: ${message}`));
  if (issue !== null) return issue;
  const unusable = schemaIssue(schema, meter);
  if (unusable !== null) return unusable;
  // A check of a value also finds a $ref to itself.
  const checked = validateParameters(schema, {}, meter);
  return checked?.includes(UNCHECKED) === true ? checked : null;
}

function invalid(message: string): EngineError {
  return new EngineError('invalid_client_tools', message);
}

/** The agent of a run with the tools of its message, which were admitted. */
export function withPassedTools(resolved: ResolvedAgent, stored: Json | undefined): ResolvedAgent {
  if (!Array.isArray(stored) || stored.length === 0) return resolved;
  const passed = stored.flatMap((tool) => (isJsonObject(tool) ? [definitionOf(tool as unknown as PassedTool)] : []));
  return { ...resolved, tools: new Map([...resolved.tools, ...passed.map((tool) => [tool.name, tool] as const)]) };
}

function definitionOf({ name, description, parameters }: PassedTool): ToolDefinition {
  return {
    ...TOOL_DEFAULTS,
    name,
    summary: description,
    implementation: { type: 'client', passed: true },
    parameters,
  };
}
