/** Mistakes in the files of messages: how they are stored and shown. */
import type { Patch } from '../patch.ts';

const SESSION = 'src/engine/session/session-admission.ts';

export const FILE_PATCHES: readonly Patch[] = [
  {
    name: 'only the first row of a file is stored',
    file: 'src/journal/blobs.ts',
    find: `part * limits.rowBytes < bytes.length; part += 1`,
    replace: `part < 1; part += 1`,
    invariant: 'files stored',
  },
  {
    name: 'a message whose run cannot be written leaves its files',
    file: SESSION,
    find: `store === null ? create() : this.#journal.atomically(create)`,
    replace: `create()`,
    invariant: 'files stored',
  },
  {
    name: 'the files of a message are written after its run is on disk',
    file: SESSION,
    find: `store?.();`,
    replace: `void this.#journal.sync().then(() => store?.());`,
    invariant: 'files stored',
  },
  {
    name: 'the files of a message are written before there is room in the queue',
    file: SESSION,
    find: `this.#runs.requireRoom();`,
    replace: `for (const [hash, bytes] of request.files ?? []) this.#journal.blobs.put(hash, bytes);\n    this.#runs.requireRoom();`,
    invariant: 'files stored',
  },
  {
    name: 'the text of a message has no placeholders of its files',
    file: 'src/domain/content.ts',
    find: `part.type === 'text' ? part.text : placeholder(part)`,
    replace: `part.type === 'text' ? part.text : ''`,
    invariant: 'images shown',
  },
  {
    name: 'the text files of earlier messages are not shown',
    file: 'src/engine/generation/shown-files.ts',
    find: `const ofMessages = all.flatMap(messagesOf).map(`,
    replace: `const ofMessages = messagesOf(current).map(`,
    invariant: 'images shown',
  },
];
