/** Builds the model request of one generation from prompt, conversation, feeds and limits (L5). */
import { RECALL } from '../../domain/internal-actions.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ChatMessage, ModelRequest } from '../../domain/ports/model.ts';
import { estimateMessages } from '../../domain/tokens.ts';
import { nativeTools } from '../../protocol/native/native-tools.ts';
import { buildMessages } from '../../protocol/prompt/feedback.ts';
import type { ShownFiles } from '../../protocol/prompt/attached-files.ts';
import { isInternalAllowed } from '../../protocol/prompt/allowed.ts';
import { NOTHING_EARLIER } from '../../protocol/prompt/compaction.ts';
import type { ChatTurn, EarlierTurns, FeedReport } from '../../protocol/prompt/chat-turn.ts';
import { passedInstructions, passedTools } from '../../protocol/prompt/passed.ts';
import { buildSystemPrompt } from '../../protocol/prompt/prompt.ts';
import { withoutCalls } from '../../protocol/prompt/transcript.ts';
import { agentSummary } from './agent-summary.ts';
import { withoutCleared } from './conversation.ts';

export function modelRequest(given: {
  readonly resolved: ResolvedAgent;
  /** Turns of earlier runs, oldest first. */
  readonly history: readonly ChatTurn[];
  /** Turns before these; default: there are none. */
  readonly earlier?: EarlierTurns;
  /** The turn of this generation. */
  readonly turn: ChatTurn;
  readonly feeds: readonly FeedReport[];
  /** Default: only the placeholders. */
  readonly files?: ShownFiles;
  /** Whether it is the run's last generation. */
  readonly last: boolean;
  /** Remaining tokens of the run without those of its last generation; null without a token budget. */
  readonly tokensLeft: number | null;
  /** The `traceparent` of the call; default: it is not traced. */
  readonly trace?: string;
  readonly signal: AbortSignal;
}): ModelRequest {
  const { resolved, history, earlier = NOTHING_EARLIER, turn, feeds, files, last, tokensLeft, trace, signal } = given;
  const { agent } = resolved;
  const parameters: JsonObject = { ...agent.engine.parameters };
  const { temperature, max_tokens: maxTokens, ...extra } = parameters;
  const { dialect, form } = agent.protocol;
  const all = promptTurns(history, turn);
  const functions = dialect === 'tool_calls' || all.some(hasCalls) ? nativeTools(resolved) : [];
  // A seeded history has calls in the form of the OpenAI protocol, whatever the agent's model writes (C1).
  const isText = ({ isSeeded = false }: ChatTurn): boolean =>
    functions.length === 0 || (isSeeded && dialect !== 'tool_calls');
  const turns = all.map((one) => (isText(one) ? withoutCalls(one, form) : one));
  const messages = buildMessages({
    system: buildSystemPrompt(resolved),
    history: turns.slice(0, -1),
    memory: agent.memory,
    earlier: shownEarlier(agent, earlier),
    // Functions are declared in a field of their own (P17).
    current: {
      ...(turns.at(-1) ?? turn),
      last,
      feeds,
      passed: [passedInstructions(resolved), dialect === 'tool_calls' ? '' : passedTools(resolved)],
    },
    ...(files === undefined ? {} : { files }),
  });
  // Declaring functions costs tokens, so it is done only if the manifest requests it, or if the conversation already
  // contains calls: endpoints reject calls without their functions, and an empty list of functions.
  const native =
    functions.length > 0 && (dialect === 'tool_calls' || messages.some(({ toolCalls }) => toolCalls !== undefined));
  const wished = typeof maxTokens === 'number' ? maxTokens : null;
  return {
    messages,
    // The router selects one of the agent's models.
    model: null,
    temperature: typeof temperature === 'number' ? temperature : null,
    maxTokens: last ? limits.lastGenerationTokens : mostTokens(messages, wished, tokensLeft),
    extra,
    agent: agentSummary(resolved),
    ...(native ? { tools: functions, answerOnly: last } : {}),
    ...(trace === undefined ? {} : { trace }),
    signal,
  };
}

/** What the agent's prompts show of earlier turns (C10). */
function shownEarlier(agent: AgentDefinition, earlier: EarlierTurns): EarlierTurns {
  const { memory, protocol } = agent;
  const how = protocol.dialect === 'tool_calls' ? 'function' : 'action';
  return {
    unread: earlier.unread,
    summaryOf: memory.summary?.by === 'model' ? earlier.summaryOf : NOTHING_EARLIER.summaryOf,
    recall: isInternalAllowed(agent, RECALL) ? how : null,
  };
}

function hasCalls({ generations }: ChatTurn): boolean {
  return generations.some(({ calls = [] }) => calls.length > 0);
}

/** The turns of a request, the current one last. */
export function promptTurns(history: readonly ChatTurn[], turn: ChatTurn): readonly ChatTurn[] {
  return withoutCleared([...history.slice(-limits.historyTurns), turn]);
}

/** Maximum tokens of the generation, so that the tokens of the last one stay reserved (S12). */
function mostTokens(messages: readonly ChatMessage[], wished: number | null, left: number | null): number | null {
  if (left === null) return wished;
  const prompt = estimateMessages(messages);
  return Math.min(wished ?? Infinity, Math.max(limits.leastGenerationTokens, left - prompt));
}
