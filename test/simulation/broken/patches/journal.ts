/** Mistakes in the record: what is written and when, and how it is replayed. */
import type { Patch } from '../patch.ts';

const LOG = 'src/engine/run/run-log.ts';
const RECORDING = 'src/engine/run/recording.ts';
const DATABASE = 'src/journal/journal-database.ts';
const REPLAY = 'src/engine/replay/replay.ts';

export const JOURNAL_PATCHES: readonly Patch[] = [
  {
    name: 'events are published before they are on disk',
    file: LOG,
    find: `await synced;\n    for (const effect of effects) effect();\n    this.#publishAll(outgoing);`,
    replace: `this.#publishAll(outgoing);\n    await synced;\n    for (const effect of effects) effect();`,
    invariant: 'recorded first',
  },
  {
    name: 'effects do not wait for the sync',
    file: LOG,
    find: `await synced;\n    for (const effect of effects) effect();`,
    replace: `for (const effect of effects) effect();\n    await synced;`,
    invariant: 'recorded first',
  },
  {
    name: 'the end of a queued run is published before it is on disk',
    file: 'src/engine/session/session-runs.ts',
    find: `await this.#journal.sync();`,
    replace: ``,
    invariant: 'recorded first',
  },
  {
    name: 'events that could not be written keep their numbers',
    file: DATABASE,
    find: `this.#lastSeq = first.row[0] - 1;\n      this.#lastSeq = this.#highestSeq();\n      this.#lostAfter`,
    replace: `this.#lostAfter`,
    invariant: 'same events',
  },
  {
    name: 'a message is answered before its run is on disk',
    file: 'src/engine/session/session-admission.ts',
    find: `await this.#journal.sync();\n    return record;`,
    replace: `return record;`,
    invariant: 'everything ends',
  },
  {
    name: 'changes of variables are expected again in a replay',
    file: REPLAY,
    find: `  'variable_changed',\n`,
    replace: ``,
    invariant: 'same replay',
  },
  {
    name: 'the usage of model calls is not recorded',
    file: RECORDING,
    find: `    case 'usage':\n    case 'cancel_requested':\n    case 'generation_idle':\n      return log.record({ ...input, at });`,
    replace: `    case 'cancel_requested':\n    case 'generation_idle':\n      return log.record({ ...input, at });\n    case 'usage':\n      return;`,
    invariant: 'same replay',
  },
  {
    name: 'inputs are recorded twice',
    file: LOG,
    find: `this.#unsavedChars += addRecorded(this.#unsaved, input);`,
    replace: `this.#unsavedChars += addRecorded(this.#unsaved, input) + addRecorded(this.#unsaved, input);`,
    invariant: 'same replay',
  },
  {
    name: 'a replay uses the present time',
    file: 'src/engine/run/run.ts',
    find: `clock.at = recorded.at;`,
    replace: ``,
    invariant: 'same replay',
  },
  {
    name: 'a replay uses the present estimates',
    file: 'src/engine/actions/action-runner.ts',
    find: `(log.replaying ? replay?.estimateOf(key) : null) ?? policy.estimateMs`,
    replace: `policy.estimateMs`,
    invariant: 'same replay',
  },
  {
    name: 'inputs without an event are written in every turn',
    file: 'src/engine/run/run.ts',
    find: `if (waitMs <= 0 || state.phase === 'parked' || isAtRest(state)) return log.save();`,
    replace: `if (waitMs <= 0 || saveBy > 0) return log.save();`,
    invariant: 'bounded',
  },
  {
    name: 'streamed text is saved after some time, whatever its length',
    file: LOG,
    find: `    if (this.#unsavedChars >= limits.unsavedTextChars) return 0;\n`,
    replace: ``,
    invariant: 'saved text',
  },
  {
    name: 'a block whose end could not be written is closed without its text',
    file: 'src/engine/session/session-runs.ts',
    find: `active.live.unwritten()`,
    replace: `active.live.catchUp()`,
    invariant: 'saved text',
  },
  {
    name: 'notes about recoveries are not deleted',
    file: 'src/engine/replay/recovery-queue.ts',
    find: `this.#db.exec(\`DELETE FROM taken_up WHERE work = ?\`, work);`,
    replace: ``,
    invariant: 'bounded',
  },
  {
    name: 'a long text is written without its row',
    file: 'src/journal/journal-database.ts',
    find: `this.atomically(() => {\n      this.#execAll(chunkInserts(seq, field, text));\n      write('');\n    });`,
    replace: `this.#execAll(chunkInserts(seq, field, text));\n    write('');`,
    invariant: 'bounded',
  },
];
