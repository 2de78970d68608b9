/** Mistakes with sessions that are made again under the same id. */
import type { Patch } from '../patch.ts';

export const INCARNATION_PATCHES: readonly Patch[] = [
  {
    name: 'the keys of actions have the id of the session, without its incarnation',
    file: 'src/engine/actions/attempts.ts',
    find: 'runtimeKey: `${context.sessionKey}/',
    replace: 'runtimeKey: `${context.sessionId}/',
    invariant: 'own answers',
  },
  {
    name: 'the keys of feeds have the id of the session, without its incarnation',
    file: 'src/engine/feeds/feed-sources.ts',
    find: '`${sessionKey(record)}/feed/',
    replace: '`${record.session_id}/feed/',
    invariant: 'own answers',
  },
  {
    name: 'events have run ids without the incarnation',
    file: 'src/journal/event-rows.ts',
    find: 'runIdOf(session,',
    replace: 'runIdOf({ session_id: session.session_id },',
    invariant: 'own answers',
  },
];
