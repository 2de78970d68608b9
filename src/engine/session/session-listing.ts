/** What the directory lists about a session (C6). Reads the journal; owns nothing but a copy of the title. */
import { readContent } from '../../domain/content.ts';
import type { MessageContent } from '../../domain/content.ts';
import type { DirectoryEntry } from '../../domain/directory.ts';
import { limits } from '../../domain/limits.ts';
import type { OutgoingText } from './outgoing-text.ts';
import type { Journal } from '../../journal/journal.ts';

export class SessionListing {
  readonly #journal: Journal;
  readonly #outgoing: () => OutgoingText;
  /** With the patterns by which it was redacted: others may show less of it. */
  #title: { readonly text: string | null; readonly by: OutgoingText } | null = null;

  constructor(journal: Journal, outgoing: () => OutgoingText) {
    this.#journal = journal;
    this.#outgoing = outgoing;
  }

  /**
   * The session's entry; null for one that is not listed: an execution, a child, or a session of a stateless client.
   *
   * @param now what the session knows about its runs
   */
  entry(now: Pick<DirectoryEntry, 'status' | 'updated_at'>): DirectoryEntry | null {
    const { record } = this.#journal;
    if (record === null || record.kind !== 'chat' || record.ephemeral === true) return null;
    const { session_id, agent, user_id, created_at } = record;
    const { status, updated_at } = now;
    const cost = this.#journal.runs.cost;
    return { session_id, agent, user_id, title: this.#firstLine(), status, created_at, updated_at, cost };
  }

  #firstLine(): string | null {
    const by = this.#patterns();
    if (by === null) return null;
    if (this.#title?.by === by) return this.#title.text;
    const seeded = this.#journal.seeded.firstOfUser();
    const first = this.#journal.runs.get(1);
    const content = seeded?.role === 'user' ? seeded.content : readContent(first?.input['content']);
    // Redacted before it is cut.
    const text = content === null ? null : titleOf(by.content(content));
    this.#title = { text, by };
    return text;
  }

  /** Null if they cannot be read. */
  #patterns(): OutgoingText | null {
    try {
      return this.#outgoing();
    } catch {
      return null;
    }
  }
}

/** The first line of a message, with single spaces, cut to `limits.titleChars`; null for one without text. */
export function titleOf(content: MessageContent): string | null {
  const texts =
    typeof content === 'string' ? [content] : content.flatMap((part) => (part.type === 'text' ? part.text : []));
  for (const text of texts) {
    const line = /\S.*/u.exec(text)?.[0];
    if (line !== undefined) return cut(line.slice(0, limits.titleReadChars).replace(/\s+/gu, ' ').trim());
  }
  return null;
}

/** A character that does not fit is left out, rather than cut in two. */
function cut(line: string): string {
  const short = line.slice(0, limits.titleChars);
  const isCut = line.length > short.length && /[\uD800-\uDBFF]$/.test(short);
  return (isCut ? short.slice(0, -1) : short).toWellFormed().trimEnd();
}
