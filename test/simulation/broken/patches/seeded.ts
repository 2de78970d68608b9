/** Mistakes with the history that a session begins with: how it is written and shown. */
import type { Patch } from '../patch.ts';

export const SEEDED_PATCHES: readonly Patch[] = [
  {
    name: 'the history is written after the session is on disk',
    file: 'src/engine/session/session.ts',
    find: `this.#journal.create(record, variables.length + messages.length === 0 ? null : fill);`,
    replace: `this.#journal.create(record);\n    await this.#journal.sync();\n    fill();`,
    invariant: 'history first',
  },
  {
    name: 'a creation that fails in the middle leaves the part that was written',
    file: 'src/journal/journal-database.ts',
    find: `this.atomically(() => {\n        insert(this.#db);\n        fill();\n      });`,
    replace: `insert(this.#db);\n      fill();`,
    invariant: 'history first',
  },
  {
    name: 'the history is shown after the runs',
    file: 'src/engine/generation/conversation.ts',
    find: `return [...room.seeded(journal, blobs).turns, ...turns];`,
    replace: `return [...turns, ...room.seeded(journal, blobs).turns];`,
    invariant: 'history first',
  },
  {
    name: 'only the first run sees the history',
    file: 'src/engine/generation/history-room.ts',
    find: `if (this.#turns <= 0) return`,
    replace: `if (this.#turns < limits.historyTurns) return`,
    invariant: 'history first',
  },
];
