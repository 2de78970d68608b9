/**
 * A run as one training example in the chat format: the model's input, and protocol text as the target. Native calls
 * are written as actions, so that a model trained on function calling can learn the protocol from its own runs.
 */
import { isJsonObject, parseJson } from '../../domain/json.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { PromptChanges } from '../../domain/prompt-parts.ts';
import { buildTranscript } from './feedback.ts';
import { calledResults } from './result-budget.ts';
import type { ActionReport, ChatTurn, Generation } from './chat-turn.ts';
import { renderAction } from './examples.ts';
import { buildSystemPrompt } from './prompt.ts';
import type { NativeCall } from '../native/tool-calls.ts';

export interface TrainingMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
  /** 0 for output of earlier runs: it is context and has its own example. */
  readonly weight?: 0;
}

/** @returns null if the model produced no text in the run */
export function trainingExample(run: {
  readonly resolved: ResolvedAgent;
  readonly history: readonly ChatTurn[];
  readonly turn: ChatTurn;
}): { readonly messages: readonly TrainingMessage[] } | null {
  const { agent } = run.resolved;
  const { form } = agent.protocol;
  const isNative = agent.protocol.dialect === 'tool_calls';
  const taught = {
    ...run.resolved,
    agent: {
      ...agent,
      ...(isNative && agent.prompt !== undefined ? { prompt: forProtocolText(agent.prompt) } : {}),
      protocol: { ...agent.protocol, dialect: 'protocol' as const },
    },
  };
  const { messages, context } = buildTranscript({
    system: buildSystemPrompt(taught),
    history: run.history.map((turn) => asText(turn, form)),
    turn: asText(run.turn, form),
  });
  if (!messages.slice(context).some(({ role }) => role === 'assistant')) return null;
  return {
    messages: messages.flatMap(({ role, content }, index): TrainingMessage[] => {
      if (role === 'tool') return [];
      return [role === 'assistant' && index < context ? { role, content, weight: 0 } : { role, content }];
    }),
  };
}

/** Replacements about calls of functions would be wrong in a prompt that teaches protocol text (P17). */
function forProtocolText({ protocol: _blocks, response: _response, ...others }: PromptChanges): PromptChanges {
  return others;
}

/** The turn as if the model had written its calls as text. Rejected calls are left out. */
function asText(turn: ChatTurn, form: ActionForm): ChatTurn {
  return {
    user: turn.user,
    ...(turn.isSeeded === true ? { isSeeded: true, answer: turn.answer ?? '' } : {}),
    generations: turn.generations.map((generation) => {
      const refused = refusedCalls(generation);
      return {
        text: textOf(generation, refused, form),
        results: generation.results.filter((report) => !refused.has(report)),
      };
    }),
  };
}

/**
 * The turn for a request that declares no functions: its calls are written as text, because endpoints reject calls
 * without their functions. The reports of rejected calls stay: they say why nothing ran.
 */
export function withoutCalls(turn: ChatTurn, form: ActionForm): ChatTurn {
  const generations = turn.generations.map((generation) => {
    const { calls = [], ...rest } = generation;
    return calls.length === 0 ? generation : { ...rest, text: textOf(generation, refusedCalls(generation), form) };
  });
  return { ...turn, generations };
}

type ActionForm = 'full' | 'compact';

function refusedCalls(generation: Generation): ReadonlySet<ActionReport> {
  return new Set([...calledResults(generation).values()].filter(({ status }) => status === 'rejected'));
}

function textOf(generation: Generation, refused: ReadonlySet<ActionReport>, form: ActionForm): string {
  const { text, calls = [] } = generation;
  const called = calledResults(generation);
  const actions = calls.flatMap((call) => {
    const report = called.get(call);
    return report !== undefined && refused.has(report) ? [] : [actionText(call, form)];
  });
  return [text, ...actions].filter((part) => part.trim() !== '').join('\n');
}

function actionText(call: NativeCall, form: ActionForm): string {
  const { type, name, actionId: id } = call;
  const value = parseJson(call.arguments);
  const parameters = isJsonObject(value) ? value : {};
  // A parameter called "parameters" would be read as the whole parameters object (P18).
  const shape = Object.hasOwn(parameters, 'parameters') ? 'full' : form;
  return renderAction({ type, ...(name === type ? {} : { name }), id, mode: 'async', parameters }, shape);
}
