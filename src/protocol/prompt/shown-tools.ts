/**
 * How the tools of an agent are shown to its model (L4).
 *
 * All in full, or, if that exceeds `protocol.tool_tokens`, some in full and the others in short form: their names and
 * summaries, then only names, then not at all. `describe_tools` gives the model what is left out. Tools of a message are
 * not counted: they are in the user's turn (C3).
 *
 * Invariants:
 *  1. The same definitions give the same choice.
 *  2. A short form is shorter than the budget, and the work is linear in the number of tools: only as many are rendered in
 *     full as fit, and a few more.
 */
import { derived } from '../../domain/derived.ts';
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import { isPassed } from '../../domain/manifests/tool.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import { quotationIn } from '../../domain/quoted-summary.ts';
import { bytesOfTokens, textBytes } from '../../domain/tokens.ts';
import { internalUses } from './allowed.ts';
import { escapeReservedTags, sanitizeText } from './escape-reserved-tags.ts';
import { approvalNote, oneLine, returnsOf } from './returns.ts';
import { toolBlock } from './tool-block.ts';

export interface ListedTool {
  readonly tool: ToolDefinition;
  /** One line, cut; empty if there is room for names only. */
  readonly summary: string;
}

export interface ShownTools {
  /** In the order of the prompt. */
  readonly full: readonly ToolDefinition[];
  /** Without their parameters. */
  readonly short: readonly ListedTool[];
  /** The first tools in short form that are functions of a request (P17). */
  readonly functions: number;
  /** Tools that are not listed: a search finds them. */
  readonly unlisted: number;
}

/** The choice for an agent: prompts, calls and failures need it. */
export const shownTools = derived(choose);

/** Whether the prompt lacks parameters of tools. */
export function hasShortTools(resolved: ResolvedAgent): boolean {
  const { short, unlisted } = shownTools(resolved);
  return short.length + unlisted > 0;
}

/** Whether the prompt does not show the parameters of this tool. */
export function isInShortForm(tool: ToolDefinition, resolved: ResolvedAgent): boolean {
  return hasShortTools(resolved) && !isPassed(tool) && !shownTools(resolved).full.includes(tool);
}

function choose(resolved: ResolvedAgent): ShownTools {
  const { agent, tools } = resolved;
  const own = [...tools.values()].filter((tool) => !isPassed(tool));
  const budget = bytesOfTokens(agent.protocol.toolTokens ?? limits.promptToolTokens);
  const isNative = agent.protocol.dialect === 'tool_calls';
  const others = otherFunctions(resolved, tools.size - own.length);
  const fits = !isNative || own.length + others <= limits.nativeFunctions;
  if (fits && fitsWithin(budget, own, resolved)) return { full: own, short: [], functions: 0, unlisted: 0 };

  // One function is `describe_tools`.
  const functions = Math.max(0, limits.nativeFunctions - others - 1);
  const full = fullTools(own, resolved, budget, isNative ? functions : Infinity);
  const inFull = new Set(full.tools);
  const rest = importedFirst(own, resolved).filter((tool) => !inFull.has(tool));
  const short = listed(rest.slice(0, limits.listedTools), resolved, budget - full.bytes);
  return {
    full: full.tools,
    short,
    functions: Math.min(short.length, Math.max(0, functions - full.tools.length)),
    unlisted: rest.length - short.length,
  };
}

/** The functions of a request that are not the agent's tools. */
function otherFunctions({ agent }: ResolvedAgent, passed: number): number {
  const { agents, workflows } = agent.imports;
  return agent.capabilities.length + internalUses(agent, false).length + agents.length + workflows.length + passed;
}

function fitsWithin(budget: number, tools: readonly ToolDefinition[], resolved: ResolvedAgent): boolean {
  let bytes = 0;
  return tools.every((tool) => {
    bytes += fullBytes(tool, resolved);
    return bytes <= budget;
  });
}

/** What the tool takes in full: of the prompt, or of the request as a function. */
function fullBytes(tool: ToolDefinition, resolved: ResolvedAgent): number {
  if (resolved.agent.protocol.dialect !== 'tool_calls') return textBytes(toolBlock(tool, resolved)) + 2;
  const { name, summary, parameters } = tool;
  return [name, summary, returnsOf(tool), JSON.stringify(parameters)].reduce((sum, part) => sum + textBytes(part), 0);
}

