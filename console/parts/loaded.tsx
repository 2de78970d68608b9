/** What a view loads: nothing yet, an error, or the value. */
import { useEffect, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import type { BaseClient } from '../../src/client/index.ts';
import { access, isKeyMissing, isRefused } from '../app/access.ts';
import { Fault } from './fault.tsx';

export type Load<T> = { readonly value: T | null; readonly fault: unknown; readonly reload: () => void };

/**
 * Loads with the client of this tab, again when something in `deps` or the key changes. The last value stays while it is
 * loaded again.
 */
export function useLoad<T>(
  load: (client: BaseClient, signal: AbortSignal) => Promise<T>,
  deps: readonly unknown[],
): Load<T> {
  const [state, setState] = useState<{ readonly value: T | null; readonly fault: unknown }>({
    value: null,
    fault: null,
  });
  const [times, setTimes] = useState(0);
  const { client, id } = access.value;
  useEffect(() => {
    const left = new AbortController();
    const read = async (): Promise<void> => {
      try {
        const value = await load(client, left.signal);
        if (!left.signal.aborted) setState({ value, fault: null });
      } catch (fault) {
        if (!left.signal.aborted && !isKeyMissing(fault)) setState(({ value }) => ({ value, fault }));
      }
    };
    void read();
    return () => left.abort();
  }, [...deps, times, id]);
  return { ...state, reload: () => setTimes((n) => n + 1) };
}

/** Nothing is there yet. */
export function Loading() {
  return <p class="quiet">{isRefused.value ? 'No access.' : 'Loading …'}</p>;
}

export function Loaded<T>({
  load: { value, fault, reload },
  children,
}: {
  readonly load: Load<T>;
  readonly children: (value: T) => ComponentChildren;
}) {
  return (
    <>
      {fault !== null && <Fault fault={fault} retry={reload} />}
      {value === null ? fault === null && <Loading /> : children(value)}
    </>
  );
}
