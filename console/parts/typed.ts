/** What a view loads for a text while one types. */
import type { BaseClient } from '../../src/client/index.ts';
import * as limits from './limits.ts';
import { useLoad } from './loaded.tsx';
import type { Load } from './loaded.tsx';

/**
 * Loads when the text has not changed for a moment; a request for an earlier text is aborted. The last result stays
 * meanwhile; it is undefined for an empty text.
 */
export function useTyped<T extends object>(
  text: string,
  load: (client: BaseClient, signal: AbortSignal) => Promise<T>,
  deps: readonly unknown[] = [],
): Load<{ readonly result?: T }> {
  return useLoad(
    async (client, signal) => {
      if (text.trim() === '') return {};
      await new Promise((resolve) => {
        setTimeout(resolve, limits.typingMs);
      });
      signal.throwIfAborted();
      return { result: await load(client, signal) };
    },
    [text, ...deps],
  );
}
