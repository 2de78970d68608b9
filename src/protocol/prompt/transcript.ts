/**
 * A run as one training example in the chat format: the model's input, and protocol text as the target. Native calls
 * are written as actions, so that a model trained on function calling can learn the protocol from its own runs.
 */
import { isJsonObject } from '../../domain/json.ts';
import type { Json } from '../../domain/json.ts';
import type { ResolvedAgent } from '../../domain/manifest.ts';
import { buildTranscript, calledResults } from './feedback.ts';
import type { ChatTurn } from './chat-turn.ts';
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
  const taught = {
    ...run.resolved,
    agent: { ...agent, protocol: { ...agent.protocol, dialect: 'protocol' as const } },
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

/** The turn as if the model had written its calls as text. Rejected calls are left out. */
export function asText(turn: ChatTurn, form: 'full' | 'compact'): ChatTurn {
  return {
    user: turn.user,
    ...(turn.isSeeded === true ? { isSeeded: true, answer: turn.answer ?? '' } : {}),
    generations: turn.generations.map((generation) => {
      const { text, calls = [], results } = generation;
      const called = calledResults(generation);
      const refused = new Set([...called.values()].filter(({ status }) => status === 'rejected'));
      const actions = calls.flatMap((call) => {
        const report = called.get(call);
        return report !== undefined && refused.has(report) ? [] : [actionText(call, form)];
      });
      return {
        text: [text, ...actions].filter((part) => part.trim() !== '').join('\n'),
        results: results.filter((report) => !refused.has(report)),
      };
    }),
  };
}

function actionText(call: NativeCall, form: 'full' | 'compact'): string {
  const { type, name, actionId: id } = call;
  const value = JSON.parse(call.arguments) as Json;
  const parameters = isJsonObject(value) ? value : {};
  // A parameter called "parameters" would be read as the whole parameters object (P18).
  const shape = Object.hasOwn(parameters, 'parameters') ? 'full' : form;
  return renderAction({ type, ...(name === type ? {} : { name }), id, mode: 'async', parameters }, shape);
}
