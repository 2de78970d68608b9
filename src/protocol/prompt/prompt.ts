/**
 * The system prompt: who the agent is, how it acts, and what it may use (L4). Depends on the manifests
 * only, so it rarely changes and providers can cache it. Time, feeds and results follow in later messages.
 *
 * It consists of parts, in the order of `PROMPT_PARTS`. A manifest may replace most of them (docs/prompt.md).
 */
import { derived } from '../../domain/derived.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import { PROMPT_PARTS, promptPartSpec } from '../../domain/prompt-parts.ts';
import type { PromptPartId, PromptPlaceholder } from '../../domain/prompt-parts.ts';
import { fillReplacement } from '../../domain/prompt-template.ts';
import { actingValues } from './acting.ts';
import { builtInPart } from './built-in-parts.ts';

export interface PromptPart {
  readonly id: PromptPartId;
  /** Empty if the manifest leaves the part out. */
  readonly text: string;
  readonly state: 'built_in' | 'replaced' | 'left_out';
}

/** The whole system prompt of an agent; constant until its manifests change. */
export const buildSystemPrompt = derived((resolved: ResolvedAgent): string => promptSections(resolved).join('\n\n'));

/** The parts of the agent's prompt, with those that its manifest leaves out. Parts that have no content are absent. */
export function promptParts(resolved: ResolvedAgent): readonly PromptPart[] {
  return PROMPT_PARTS.flatMap((id): PromptPart[] => {
    const text = builtInPart(id, resolved);
    // A replacement is no way to show a list that the agent does not have.
    if (text === '') return [];
    const change = promptPartSpec(id).change === 'fixed' ? undefined : resolved.agent.prompt?.[id];
    if (change === undefined) return [{ id, text, state: 'built_in' }];
    if (change === false) return [{ id, text: '', state: 'left_out' }];
    return [{ id, text: fillReplacement(change, (name) => valueOf(name, text, resolved)), state: 'replaced' }];
  });
}

/** The sections of the prompt: its parts, where those about how to act are one section. */
export function promptSections(resolved: ResolvedAgent): readonly string[] {
  const { dialect } = resolved.agent.protocol;
  const sections: string[] = [];
  let last: PromptPart | null = null;
  for (const part of promptParts(resolved)) {
    if (part.text === '') continue;
    const glue = isActing(part) && last !== null && isActing(last) ? glueBetween(last, part, dialect) : null;
    if (glue === null) sections.push(part.text);
    else sections.push(`${sections.pop() ?? ''}${glue}${part.text}`);
    last = part;
  }
  return sections;
}

function isActing({ id }: PromptPart): boolean {
  return id === 'protocol' || id === 'actions' || id === 'response' || id === 'rules';
}

/** The built-in rules continue the list of the built-in response; for a model that calls functions, the response continues the protocol. */
function glueBetween(before: PromptPart, part: PromptPart, dialect: 'auto' | 'protocol' | 'tool_calls'): string {
  const [first, second] = dialect === 'tool_calls' ? ['protocol', 'response'] : ['response', 'rules'];
  const areBuiltIn = before.state === 'built_in' && part.state === 'built_in';
  return areBuiltIn && before.id === first && part.id === second ? '\n' : '\n\n';
}

/** @param builtIn the built-in text of the part */
function valueOf(name: PromptPlaceholder, builtIn: string, resolved: ResolvedAgent): string {
  const { agent } = resolved;
  switch (name) {
    case 'default':
      return builtIn;
    case 'content':
      return builtIn.replace(/^# .*\n+/, '');
    case 'name':
      return agent.name;
    case 'summary':
      return agent.summary;
    case 'persona':
      return agent.persona.agent.trim();
    case 'action':
    case 'response':
    case 'without_final':
    case 'max_parallel':
    case 'types':
    case 'code_inputs':
      return actingValues(resolved)[name];
  }
}
