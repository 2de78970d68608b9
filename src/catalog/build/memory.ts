/** Builds what an agent's prompts keep of the conversation, and how the rest is summarised (M8, C10). */
import { limits } from '../../domain/limits.ts';
import type { MemoryPolicy, SummaryPolicy } from '../../domain/manifests/agent.ts';
import { templateIssue } from '../../domain/summary-template.ts';
import type { AgentInput } from '../schema/schema.ts';
import type { BuildContext } from './build-base.ts';

export function toMemory({ memory = {} }: AgentInput, context: BuildContext): MemoryPolicy {
  const { max_turns: maxTurns = null, summarize_after: summarizeAfter = null, summary } = memory;
  if (summary !== undefined && summarizeAfter === null) {
    context.addIssue(['memory', 'summary'], 'has no effect without memory.summarize_after');
  }
  if (summarizeAfter === null) return { maxTurns, summarizeAfter };
  return { maxTurns, summarizeAfter, summary: toSummary(summary ?? {}, context) };
}

type SummaryInput = NonNullable<NonNullable<AgentInput['memory']>['summary']>;

function toSummary({ by = 'model', tokens, template }: SummaryInput, context: BuildContext): SummaryPolicy {
  const field = ['memory', 'summary', 'template'];
  const text =
    template === undefined || typeof template === 'string'
      ? template
      : (context.readFile(template.file, [...field, 'file']) ?? undefined);
  const issue = text === undefined ? null : templateIssue(text);
  if (issue !== null) context.addIssue(field, issue);
  return { by, tokens: tokens ?? limits.summaryTokens, template: text ?? null };
}
