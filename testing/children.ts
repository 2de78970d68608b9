/** Sub-agents and workflows of a test: sessions of their own in the same process (M7). */
import { RUN_END_EVENTS } from '../src/domain/event.ts';
import type { JsonObject } from '../src/domain/json.ts';
import { limits } from '../src/domain/limits.ts';
import type { ChildEnd, ChildObserver, ChildRequest, ChildSessions } from '../src/domain/ports/children.ts';
import type { SessionRecord } from '../src/domain/session.ts';
import { sha256Hex } from '../src/domain/sha256.ts';
import { addSpent, NOTHING_SPENT } from '../src/domain/spent.ts';
import type { Spent } from '../src/domain/spent.ts';
import { childEnd } from '../src/engine/session/child-end.ts';
import { childIdSource, childRecord } from '../src/engine/session/child-record.ts';
import type { EventBatch } from '../src/engine/session/broadcaster.ts';
import type { HostedSession, SessionHost } from './hosted-session.ts';

/** What the children of each session have spent, by the id of the session. */
const spentBelow = new WeakMap<object, Map<string, Spent>>();

export function childSessions(host: SessionHost, parent: SessionRecord): ChildSessions {
  return {
    async run(request, observer) {
      const digest = await sha256Hex(new TextEncoder().encode(childIdSource(request)));
      const record = childRecord(`ses_${digest.slice(0, 32)}`, parent, request, host.time.clock.now());
      const known = host.sessions.get(record.session_id);
      const child = known ?? host.open(record);
      if (known === undefined) await child.session.create(record, request.type === 'agent' ? request.inputs : {});
      const end = await follow(child, request, observer, () => spentOf(host, record.session_id));
      addTo(host, parent.session_id, end.spent);
      return end;
    },
  };
}

async function follow(
  { session }: HostedSession,
  request: ChildRequest,
  { signal, event: report }: ChildObserver,
  below: () => Spent,
): Promise<ChildEnd> {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const listen = (batch: EventBatch | null): void => {
    for (const event of batch ?? []) {
      // An event is plain JSON; its interfaces only lack the index signature.
      if (!signal.aborted) report(event as unknown as JsonObject);
      if (RUN_END_EVENTS.has(event.type)) resolve();
    }
  };
  const leave = session.listen(listen);
  const cancel = (): void => {
    const reason: unknown = signal.reason instanceof Error ? signal.reason.message : signal.reason;
    void session.cancel(`the parent session: ${String(reason)}`.slice(0, limits.excerptChars)).then(() => resolve());
  };
  try {
    const { runId } = await session.child(request);
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
    if (!session.hasEnded(runId)) await ended;
    return await childEnd(session.read(), session.record, session.run(runId), below());
  } finally {
    leave();
    signal.removeEventListener('abort', cancel);
  }
}

function spentOf(host: SessionHost, id: string): Spent {
  return spentBelow.get(host)?.get(id) ?? NOTHING_SPENT;
}

function addTo(host: SessionHost, id: string, spent: Spent): void {
  const all = spentBelow.get(host) ?? new Map<string, Spent>();
  all.set(id, addSpent(spentOf(host, id), spent));
  spentBelow.set(host, all);
}
