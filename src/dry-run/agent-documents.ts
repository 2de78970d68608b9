/** What a model of an agent is given: `GET /agents/{name}/prompt` and `/grammar` (L4). */
import type { ProtocolOptions } from '../domain/manifests/agent.ts';
import type { ResolvedAgent } from '../domain/manifests/resolved.ts';
import { estimateTokens } from '../domain/tokens.ts';
import { resolveAgentVariables } from '../engine/session/resolve-agent-variables.ts';
import { buildGrammar } from '../protocol/grammar/grammar.ts';
import type { AgentGrammar, GrammarFormat } from '../protocol/grammar/grammar.ts';
import { buildSystemPrompt, promptSections } from '../protocol/prompt/prompt.ts';

export interface PromptDocument {
  readonly agent: string;
  readonly prompt: string;
  readonly characters: number;
  /** An estimate, as for each section. */
  readonly tokens: number;
  readonly sections: readonly { readonly title: string; readonly tokens: number }[];
}

/**
 * The system prompt that a session of the agent gets now. Variables that depend on the session or its user stay as
 * written.
 *
 * @param now epoch milliseconds, for `${DATE}`
 */
export function promptDocument(resolved: ResolvedAgent, owner: string | null, now: number): PromptDocument {
  const here = resolveAgentVariables(resolved, {
    session_id: '${SESSION_ID}',
    agent: resolved.agent.name,
    user_id: null,
    owner,
    kind: 'chat',
    metadata: {},
    created_at: now,
  });
  const prompt = buildSystemPrompt(here);
  return {
    agent: resolved.agent.name,
    prompt,
    characters: prompt.length,
    tokens: estimateTokens(prompt),
    sections: promptSections(here).map((text) => ({ title: titleOf(text), tokens: estimateTokens(text) })),
  };
}

/** The heading of a section; the first section has none. */
function titleOf(section: string): string {
  return /^# (.*)/.exec(section)?.[1] ?? 'Who the agent is';
}

/** The grammar of the agent's protocol text. @param options `form` null means the agent's own form (P18) */
export function grammarDocument(
  resolved: ResolvedAgent,
  { format, form }: { readonly format: GrammarFormat; readonly form: ProtocolOptions['form'] | null },
): AgentGrammar {
  return buildGrammar(resolved, form === null ? { format } : { format, form });
}
