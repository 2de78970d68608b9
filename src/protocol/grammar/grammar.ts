/**
 * A grammar for constrained decoding. It accepts exactly the protocol text that one agent may write.
 *
 * Accepted text parses without a warning. Every action in it names something that the agent may use, and its
 * parameters have the declared shape. The runtime checks what a grammar cannot count: unique ids, references to
 * existing names, and limits (P12, P16).
 *
 * `GET /agents/{name}/grammar` and `npm run grammar` print it.
 */
import { ACTION_TYPES, DEFAULT_ACTION_TYPE, actionSpec, isCapability, isImported } from '../../domain/action-types.ts';
import { internalActionSpec } from '../../domain/internal-actions.ts';
import type { ActionType, ParameterKind, ParameterShape } from '../../domain/action-types.ts';
import type { ProtocolOptions } from '../../domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import { internalUses } from '../prompt/allowed.ts';
import { isInShortForm } from '../prompt/shown-tools.ts';
import { toLark } from './lark.ts';
import { Rules, choice, literal } from './rules.ts';
import { SchemaGrammar, shape } from './schema.ts';

/** llama.cpp and XGrammar read GBNF; llguidance reads Lark. */
export const GRAMMAR_FORMATS = ['gbnf', 'lark'] as const;
export type GrammarFormat = (typeof GRAMMAR_FORMATS)[number];

export interface AgentGrammar {
  /** The grammar in the requested format. The first rule is the start rule (`root` in GBNF, `start` in Lark). */
  readonly text: string;
  /** Constraints of the parameter schemas that the grammar does not express, one per line. */
  readonly notes: readonly string[];
}

/** The rule for each kind of parameter. */
const RULE_OF_KIND: Readonly<Record<ParameterKind, string>> = {
  text: 'NON-BLANK',
  string: 'STRING',
  strings: 'strings',
  name: 'QUOTED-ID',
  json: 'value',
  object: 'object',
  inputs: 'object',
  boolean: 'BOOLEAN',
  count: 'NATURAL',
  seconds: 'SECONDS',
  feed_type: 'FEED-TYPE',
  feed_source: 'feed-source',
  feed_on_error: 'FEED-ON-ERROR',
};

/**
 * The grammar of an agent's generations: thoughts, actions and responses in any order, with at least
 * one action or response (P9-P11).
 *
 * @param options `form` defaults to the agent's own form (`protocol.form`, P18)
 */
export function buildGrammar(
  resolved: ResolvedAgent,
  options: { readonly format: GrammarFormat; readonly form?: ProtocolOptions['form'] },
): AgentGrammar {
  const form = options.form ?? resolved.agent.protocol.form;
  const rules = new Rules();
  const notes = new Set<string>();
  defineActions(rules, resolved, form === 'compact', notes);
  const text = `# Protocol text of the agent "${resolved.agent.name}", ${form} form of actions.
# Generated from its manifest: regenerate it when the manifest or one of its tools changes.
${rules}`;
  return { text: options.format === 'gbnf' ? text : toLark(text), notes: [...notes] };
}

