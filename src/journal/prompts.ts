/**
 * The messages that were sent to the model, for debugging: one row for each generation, which also has the first streamed
 * text of the generation that no event contains (J6).
 *
 * Only people read the messages, so they decide nothing about a run and need no sync of their own. They are written with that
 * text, or at the end of the generation; a crash can lose those of the generation that it interrupts.
 *
 * Invariants:
 *  1. A message that the previous row also has is a reference to it, so a conversation grows linearly.
 *  2. At most one prompt is held in memory. It is written before another one, and before prompts are read.
 *  3. The first row has no references. All rows together have at most `limits.promptsChars`, or are one row; the oldest
 *     rows are dropped first.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { RecentTexts } from '../domain/recent-texts.ts';
import type { SqlRow } from '../domain/ports/storage.ts';
import type { JournalDatabase } from './journal-database.ts';

export interface StoredPrompt {
  readonly run: number;
  readonly iteration: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Everything about the request except its messages. */
  readonly request: JsonObject;
  readonly messages: readonly JsonObject[];
}

/** A message, or `[from, count]`: messages of the previous row. */
type Part = JsonObject | readonly [from: number, count: number];

/** What is known about the rows without reading them. */
interface Tail {
  lastId: number;
  chars: number;
  /** Digests of the last row's messages. */
  digests: readonly string[];
}

export class Prompts {
  readonly #db: JournalDatabase;
  /** Null: not read yet. */
  #tail: Tail | null = null;
  /** Not written yet. */
  #held: StoredPrompt | null = null;

  constructor(db: JournalDatabase) {
    this.#db = db;
  }

  /** Keeps a prompt in memory until `write`. */
  hold(prompt: StoredPrompt): void {
    this.write();
    this.#held = prompt;
  }

  /** Writes the prompt of a run that is held, with inputs of the run. @returns whether there was one, and was written */
  writeWith(run: number, inputs: Json): boolean {
    return this.#held?.run === run && this.write(inputs);
  }

  /** Writes the prompt that is held. @returns whether there was one, and the session is not full */
  write(inputs: Json | null = null): boolean {
    const held = this.#held;
    this.#held = null;
    if (held === null || this.#db.full) return false;
    this.#add(held, inputs);
    return true;
  }

  #add({ run, iteration, at, request, messages }: StoredPrompt, inputs: Json | null): void {
    this.#tail ??= this.#readTail();
    const tail = this.#tail;
    const digests = messages.map(digestOf);
    const known = new Map(tail.digests.map((digest, index) => [digest, index]));
    const parts: Part[] = [];
    for (const [index, message] of messages.entries()) {
      const from = known.get(digests[index] ?? '');
      const last = parts.at(-1);
      if (from === undefined) parts.push(message);
      else if (isReference(last) && last[0] + last[1] === from) parts[parts.length - 1] = [last[0], last[1] + 1];
      else parts.push([from, 1]);
    }
    const text = JSON.stringify({ ...request, parts });
    const id = tail.lastId + 1;
    this.#db.storeWith(id, 'prompt', text, (column) => {
      this.#db.exec(
        `INSERT INTO prompts (id, run, iteration, at, chars, data, after_seq, inputs) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        id,
        run,
        iteration,
        at,
        text.length,
        column,
        inputs === null ? null : this.#db.lastSeq,
        inputs === null ? null : JSON.stringify(inputs),
      );
    });
    this.#db.changed();
    tail.lastId = id;
    tail.chars += text.length;
    tail.digests = digests;
    if (tail.chars > limits.promptsChars) this.#db.atomically(() => this.#dropOldest(tail));
  }

  /** All rows in order, one query each; `chars`: the cost of reading the row. */
  *all(): Generator<StoredPrompt & { readonly id: number; readonly chars: number }> {
    this.write();
    let previous: readonly JsonObject[] = [];
    for (let id = 0; ;) {
      const [row] = this.#db.find(`SELECT * FROM prompts WHERE id > ? ORDER BY id LIMIT 1`, id);
      if (row === undefined) return;
      id = Number(row['id']);
      const { request, parts } = this.#load(row);
      previous = resolved(parts, previous);
      yield {
        id,
        run: Number(row['run']),
        iteration: Number(row['iteration']),
        at: Number(row['at']),
        chars: Number(row['chars']),
        request,
        messages: previous,
      };
    }
  }

  #load(row: SqlRow): { readonly request: JsonObject; readonly parts: readonly Part[] } {
    const text = this.#db.load(Number(row['id']), 'prompt', row['data']);
    const { parts, ...request } = JSON.parse(text) as JsonObject & { readonly parts: Json };
    return { request, parts: parts as unknown as readonly Part[] };
  }

  #readTail(): Tail {
    const [row] = this.#db.exec(`SELECT COALESCE(MAX(id), 0) AS id, COALESCE(SUM(chars), 0) AS chars FROM prompts`);
    let last: readonly JsonObject[] = [];
    for (const { messages } of this.all()) last = messages;
    return { lastId: Number(row?.['id'] ?? 0), chars: Number(row?.['chars'] ?? 0), digests: last.map(digestOf) };
  }

  /** Drops rows until a quarter of the room is free; the first row that is kept gets its messages in full. */
  #dropOldest(tail: Tail): void {
    let left = tail.chars;
    for (const { id, messages, chars, request } of this.all()) {
      if (left > limits.promptsChars * 0.75 && id < tail.lastId) {
        left -= chars;
        continue;
      }
      this.#keepInputs(id);
      this.#db.exec(`DELETE FROM prompts WHERE id < ?`, id);
      this.#db.exec(`DELETE FROM chunks WHERE seq BETWEEN 1 AND ? AND field = 'prompt'`, id);
      const text = JSON.stringify({ ...request, parts: messages });
      this.#db.storeWith(id, 'prompt', text, (column) => {
        this.#db.exec(`UPDATE prompts SET chars = ?, data = ? WHERE id = ?`, text.length, column, id);
      });
      tail.chars = left - chars + text.length;
      return;
    }
  }

  /** Moves the inputs of open runs to rows of their own, before all others: the recovery of these runs needs them (J9). */
  #keepInputs(before: number): void {
    this.#db.exec(
      `INSERT INTO inputs (id, run, after_seq, data)
       SELECT (SELECT MIN(0, COALESCE(MIN(id), 0)) FROM inputs) - ROW_NUMBER() OVER (ORDER BY id DESC), run, after_seq, inputs
       FROM prompts WHERE id < ? AND inputs IS NOT NULL AND run IN (SELECT run FROM runs WHERE open = 1)`,
      before,
    );
  }
}

function isReference(part: Part | undefined): part is readonly [number, number] {
  return Array.isArray(part);
}

function resolved(parts: readonly Part[], previous: readonly JsonObject[]): JsonObject[] {
  return parts.flatMap((part) => (isReference(part) ? previous.slice(part[0], part[0] + part[1]) : [part]));
}

function sha256Of(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}

/** Of system prompts, which sessions with the same agent have in common. Messages are kept nowhere else. */
const digests = new RecentTexts(sha256Of);

function digestOf(message: JsonObject): string {
  const text = JSON.stringify(message);
  return message['role'] === 'system' ? digests.of(text) : sha256Of(text);
}
