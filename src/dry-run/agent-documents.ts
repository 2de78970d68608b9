/** What a model of an agent is given: `GET /agents/{name}/prompt` and `/grammar` (L4). */
import type { ProtocolOptions } from '../domain/manifests/agent.ts';
import type { ResolvedAgent } from '../domain/manifests/resolved.ts';
import type { PromptPartId } from '../domain/prompt-parts.ts';
import { estimateTokens } from '../domain/tokens.ts';
import { resolveAgentVariables } from '../engine/session/resolve-agent-variables.ts';
import { buildGrammar } from '../protocol/grammar/grammar.ts';
import type { AgentGrammar, GrammarFormat } from '../protocol/grammar/grammar.ts';
import { exampleWarnings } from './example-warnings.ts';
import { buildSystemPrompt, promptParts, promptSections } from '../protocol/prompt/prompt.ts';
import type { PromptPart } from '../protocol/prompt/prompt.ts';

export interface PromptDocument {
  readonly agent: string;
  readonly prompt: string;
  readonly characters: number;
  /** An estimate, as for each section. */
  readonly tokens: number;
  readonly sections: readonly { readonly title: string; readonly tokens: number }[];
  /** In the order of the prompt, with those that the manifest leaves out. */
  readonly parts: readonly {
    readonly id: PromptPartId;
    readonly state: PromptPart['state'];
    readonly tokens: number;
    /** Of the tokens of all parts, 0 to 1, with three decimals. */
    readonly share: number;
  }[];
  /** What a model would copy from faulty examples of the manifest. */
  readonly warnings: readonly string[];
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
    parts: partTokens(here),
    warnings: exampleWarnings(here),
  };
}

function partTokens(resolved: ResolvedAgent): PromptDocument['parts'] {
  const parts = promptParts(resolved).map(({ id, state, text }) => ({ id, state, tokens: estimateTokens(text) }));
  // The rules always have text.
  const total = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  return parts.map((part) => ({ ...part, share: Math.round((part.tokens / total) * 1_000) / 1_000 }));
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
