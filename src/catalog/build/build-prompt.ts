/** Reads `prompt` of an agent's manifest: parts of the system prompt that it replaces or leaves out (L4). */
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import { PROMPT_PARTS, promptPartSpec } from '../../domain/prompt-parts.ts';
import type { PromptPartId, PromptPiece } from '../../domain/prompt-parts.ts';
import { readReplacement } from '../../domain/prompt-template.ts';
import type { AgentInput } from '../schema/schema.ts';
import type { BuildContext } from './build-base.ts';

export function toPrompt(
  { prompt: written = {} }: AgentInput,
  { dialect, bareText }: Pick<AgentDefinition['protocol'], 'dialect' | 'bareText'>,
  context: Pick<BuildContext, 'addIssue' | 'warn' | 'readFile'>,
): Pick<AgentDefinition, 'prompt'> {
  const isNative = dialect === 'tool_calls';
  const changes: Partial<Record<PromptPartId, readonly PromptPiece[] | false>> = {};
  for (const id of PROMPT_PARTS) {
    const change = written[id];
    if (change === undefined) continue;
    const field = ['prompt', id];
    if (isNative && !promptPartSpec(id).isNative) {
      context.warn(field, 'has no effect: with the dialect tool_calls, the prompt has no such part');
    }
    if (change === false && id === 'response' && isNative && bareText !== 'answer') {
      context.addIssue(field, `must stay: with protocol.bare_text ${bareText}, only this part says how to answer`);
      continue;
    }
    if (change === false) {
      changes[id] = false;
      continue;
    }
    const text = typeof change === 'string' ? change : context.readFile(change.file, [...field, 'file']);
    if (text === null) continue;
    const read = readReplacement(id, text, isNative);
    if ('issue' in read) context.addIssue(field, read.issue);
    else changes[id] = read.pieces;
  }
  return Object.keys(changes).length === 0 ? {} : { prompt: changes };
}
