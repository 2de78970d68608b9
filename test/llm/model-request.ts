import type { ModelRequest } from '../../src/domain/ports/model.ts';

/** One user message without options. */
export function modelRequest(more: Partial<ModelRequest> = {}): ModelRequest {
  return {
    messages: [{ role: 'user', content: 'hello' }],
    model: null,
    temperature: null,
    maxTokens: null,
    extra: {},
    agent: null,
    signal: new AbortController().signal,
    ...more,
  };
}