/** Defines `action`: every action that the agent may declare, from the end of `<action` to the end of `</action>`. */
function defineActions(rules: Rules, resolved: ResolvedAgent, isCompact: boolean, notes: Set<string>): void {
  const { agent } = resolved;
  const parameters = (name: string, kinds: ParameterShape | null): string => {
    if (kinds === null) return 'object';
    const values = Object.entries(kinds).map(([key, kind]) => [key, RULE_OF_KIND[kind]]);
    return rules.add(`${name}-parameters`, shape(Object.fromEntries(values)));
  };

  /**
   * One call, starting after the type.
   *
   * @param name null if the type is the name
   * @param value the parameters, in GBNF
   * @param rest the text after the name, in GBNF
   */
  const call = (name: string | null, value: string, rest?: string): string => {
    const named = (before: string): string =>
      rest === undefined ? literal(`${before}${name}"`) : `${literal(before + name)} ${rest} "\\""`;
    if (isCompact) return `${name === null ? '' : `${named(' name="')} `}identity attributes END-TAG ${value}`;
    const field = name === null ? '' : `"\\"name\\"" COLON ${named('"')} COMMA `;
    return `identity END-TAG OPEN ${field}"\\"parameters\\"" COLON ${value} fields CLOSE`;
  };
  const inShort = new Set([...resolved.tools.values()].filter((tool) => isInShortForm(tool, resolved)));
  const inFull = [...resolved.tools.values()].filter((tool) => !inShort.has(tool));
  const fullCalls = inFull.map((tool) => {
    const value = new SchemaGrammar(rules, tool.name, tool.parameters, notes).parameters();
    // A parameter called "parameters" would be read as the full form, so such a tool is called in the full form.
    const collides = isCompact && hasParameters(tool);
    return call(tool.name, collides ? `OPEN "\\"parameters\\"" COLON ${value} CLOSE` : value);
  });
  const toolCalls = [...fullCalls, ...shortCalls(rules, [...inShort], isCompact, call, notes)];
  const relicCalls = agent.imports.relics.flatMap((name) => {
    const endpoints = Object.keys(resolved.relics.get(name)?.endpoints ?? {});
    if (endpoints.length === 0) return [call(`${name}.`, 'object', 'ID')];
    return endpoints.map((endpoint) => call(`${name}.${endpoint}`, 'object'));
  });
  const internalCalls = internalUses(agent, inShort.size > 0).map((name) => {
    const { parameters: kinds, further } = internalActionSpec(name);
    return call(name, parameters(name, { ...kinds, ...further }));
  });
  const callsOf = (type: ActionType): string[] => {
    if (type === 'tool') return toolCalls;
    if (type === 'relic') return relicCalls;
    if (type === 'internal') return internalCalls;
    const kinds = actionSpec(type).parameters;
    if (isImported(type)) return agent.imports[`${type}s`].map((name) => call(name, parameters(type, kinds)));
    if (isCapability(type) && !agent.capabilities.includes(type)) return [];
    return [call(null, parameters(type, kinds))];
  };
  const ways = ACTION_TYPES.flatMap((type) => {
    const calls = callsOf(type);
    if (calls.length === 0) return [];
    const head = `${literal(` type="${type}"`)}${type === DEFAULT_ACTION_TYPE ? '?' : ''}`;
    return [rules.add(`${type}-action`, `${head} ${choice(calls)} END-ACTION`)];
  });
  rules.define('action', choice(ways));
}

/** Whether a parameter is called "parameters". */
function hasParameters({ parameters: { properties } }: ToolDefinition): boolean {
  return Object.hasOwn(Object(properties), 'parameters');
}

/**
 * The calls of tools in short form (L4): one alternative for all names, with any object as parameters, because the rules of
 * thousands of schemas would be too large.
 */
function shortCalls(
  rules: Rules,
  tools: readonly ToolDefinition[],
  isCompact: boolean,
  call: (name: string, value: string, rest: string) => string,
  notes: Set<string>,
): string[] {
  const named = (name: string, tools: readonly ToolDefinition[], value: string): string[] => {
    if (tools.length === 0) return [];
    notes.add(
      `${tools.length} tools in short form: their parameters are not in the grammar; they are checked before dispatch`,
    );
    return [call('', value, rules.lexeme(name, choice(tools.map((tool) => literal(tool.name)))))];
  };
  const collides = (tool: ToolDefinition): boolean => isCompact && hasParameters(tool);
  return [
    ...named(
      'short-tool',
      tools.filter((tool) => !collides(tool)),
      'object',
    ),
    ...named('short-tool-with-parameters', tools.filter(collides), 'OPEN "\\"parameters\\"" COLON object CLOSE'),
  ];
}
