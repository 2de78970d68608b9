/**
 * The tools that MCP servers list, as tools of an agent (E5).
 *
 * What a server says is data: names are made safe and never take the place of a name that means something, schemas are
 * checked, texts are cut, and hints about effects count only for servers that the agent trusts.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { jsonChars, TooDeep } from '../../bounded/json-size.ts';
import { checkShape } from '../../bounded/schema-shape.ts';
import type { Effects } from '../../domain/action-types.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { McpServerDefinition } from '../../domain/manifests/mcp-server.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import { quotedSummary } from '../../domain/quoted-summary.ts';
import { TOOL_DEFAULTS } from '../../domain/tool-defaults.ts';
import { WorkExceeded, WorkMeter } from '../../domain/work.ts';
import { schemaIssue } from '../validate-parameters.ts';

/** A tool as its server lists it: untrusted. */
export interface ListedTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject | undefined;
  readonly annotations?: Json | undefined;
}

/** What a server offers. */
export interface ServerList {
  readonly tools: readonly ListedTool[];
  /** Number of its tools above `limits.mcpToolsPerServer`, which are not in `tools`; absent: none. */
  readonly left?: number;
  /** Whether it has resources, which can be read by their address. */
  readonly hasResources: boolean;
}

interface Defined {
  readonly tools: readonly ToolDefinition[];
  /** What was left out, for people. */
  readonly problems: readonly string[];
}

interface ToolContext {
  /** The names that already mean something, in lower case. */
  readonly taken: ReadonlySet<string>;
  /** Whether the agent is bundled with the deployment (X3). */
  readonly bundled: boolean;
  /** The tools of the run before, for servers that have no list now. */
  readonly earlier?: readonly ToolDefinition[];
}

const NAME_CHARS = 64;
const READ_RESOURCE = 'read_resource';

/**
 * The tools of all servers of an agent, in the order of the manifest.
 *
 * @param lists by the name of the server
 */
export function mcpTools(
  servers: readonly McpServerDefinition[],
  lists: ReadonlyMap<string, ServerList>,
  { taken, bundled, earlier = [] }: ToolContext,
): Defined {
  const used = new Set(taken);
  const numbers = new Map<string, number>();
  const tools: ToolDefinition[] = [];
  const problems: string[] = [];
  const meter = new WorkMeter(limits.manifestSchemaSteps);
  let chars = 0;
  const add = (tool: ToolDefinition): boolean => {
    const size = JSON.stringify(tool).length;
    if (tools.length >= limits.mcpTools || chars + size > limits.mcpToolsChars) return false;
    chars += size;
    used.add(tool.name.toLowerCase());
    tools.push(tool);
    return true;
  };
  for (const server of servers) {
    const list = lists.get(server.name);
    if (list === undefined) {
      for (const tool of earlier) {
        if (isOf(tool, server, bundled) && !used.has(tool.name.toLowerCase())) add(underRules(tool, server));
      }
      continue;
    }
    const known = new Set(list.tools.map(({ name }) => name));
    const missing = server.tools?.filter((name) => !known.has(name) && name !== READ_RESOURCE) ?? [];
    if (missing.length > 0) problems.push(says(server, `has no tool ${quoted(missing)}, which "tools" names`));
    let { left = 0 } = list;
    for (const listed of [...list.tools, ...(hasResourceTool(list, server) ? [RESOURCE_TOOL] : [])]) {
      if (!add(definitionOf(listed, server, { used, numbers, bundled, meter }))) left += 1;
    }
    if (left > 0) problems.push(says(server, `has too many tools, ${left} are left out: choose with "tools"`));
  }
  return { tools, problems };
}

/** Whether it is a tool of this server, reached in the same way, with the secret of the same owner (X3). */
function isOf(
  { implementation }: ToolDefinition,
  { name, url, auth, tools }: McpServerDefinition,
  bundled: boolean,
): boolean {
  if (implementation.type !== 'mcp') return false;
  const { server, tool } = implementation;
  const isAllowed = tools === null || tools.includes(tool ?? READ_RESOURCE);
  const isSameWay = implementation.url === url && implementation.auth === auth && implementation.bundled === bundled;
  return server === name && isSameWay && isAllowed;
}

/** A tool of an earlier list, under what the manifest says now. */
function underRules(tool: ToolDefinition, server: McpServerDefinition): ToolDefinition {
  const { trust, approval, timeoutMs } = server;
  return { ...tool, effects: trust ? tool.effects : 'unsafe', approval, timeoutMs };
}

function says({ name }: McpServerDefinition, text: string): string {
  return `The MCP server "${name}" ${text}`;
}

function quoted(names: readonly string[]): string {
  const shown = names.slice(0, 5).map((name) => JSON.stringify(name.slice(0, limits.excerptChars)));
  return shown.join(', ') + (names.length > shown.length ? ', …' : '');
}

/** Resources are read by a tool of ours, unless the server has one of that name. */
function hasResourceTool({ tools, hasResources }: ServerList, server: McpServerDefinition): boolean {
  const isWanted = server.tools === null || server.tools.includes(READ_RESOURCE);
  return hasResources && isWanted && !tools.some(({ name }) => name === READ_RESOURCE);
}

const RESOURCE_TOOL: ListedTool = {
  name: READ_RESOURCE,
  description: 'Reads a resource of the server by its address',
  inputSchema: { type: 'object', properties: { uri: { type: 'string' } }, required: ['uri'] },
  annotations: { readOnlyHint: true },
};

