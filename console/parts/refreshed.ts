/** What a view loads and keeps up to date while it is visible. */
import { useEffect } from 'preact/hooks';
import type { BaseClient } from '../../src/client/index.ts';
import * as limits from './limits.ts';
import { useLoad } from './loaded.tsx';
import type { Load } from './loaded.tsx';

/** Like `useLoad`, and again every few seconds while the page is visible, but never while a request is under way. */
export function useRefreshed<T>(
  load: (client: BaseClient, signal: AbortSignal) => Promise<T>,
  deps: readonly unknown[],
): Load<T> {
  const loaded = useLoad(load, deps);
  const { value, fault, reload } = loaded;
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.hidden) return;
      // Starts again when the request has ended.
      clearInterval(timer);
      reload();
    }, limits.refreshMs);
    return () => clearInterval(timer);
  }, [value, fault]);
  return loaded;
}
