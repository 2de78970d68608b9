/**
 * The definitions used by the runs of one session: a catalogue change, a deployment or a crash does not affect a run that
 * has started (M4, J2).
 *
 * Owns the table `pinned_manifests` in the session's storage. Does not own the runs that refer to its pins.
 *
 * Invariants:
 * 1. The pins of open runs and of the latest run are stored.
 * 2. Others are deleted when a new text is stored, except for the last `limits.pinsIssued` pins: their runs may not be in
 *    the journal yet.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { limits } from '../../domain/limits.ts';
import type { SqlDatabase } from '../../domain/ports/storage.ts';
import { RecentTexts } from '../../domain/recent-texts.ts';
import type { Checked } from './definition-cache.ts';

/** A definition in the form that is stored with a run. */
export interface PinnedTexts {
  /** The result of `toPinned`. */
  readonly text: string;
  /** The tools of the agent's MCP servers, as JSON. Default: it has none (E5). */
  readonly mcp?: string | null;
}

/** A row holds 2 MB in production; a UTF-16 code unit has at most three bytes in UTF-8. */
const PIECE_CHARS = 500_000;

const ids = new RecentTexts((text) => bytesToHex(sha256(utf8ToBytes(text)).subarray(0, 16)));
/** The sessions of an isolate keep one copy of equal texts. */
const shared = new RecentTexts((text) => text);

export class PinTable {
  readonly #sql: SqlDatabase;
  readonly #inUse: () => Iterable<string>;
  /** The latest results of `store`, oldest first. */
  readonly #issued = new Set<string>();
  readonly #last = new Map<keyof PinnedTexts, { readonly id: string; readonly text: string }>();

  /** @param inUse pins of the open runs and of the latest run */
  constructor(sql: SqlDatabase, inUse: () => Iterable<string>) {
    this.#sql = sql;
    this.#inUse = inUse;
  }

  /**
   * Stores the texts separately, because the tools of servers change more often.
   *
   * @param checked when the catalogue was asked for them. Default: they are not from a catalogue
   * @returns `text` or `text+mcp`, each the id of a text; with `checked`, followed by `@revision.time`: a run's row then says
   *   how old its definitions are, and costs no further row
   */
  store({ text, mcp = null }: PinnedTexts, checked: Checked | null = null): string {
    const known = new Set([...this.#last.values()].map(({ id }) => id));
    const ids = [this.#keep('text', text), ...(mcp === null ? [] : [this.#keep('mcp', mcp)])];
    const pin = ids.join('+');
    this.#issued.delete(pin);
    this.#issued.add(pin);
    if (ids.some((id) => !known.has(id))) this.#deleteUnused();
    return checked === null ? pin : `${pin}@${checked.revision}.${checked.checkedAt}`;
  }

  /** @param pin the result of `store`. @returns null if it is not stored */
  read(pin: string): PinnedTexts | null {
    const [textId = '', mcpId] = idsIn(pin);
    const text = this.#read('text', textId);
    if (text === null) return null;
    return { text, ...(mcpId === undefined ? {} : { mcp: this.#read('mcp', mcpId) }) };
  }

  #keep(part: keyof PinnedTexts, text: string): string {
    const last = this.#last.get(part);
    if (last?.text === text) return last.id;
    const id = ids.of(text);
    this.#open();
    for (let piece = 0; piece * PIECE_CHARS < text.length; piece += 1) {
      const slice = text.slice(piece * PIECE_CHARS, (piece + 1) * PIECE_CHARS);
      this.#sql.exec(`INSERT OR IGNORE INTO pinned_manifests (id, piece, text) VALUES (?, ?, ?)`, id, piece, slice);
    }
    this.#last.set(part, { id, text: shared.of(text) });
    return id;
  }

  #deleteUnused(): void {
    for (const pin of this.#issued) {
      if (this.#issued.size <= limits.pinsIssued) break;
      this.#issued.delete(pin);
    }
    const kept = new Set([...this.#issued, ...this.#inUse()].flatMap(idsIn));
    const list = JSON.stringify([...kept]);
    this.#sql.exec(`DELETE FROM pinned_manifests WHERE id NOT IN (SELECT value FROM json_each(?))`, list);
    for (const [part, { id }] of this.#last) if (!kept.has(id)) this.#last.delete(part);
  }

  #read(part: keyof PinnedTexts, id: string): string | null {
    const last = this.#last.get(part);
    if (last?.id === id) return last.text;
    this.#open();
    const rows = this.#sql.exec(`SELECT text FROM pinned_manifests WHERE id = ? ORDER BY piece`, id);
    if (rows.length === 0) return null;
    const text = shared.of(rows.map((row) => String(row['text'])).join(''));
    this.#last.set(part, { id, text });
    return text;
  }

  #open(): void {
    this.#sql.exec(
      `CREATE TABLE IF NOT EXISTS pinned_manifests (
         id TEXT NOT NULL, piece INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, piece)
       ) WITHOUT ROWID`,
    );
  }
}

function idsIn(pin: string): string[] {
  return (pin.split('@', 1)[0] ?? '').split('+');
}

/** When the catalogue was asked for what this pin refers to; null: it was not. */
export function checkedIn(pin: string): Checked | null {
  const [, revision, checkedAt] = /@(\d+)\.(\d+)$/.exec(pin) ?? [];
  return revision === undefined ? null : { revision: Number(revision), checkedAt: Number(checkedAt) };
}
