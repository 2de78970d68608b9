/** A session of a test, and the part of its world that sessions start further ones with. */
import type { SessionEvent } from '../src/domain/event.ts';
import type { SessionRecord } from '../src/domain/session.ts';
import type { Session } from '../src/engine/session/session.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface HostedSession {
  readonly session: Session;
  /** Everything that it has published, in order. */
  readonly events: readonly SessionEvent[];
}

export interface SessionHost {
  readonly time: VirtualTime;
  readonly sessions: ReadonlyMap<string, HostedSession>;
  /** A session without its record: it is created next. */
  open(record: SessionRecord): HostedSession;
}
