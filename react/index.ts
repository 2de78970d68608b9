/** The package's entry `cortex-edge/react`: a conversation with an agent as a React hook. */
import { useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import { ChatStore } from './chat-store.ts';
import type { ContentPart, JsonObject } from '../src/client/index.ts';
import type { ChatOptions, ChatSnapshot } from './chat-store.ts';

export type { ChatMessage, ChatOptions, ChatSnapshot, ChatStatus } from './chat-store.ts';

export interface Chat extends ChatSnapshot {
  /** Sends a message, and resolves at the end of its run. False: one is being sent or answered, and nothing is sent. */
  readonly send: (content: string | readonly ContentPart[]) => Promise<boolean>;
  /** Cancels the active run. */
  readonly stop: () => Promise<void>;
  /** Approves or denies one of `approvals`. `content`: the values that its question asks for. */
  readonly approve: (approvalId: string, note?: string, content?: JsonObject) => Promise<void>;
  readonly deny: (approvalId: string, note?: string) => Promise<void>;
}

/**
 * A conversation with an agent. The session begins with the first message; with `sessionId`, an earlier one continues, also
 * a run that is active. A component that unmounts stops reading, and the run goes on.
 *
 * ```tsx
 * const { messages, status, send } = useAgent({ client, agent: 'assistant' });
 * ```
 *
 * @param options `client` is made once, outside of components. A change of client, agent or session begins another
 *   conversation; functions in `clientTools` and `onApproval` count from the next message on
 */
export function useAgent({ client, agent, sessionId, clientTools, onApproval }: ChatOptions): Chat {
  const latest = useRef({ clientTools, onApproval });
  useEffect(() => {
    latest.current = { clientTools, onApproval };
  });
  const known = useRef<ChatStore | null>(null);
  const store = useMemo(() => {
    const before = known.current;
    // The session of the first message became a property: the conversation is the same.
    if (before !== null && sessionId != null && before.snapshot().sessionId === sessionId) return before;
    known.current = new ChatStore({
      client,
      agent,
      sessionId,
      get clientTools() {
        return latest.current.clientTools;
      },
      get onApproval() {
        return latest.current.onApproval;
      },
    });
    return known.current;
  }, [client, agent, sessionId]);
  useEffect(store.attach, [store]);
  const snapshot = useSyncExternalStore(store.subscribe, store.snapshot, store.snapshot);
  return useMemo(
    () => ({
      ...snapshot,
      send: store.send,
      stop: store.stop,
      approve: (id: string, note?: string, content?: JsonObject) => store.decide(id, true, note, content),
      deny: (id: string, note?: string) => store.decide(id, false, note),
    }),
    [snapshot, store],
  );
}
