/** Another model when the first cannot answer, as long as it has not begun to (L2). */
import { EngineError } from '../domain/errors.ts';
import type { ModelDelta, ModelProvider, ModelRequest } from '../domain/ports.ts';

/**
 * Streams from `primary`; when that throws before its first text, reasoning or tool call, from
 * `fallback`, with the fallback's own default model. What breaks later is thrown on: half an answer
 * cannot be continued by another model.
 *
 * @param switched told why the fallback is used
 */
export function createFallbackProvider(
  primary: ModelProvider,
  fallback: ModelProvider,
  switched: (fault: EngineError) => void = () => {},
): ModelProvider {
  return {
    name: primary.name,
    async *stream(request: ModelRequest): AsyncGenerator<ModelDelta> {
      let begun = false;
      try {
        for await (const delta of primary.stream(request)) {
          begun ||= delta.type !== 'usage' && delta.type !== 'finish';
          yield delta;
        }
        return;
      } catch (fault) {
        if (begun || request.signal.aborted || !(fault instanceof EngineError)) throw fault;
        switched(fault);
      }
      yield* fallback.stream({ ...request, model: null });
    },
  };
}
