/** What of a conversation fits into a prompt: the latest turns, of the session's runs first, then of its seeded history. */
import { limits } from '../../domain/limits.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ChatTurn } from '../../protocol/prompt/chat-turn.ts';
import { seededTurn } from '../../protocol/prompt/seeded-turn.ts';
import { attachmentOf } from './message-files.ts';
import type { Blobs } from './message-files.ts';

export class HistoryRoom {
  #turns: number = limits.historyTurns;
  #bytes: number = limits.historyBytes;
  #events: number = limits.historyEvents;

  /** Takes the room for a run. @returns false if it does not fit: then nothing older is shown either */
  take(bytes: number, events: number): boolean {
    this.#turns -= 1;
    this.#bytes -= bytes;
    this.#events -= events;
    if (this.#turns >= 0 && this.#bytes >= 0 && this.#events >= 0) return true;
    this.#turns = 0;
    return false;
  }

  /** The latest turns of the seeded history for which room is left, oldest first; `bytes`: the cost of reading them. */
  seeded(journal: Journal, blobs: Blobs | null): { readonly turns: readonly ChatTurn[]; readonly bytes: number } {
    if (this.#turns <= 0) return { turns: [], bytes: 0 };
    const { turns, bytes } = journal.seeded.latestTurns(this.#turns, this.#bytes);
    return { turns: turns.map((messages) => seededTurn(messages, (part) => attachmentOf(part, blobs))), bytes };
  }
}
