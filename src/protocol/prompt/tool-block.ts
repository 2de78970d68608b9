/** One tool with its parameters: in the prompt, as the answer of `describe_tools`, and in failures (L4). */
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition, ToolDescription } from '../../domain/manifests/tool.ts';
import { escapeReservedTags, sanitizeText } from './escape-reserved-tags.ts';
import { parameterLines } from './parameter-lines.ts';
import { approvalNote, oneLine, returnsOf } from './returns.ts';

/** The tool in full form. */
export function toolBlock(tool: ToolDefinition, resolved: ResolvedAgent): string {
  const returns = returnsOf(tool);
  const example = exampleOf(tool);
  const block = [
    `## ${tool.name}${approvalNote(resolved, 'tool', tool)}`,
    tool.summary,
    ...linesOf(tool),
    ...(returns === '' ? [] : [returns]),
    ...(example === null ? [] : [example]),
  ].join('\n');
  // What a server says is data (E5).
  return tool.implementation.type === 'mcp' ? escapeReservedTags(sanitizeText(block)) : block;
}

/** Authors of manifests know how much they write; servers do not. */
function linesOf({ implementation, parameters }: ToolDefinition): readonly string[] {
  const lines = parameterLines(parameters, '');
  return implementation.type === 'mcp' ? [cutLines(lines, limits.describedToolChars)] : lines;
}

function exampleOf({ examples: [example] }: ToolDefinition): string | null {
  return example === undefined ? null : `Example: ${JSON.stringify(example)}`;
}

/** The same as data. Its parameters are cut at a line. */
export function toolDescription(tool: ToolDefinition, resolved: ResolvedAgent): ToolDescription {
  const returns = returnsOf(tool);
  const note = approvalNote(resolved, 'tool', tool).trim();
  const example = exampleOf(tool);
  return {
    name: tool.name,
    summary: oneLine(tool.summary.slice(0, limits.describedSummaryChars).toWellFormed()),
    ...(note === '' ? {} : { note }),
    parameters: cutLines(parameterLines(tool.parameters, ''), limits.describedToolChars),
    ...(returns === '' ? {} : { returns }),
    ...(example === null || example.length > limits.describedExampleChars ? {} : { example }),
  };
}

/** The parameters of a tool for the failure of a call with wrong ones. */
export function parameterHint({ parameters }: ToolDefinition): string {
  return `Its parameters:\n${cutLines(parameterLines(parameters, ''), limits.toolHintChars)}`;
}

/** The first lines, with the number of those that are left out. */
function cutLines(lines: readonly string[], chars: number): string {
  let length = 0;
  const most = lines.findIndex((line) => (length += line.length + 1) > chars);
  if (most === -1) return lines.join('\n');
  const left = lines.length - most;
  return [...lines.slice(0, most), `[${left} more ${left === 1 ? 'line is' : 'lines are'} left out for length]`].join(
    '\n',
  );
}
