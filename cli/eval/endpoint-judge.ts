/** A judge at any OpenAI-compatible endpoint (O3), with the presets, retries and time-outs of the agents' models. */
import { systemClock } from '../../src/client/pause.ts';
import type { Random } from '../../src/domain/ports/clock.ts';
import type { ModelRequest, Usage } from '../../src/domain/ports/model.ts';
import { createOpenAiProvider } from '../../src/llm/providers/openai.ts';
import { PRESETS, presetAt } from '../../src/llm/providers/presets.ts';
import { costOf } from '../../src/llm/routing/prices.ts';
import type { AskJudge } from './judge.ts';

export interface JudgeEndpoint {
  /** Without `/chat/completions`. */
  readonly baseUrl: string;
  readonly model: string;
  /** Null for an endpoint without a key. */
  readonly apiKey: string | null;
}

/** Milliseconds of one answer of a judge. */
const JUDGE_MS = 300_000;
/** Tokens of a verdict, and of the model's thinking before it. */
const MOST_TOKENS = 8_000;

/** @param stop ends all requests. @throws EngineError `model_rejected` for an address that is not one */
export function endpointJudge(
  { baseUrl, model, apiKey }: JudgeEndpoint,
  random: Random,
  stop: AbortSignal = new AbortController().signal,
): AskJudge {
  const preset = presetAt(baseUrl);
  const provider = createOpenAiProvider({
    baseUrl,
    apiKey,
    keyAdvice: 'check JUDGE_API_KEY',
    defaultModel: model,
    clock: systemClock,
    random,
    ...(preset === null ? {} : { quirks: PRESETS[preset].quirks, keyHeader: PRESETS[preset].keyHeader }),
  });
  return async (prompt) => {
    const request: ModelRequest = {
      messages: [{ role: 'user', content: prompt }],
      model,
      // Votes of one model must be able to differ.
      temperature: null,
      maxTokens: MOST_TOKENS,
      extra: {},
      agent: null,
      signal: AbortSignal.any([stop, AbortSignal.timeout(JUDGE_MS)]),
    };
    let text = '';
    let usage: Usage | null = null;
    for await (const delta of provider.stream(request)) {
      if (delta.type === 'text') text += delta.text;
      if (delta.type === 'usage') usage = delta.usage;
    }
    const tokens = usage === null ? 0 : usage.promptTokens + usage.completionTokens;
    const known = usage === null ? null : costOf({ ...usage, model }, {});
    const cost = known ?? (preset !== null && PRESETS[preset].local ? 0 : null);
    return { text, tokens, cost, session_id: null, models: [model] };
  };
}