function definitionOf(
  listed: ListedTool,
  server: McpServerDefinition,
  {
    used,
    numbers,
    bundled,
    meter,
  }: {
    readonly used: ReadonlySet<string>;
    readonly numbers: Map<string, number>;
    readonly bundled: boolean;
    readonly meter: WorkMeter;
  },
): ToolDefinition {
  const { name, inputSchema, outputSchema } = listed;
  const isOurs = listed === RESOURCE_TOOL;
  return {
    ...TOOL_DEFAULTS,
    name: nameOf(name, server, used, numbers),
    summary: summaryOf(listed, server, isOurs),
    implementation: {
      type: 'mcp',
      server: server.name,
      url: server.url,
      auth: server.auth,
      bundled,
      tool: isOurs ? null : name,
    },
    parameters: shown(usable(inputSchema, meter) ?? { type: 'object' }, server),
    returns: shownOrNull(outputSchema === undefined ? null : usable(outputSchema, meter), server),
    effects: effectsOf(listed, server),
    approval: server.approval,
    timeoutMs: server.timeoutMs,
  };
}

/** A schema that values can be checked against; null if this one cannot be used. */
function usable(schema: JsonObject, meter: WorkMeter): JsonObject | null {
  let issue: string | null = null;
  try {
    if (jsonChars(schema, limits.mcpSchemaChars, limits.mcpSchemaDepth, meter) > limits.mcpSchemaChars) return null;
    checkShape(schema, (path, message) => (issue ??= `${path.join('.')}: ${message}`));
  } catch (fault) {
    if (fault instanceof TooDeep || fault instanceof WorkExceeded) return null;
    throw fault;
  }
  return issue === null && schemaIssue(schema, meter) === null ? schema : null;
}

/** The notes in a schema, which the model reads: quotations as well, if the server is not trusted. */
function shown(schema: JsonObject, { trust }: McpServerDefinition): JsonObject {
  return trust ? schema : (withQuotedNotes(schema) as JsonObject);
}

function shownOrNull(schema: JsonObject | null, server: McpServerDefinition): JsonObject | null {
  return schema === null ? null : shown(schema, server);
}

const NOTES: ReadonlySet<string> = new Set(['title', 'description', '$comment']);
/** Members that contain values, not schemas. */
const VALUES: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples', 'required']);
/** Members whose own members have any names, and are schemas. */
const NAMED: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependencies',
  '$defs',
  'definitions',
]);

/** @param isNamed whether the members are schemas with names, such as properties */
function withQuotedNotes(schema: Json, isNamed = false): Json {
  if (Array.isArray(schema)) return schema.map((item) => withQuotedNotes(item));
  if (!isJsonObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => {
      if (isNamed) return [name, withQuotedNotes(value)];
      if (NOTES.has(name) && typeof value === 'string') return [name, quotation(value, limits.mcpUntrustedNoteChars)];
      return [name, VALUES.has(name) ? value : withQuotedNotes(value, NAMED.has(name))];
    }),
  );
}

function quotation(text: string, maxChars: number): string {
  const line = text.toWellFormed().replaceAll(/\s+/g, ' ').trim();
  return JSON.stringify(line.length > maxChars ? `${line.slice(0, maxChars).toWellFormed()}…` : line);
}

/**
 * A name that the model can use, and that is free: letters, digits, `_` and `-`. The same list gives the same names.
 *
 * @param numbers the last number of each name that was taken, so that equal names are not tried again and again
 */
function nameOf(
  name: string,
  { name: server, prefix }: McpServerDefinition,
  used: ReadonlySet<string>,
  numbers: Map<string, number>,
): string {
  const isFree = (candidate: string): boolean => !used.has(candidate.toLowerCase());
  const plain = short(safe(`${prefix ?? ''}${name}`));
  if (isFree(plain)) return plain;
  const prefixed = short(safe(`${server}_${name}`));
  if (isFree(prefixed)) return prefixed;
  const id = prefixed.toLowerCase();
  for (let number = numbers.get(id) ?? 2; ; number += 1) {
    const ending = `_${number}`;
    const numbered = `${prefixed.slice(0, NAME_CHARS - ending.length)}${ending}`;
    numbers.set(id, number);
    if (isFree(numbered)) return numbered;
  }
}

function safe(name: string): string {
  const chars = name.replaceAll(/[^A-Za-z0-9_-]+/g, '_');
  return /^[A-Za-z]/.test(chars) ? chars : `t_${chars}`;
}

/** Long names keep their beginning, and a digest that distinguishes them. */
function short(name: string): string {
  if (name.length <= NAME_CHARS) return name;
  const digest = bytesToHex(sha256(utf8ToBytes(name))).slice(0, 8);
  return `${name.slice(0, NAME_CHARS - 9)}_${digest}`;
}

/** What the model reads: of a server without trust a short quotation, so that it does not look like an instruction. */
function summaryOf({ title, description }: ListedTool, { name, trust }: McpServerDefinition, isOurs: boolean): string {
  const text = (description ?? title ?? '').toWellFormed().replaceAll(/\s+/g, ' ').trim();
  if (trust || isOurs) return text.slice(0, limits.mcpDescriptionChars);
  if (text === '') return `A tool of the MCP server "${name}", which does not describe it`;
  const cut = text.length > limits.mcpUntrustedDescriptionChars;
  const shown = text.slice(0, limits.mcpUntrustedDescriptionChars).toWellFormed();
  return quotedSummary(name, cut ? `${shown}…` : shown);
}

function effectsOf({ annotations }: ListedTool, { trust }: McpServerDefinition): Effects {
  if (!trust || !isJsonObject(annotations)) return 'unsafe';
  if (annotations['readOnlyHint'] === true) return 'pure';
  return annotations['idempotentHint'] === true ? 'idempotent' : 'unsafe';
}