/**
 * The tools that are shown in full, in order: as many as fit beside the list of the others. For tools that the manifest names,
 * the list is cut to half of the budget; other tools are shown in full only if the whole list fits beside them.
 */
function fullTools(
  own: readonly ToolDefinition[],
  resolved: ResolvedAgent,
  budget: number,
  most: number,
): { readonly tools: readonly ToolDefinition[]; readonly bytes: number } {
  const imported = new Set(resolved.agent.imports.tools);
  const lines = new Map(own.map((tool) => [tool, lineBytes(tool, summaryOf(tool), resolved)]));
  let listBytes = [...lines.values()].reduce((sum, bytes) => sum + bytes, 0);
  const tools: ToolDefinition[] = [];
  let bytes = 0;
  let skipped = 0;
  for (const tool of importedFirst(own, resolved)) {
    if (tools.length >= most || skipped > limits.largeToolsSkipped) break;
    const withTool = bytes + fullBytes(tool, resolved);
    const listed = listBytes - (lines.get(tool) ?? 0);
    if (withTool + (imported.has(tool.name) ? Math.min(listed, budget / 2) : listed) > budget) {
      skipped += 1;
      continue;
    }
    tools.push(tool);
    bytes = withTool;
    listBytes = listed;
  }
  return { tools, bytes };
}

/** The tools that the manifest names come before those that a server brings. */
function importedFirst(own: readonly ToolDefinition[], { agent }: ResolvedAgent): readonly ToolDefinition[] {
  const imported = new Set(agent.imports.tools);
  return [...own.filter(({ name }) => imported.has(name)), ...own.filter(({ name }) => !imported.has(name))];
}

/** The tools with the longest summaries that fit; if there is no room for summaries, as many names as fit. */
function listed(tools: readonly ToolDefinition[], resolved: ResolvedAgent, budget: number): readonly ListedTool[] {
  const whole = tools.map((tool) => ({ tool, summary: summaryOf(tool) }));
  for (let chars = limits.listedSummaryChars; chars >= limits.listedSummaryLeastChars; chars /= 2) {
    const lines = whole.map(({ tool, summary }) => ({ tool, summary: cutTo(summary, chars) }));
    const bytes = lines.reduce((sum, { tool, summary }) => sum + lineBytes(tool, summary, resolved), 0);
    if (bytes <= budget) return lines;
  }
  let bytes = 0;
  const most = tools.findIndex(({ name }) => (bytes += textBytes(name) + 2) > budget);
  return (most === -1 ? tools : tools.slice(0, most)).map((tool) => ({ tool, summary: '' }));
}

function lineBytes(tool: ToolDefinition, summary: string, resolved: ResolvedAgent): number {
  return textBytes(toolLine({ tool, summary }, resolved)) + 1;
}

/** `- name: summary`, with a note if a person is asked. */
export function toolLine({ tool, summary }: ListedTool, resolved: ResolvedAgent): string {
  return `- ${tool.name}${approvalNote(resolved, 'tool', tool)}${summary === '' ? '' : `: ${summary}`}`;
}

/** The summary as one line of external text, cut. */
export function summaryOf(tool: ToolDefinition): string {
  const summary = quotation(tool) ?? tool.summary;
  // Cut before the rest of the work, which is not bounded, and again, because escapes make a text longer.
  const beginning = cutTo(summary, limits.listedSummaryChars * 2);
  return cutTo(escapeReservedTags(sanitizeText(oneLine(beginning))), limits.listedSummaryChars);
}

/** What an untrusted server says about the tool; null for other tools. */
function quotation({ implementation, summary }: ToolDefinition): string | null {
  return implementation.type === 'mcp' ? quotationIn(summary, implementation.server) : null;
}

/** Whether one of the summaries in the list is a quotation. */
export function hasQuotations(listed: readonly ListedTool[]): boolean {
  return listed.some(({ tool, summary }) => summary !== '' && quotation(tool) !== null);
}

function cutTo(text: string, chars: number): string {
  return text.length <= chars
    ? text
    : `${text
        .slice(0, chars - 1)
        .toWellFormed()
        .trimEnd()}…`;
}
