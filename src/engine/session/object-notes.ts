/** Where the notes of an object are: those about its session in the session's row, those about earlier sessions beside it. */
import type { NoteStorage } from '../../domain/ports/storage.ts';

/**
 * New notes of a session go to the session. What the object's own storage has, notes about deleted sessions, remains visible
 * until it is replaced.
 *
 * @param ofSession returns null if the object has no session
 * @param ofObject outlives the session
 */
export function objectNotes(ofSession: () => NoteStorage | null, ofObject: NoteStorage): NoteStorage {
  const drop = (key: string): void => {
    // The platform creates its table also for the deletion of a key that does not exist.
    if (ofObject.get(key) !== undefined) ofObject.delete(key);
  };
  return {
    get: (key) => ofSession()?.get(key) ?? ofObject.get(key),
    put(key, value) {
      const notes = ofSession();
      if (notes === null) return ofObject.put(key, value);
      notes.put(key, value);
      drop(key);
    },
    delete(key) {
      ofSession()?.delete(key);
      drop(key);
    },
    list: <T>(options: { readonly prefix: string }) => [
      ...(ofSession()?.list<T>(options) ?? []),
      ...ofObject.list<T>(options),
    ],
  };
}
