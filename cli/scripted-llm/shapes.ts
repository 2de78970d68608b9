/** The format of stream chunks and errors of each provider. */
import { PRESET_NAMES } from '../../src/llm/providers/presets.ts';

type Fields = Record<string, unknown>;

export interface Call {
  readonly id: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

export interface Tokens {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
}

export interface Shape {
  /** Before the first text. */
  readonly opening: readonly Fields[];
  readonly comment: string | null;
  text(delta: string): Fields;
  reasoning(delta: string): Fields;
  /** The chunks of one call; some servers send it whole, others in fragments. */
  call(call: Call, index: number): readonly Fields[];
  /** The end of the answer, with usage if the provider reports it. */
  closing(finish: string, tokens: Tokens | null): readonly Fields[];
  /** The body of an error answer. */
  error(status: number, message: string): unknown;
}

export const SHAPE_NAMES = PRESET_NAMES;

function chunk(delta: Fields | null, finish: string | null = null, more: Fields = {}): Fields {
  return {
    id: 'chatcmpl-scripted',
    object: 'chat.completion.chunk',
    created: 0,
    model: 'scripted',
    choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }],
    ...more,
  };
}

function usage({ prompt, completion, cached }: Tokens): Fields {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

/** A call in OpenAI's format: first the name, then the arguments in fragments. */
function inPieces({ id, name, arguments: args }: Call, index: number): Fields[] {
  const half = Math.ceil(args.length / 2);
  return [
    chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    ...[args.slice(0, half), args.slice(half)].map((piece) =>
      chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
    ),
  ];
}

function whole({ id, name, arguments: args }: Call, more: Fields): Fields[] {
  return [
    chunk({
      role: 'assistant',
      content: '',
      tool_calls: [{ id, type: 'function', function: { name, arguments: args }, ...more }],
    }),
  ];
}

const openai: Shape = {
  opening: [chunk({ role: 'assistant', content: '', refusal: null })],
  comment: null,
  text: (delta) => chunk({ content: delta }),
  reasoning: (delta) => chunk({ reasoning_content: delta }),
  call: inPieces,
  // the chunk with the usage has no choices
  closing: (finish, tokens) => [
    chunk({}, finish),
    ...(tokens === null ? [] : [{ ...chunk(null), choices: [], usage: usage(tokens) }]),
  ],
  error: (status, message) => ({ error: { message, type: 'scripted', param: null, code: String(status) } }),
};

const SHAPES: Readonly<Record<(typeof SHAPE_NAMES)[number], Shape>> = {
  openai,
  anthropic: {
    ...openai,
    closing: (finish, tokens) => [
      chunk({}, finish, tokens === null ? {} : { usage: { ...usage(tokens), prompt_tokens_details: null } }),
    ],
  },
  gemini: {
    ...openai,
    opening: [],
    reasoning: (delta) =>
      chunk({ role: 'assistant', content: `<thought>${delta}`, extra_content: { google: { thought: true } } }),
    call: (call) => whole(call, { extra_content: { google: { thought_signature: 'c2lnbmF0dXJl' } } }),
    // Gemini also says `stop` after calls, and reports usage in every chunk.
    closing: (finish, tokens) => [
      chunk(
        { role: 'assistant' },
        finish === 'tool_calls' ? 'stop' : finish,
        tokens === null ? {} : { usage: usage(tokens) },
      ),
    ],
    error: (status, message) => [{ error: { code: status, message, status: 'SCRIPTED' } }],
  },
  groq: {
    ...openai,
    reasoning: (delta) => chunk({ reasoning: delta }),
    closing: (finish, tokens) => [
      chunk({}, finish, { x_groq: { id: 'req_scripted', ...(tokens === null ? {} : { usage: usage(tokens) }) } }),
    ],
  },
  mistral: {
    ...openai,
    reasoning: (delta) => chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: delta }] }] }),
    call: (call, index) => whole(call, { index }),
    closing: (finish, tokens) => [chunk({ content: '' }, finish, tokens === null ? {} : { usage: usage(tokens) })],
    error: (status, message) => ({ object: 'error', message, type: 'scripted', code: String(status) }),
  },
  deepseek: {
    ...openai,
    comment: 'keep-alive',
    text: (delta) => chunk({ content: delta, reasoning_content: null }),
    reasoning: (delta) => chunk({ content: null, reasoning_content: delta }),
    closing: (finish, tokens) => [
      chunk({ content: '', reasoning_content: null }, finish, {
        usage:
          tokens === null
            ? null
            : {
                prompt_tokens: tokens.prompt,
                completion_tokens: tokens.completion,
                prompt_cache_hit_tokens: tokens.cached,
                prompt_cache_miss_tokens: tokens.prompt - tokens.cached,
              },
      }),
    ],
  },
  openrouter: {
    ...openai,
    comment: 'OPENROUTER PROCESSING',
    reasoning: (delta) =>
      chunk({
        role: 'assistant',
        content: '',
        reasoning: delta,
        reasoning_details: [{ type: 'reasoning.text', text: delta }],
      }),
    closing: (finish, tokens) => [
      chunk({ role: 'assistant', content: '' }, finish),
      ...(tokens === null ? [] : [chunk({ role: 'assistant', content: '' }, null, { usage: usage(tokens) })]),
    ],
    error: (status, message) => ({ error: { code: status, message, metadata: { provider_name: 'scripted' } } }),
  },
  xai: { ...openai, reasoning: (delta) => chunk({ content: null, reasoning_content: delta }) },
  'workers-ai': {
    ...openai,
    error: (status, message) => ({ success: false, result: null, messages: [], errors: [{ code: status, message }] }),
  },
  'ai-gateway': { ...openai, error: (status, message) => ({ success: false, errors: [{ code: status, message }] }) },
  ollama: {
    ...openai,
    reasoning: (delta) => chunk({ role: 'assistant', content: '', reasoning: delta }),
    // every call has index 0
    call: (call) => whole(call, { index: 0 }),
    error: (_status, message) => ({ error: message }),
  },
  vllm: {
    ...openai,
    opening: [chunk({ role: 'assistant', content: '' }, null, { usage: null })],
    reasoning: (delta) => chunk({ reasoning: delta, reasoning_content: delta }),
    error: (status, message) => ({ object: 'error', message, type: 'BadRequestError', param: null, code: status }),
  },
  'llama.cpp': {
    ...openai,
    opening: [chunk({ role: 'assistant', content: null })],
    closing: (finish, tokens) => [
      chunk({}, finish),
      {
        ...chunk(null),
        choices: [],
        ...(tokens === null ? {} : { usage: usage(tokens) }),
        timings: { predicted_n: tokens?.completion ?? 0 },
      },
    ],
  },
};

export function shapeOf(name: (typeof SHAPE_NAMES)[number]): Shape {
  return SHAPES[name];
}
