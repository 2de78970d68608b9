/** Mistakes in the directory of sessions. */
import type { Patch } from '../patch.ts';

const OUTBOX = 'src/engine/session/directory-outbox.ts';
const TABLE = 'src/policies/directory-table.ts';

export const DIRECTORY_PATCHES: readonly Patch[] = [
  {
    name: 'a write counts as acknowledged when it is sent',
    file: OUTBOX,
    find: 'storage.put(LISTED, { ...known, ...whose, number, entry: null } satisfies Listed)',
    replace:
      'storage.put(LISTED, { ...known, ...whose, number, entry: JSON.stringify(entry), runs: listed } satisfies Listed)',
    invariant: 'listed sessions',
  },
  {
    name: 'a failed write is not repeated by the alarm',
    file: 'src/engine/session/session-alarm.ts',
    find: 'const listedAt = this.#ports.directory?.().dueAt ?? null;',
    replace: 'const listedAt = null;',
    invariant: 'listed sessions',
  },
  {
    name: 'a deleted session leaves no note about its entry',
    file: OUTBOX,
    find: 'if (listed !== null) {',
    replace: 'if (false) {',
    invariant: 'listed sessions',
  },
  {
    name: 'the note about a deleted session is removed before the answer',
    file: OUTBOX,
    find: `await this.#answered(index(owner, id).forget(id, incarnation));
      if (!this.#isClosed) storage.delete(key);`,
    replace: `storage.delete(key);
      await this.#answered(index(owner, id).forget(id, incarnation));`,
    invariant: 'listed sessions',
  },
  {
    name: 'the index does not compare the numbers of writes',
    file: TABLE,
    find: 'WHERE excluded.number > sessions.number AND sessions.deleted_at IS NULL',
    replace: 'WHERE sessions.deleted_at IS NULL',
    invariant: 'listed sessions',
  },
  {
    name: 'the index does not remember what it has forgotten',
    file: TABLE,
    find: 'this.#now() - limits.directoryForgottenMs',
    replace: 'this.#now() + 1',
    invariant: 'listed sessions',
  },
  {
    name: 'the end of a run that has waited is not listed',
    file: 'src/engine/session/run-listing.ts',
    find: 'if (!hasEnded) open.push',
    replace: 'if (!hasEnded && !isWaiting) open.push',
    invariant: 'listed sessions',
  },
  {
    name: 'the runs of a write without an answer count as listed',
    file: OUTBOX,
    find: 'storage.put(LISTED, { ...known, ...whose, number, entry: null } satisfies Listed)',
    replace: 'storage.put(LISTED, { ...known, ...whose, number, entry: null, runs: listed } satisfies Listed)',
    invariant: 'listed sessions',
  },
  {
    name: 'the index of executions takes writes about forgotten sessions',
    file: 'src/policies/directory-shard.ts',
    find: 'runs.length > 0 && !this.#sessions.isForgotten(id, incarnation)',
    replace: 'runs.length > 0',
    invariant: 'listed sessions',
  },
  {
    name: 'a session that comes to rest is not written at once',
    file: 'src/engine/session/session-alarm.ts',
    find: `      this.#listSession();
      await this.arm();`,
    replace: `      await this.arm();`,
    invariant: 'parked is free',
  },
];
