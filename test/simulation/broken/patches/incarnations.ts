/** Mistakes with sessions that are made again under the same id. */
import type { Patch } from '../patch.ts';

const DELETION = 'src/engine/session/session-deletion.ts';
const SESSION = 'src/engine/session/session.ts';

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
  {
    name: 'a deletion that comes late deletes the session that was made again',
    file: DELETION,
    find: 'if (session !== this.#ports.current()) return;',
    replace: 'session = this.#ports.current() as DeletedSession;',
    invariant: 'own answers',
  },
  {
    name: 'two requests for one deletion delete two sessions',
    file: DELETION,
    find: 'this.#running ??= ',
    replace: 'this.#running = ',
    invariant: 'own answers',
  },
  {
    name: 'ids of calls have no incarnation',
    file: 'src/domain/call-id.ts',
    find: 'const part = incarnation.padEnd',
    replace: `const part = incarnation.slice(0, 0).padEnd`,
    invariant: 'own answers',
  },
  {
    name: 'a run is found by its number, whatever its incarnation is',
    file: SESSION,
    find: 'const run = runId === runIdOf(this.record, runNumberOf(runId)) ? runNumberOf(runId) : 0;',
    replace: 'const run = runNumberOf(runId);',
    invariant: 'own answers',
  },
  {
    name: 'an artifact is found by its event, whatever its incarnation is',
    file: 'src/engine/session/session-reading.ts',
    find: '({ entry }) => entry.id === id',
    replace: `({ entry }) => entry.id.split('_').at(-2) === id.split('_').at(-2)`,
    invariant: 'own answers',
  },
];
