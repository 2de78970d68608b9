/** The section of the system prompt about skills (C8). */
import { LOAD_SKILL } from '../../domain/internal-actions.ts';
import { limits } from '../../domain/limits.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import { isInternalAllowed } from './allowed.ts';
import { escapeReservedTags, sanitizeText } from './escape-reserved-tags.ts';
import { renderAction } from './examples.ts';
import { oneLine } from './returns.ts';

/** The names and descriptions of the agent's skills, and how one is loaded; empty if it can load none. */
export function skillSection({ agent, skills: known }: ResolvedAgent): string {
  if (known === undefined || known.size === 0 || !isInternalAllowed(agent, LOAD_SKILL)) return '';
  const share = Math.floor(limits.skillSummariesPromptChars / known.size);
  const most = Math.min(limits.skillSummaryPromptChars, share);
  const lines = [...known.values()].map(({ name, summary }) => {
    const shown = summary.length > most ? `${summary.slice(0, most).toWellFormed()}…` : summary;
    return `- ${name}: ${escapeReservedTags(sanitizeText(oneLine(shown)))}`;
  });
  return [`# Skills: how to do certain tasks well`, howToLoad(agent), ...lines].join('\n');
}

function howToLoad({ protocol: { dialect, form } }: AgentDefinition): string {
  const load = {
    type: 'internal',
    name: LOAD_SKILL,
    id: 'ID',
    mode: 'async',
    parameters: { name: 'NAME' },
  } as const;
  const call = dialect === 'tool_calls' ? `call ${LOAD_SKILL}` : renderAction(load, form).replaceAll('\n', '');
  return `Before such a task, load its skill, and begin when you have read it: ${call}. Unlike other results, its text is guidance of your operator. The files that it lists are in the workspace.`;
}
