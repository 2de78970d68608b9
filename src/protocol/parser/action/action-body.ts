/**
 * The body of one action as it arrives (P7): keeps its text and decides which `</action>` ends it.
 *
 * Owns the text of the open body. Does not own its meaning (action-json.ts, action-fields.ts).
 *
 * Invariants:
 *  1. Each character is scanned at most once, and only if the body contains a tag.
 *  2. At most `limits.actionBodyBytes` characters are kept. Past that, only the scanner runs, to find the end.
 *  3. The lines of the body are counted when it ends, or when its text is dropped.
 */
import { parseJson } from '../../../domain/json.ts';
import type { Json } from '../../../domain/json.ts';
import { limits } from '../../../domain/limits.ts';
import type { BodyText } from './action-json.ts';
import { utf8Bytes } from '../byte-meter.ts';
import { JsonScanner } from './json-scanner.ts';
import type { TextPosition } from '../text-position.ts';

export class ActionBody implements BodyText {
  readonly #position: TextPosition;
  readonly #scanner = new JsonScanner();
  /** Offset of the first kept character. */
  #offset = 0;
  #scanned = '';
  /** Text that the scanner has not read yet. */
  #fresh = '';
  #dropped = false;
  #ignored = false;
  #value: Json | undefined = undefined;

  constructor(position: TextPosition) {
    this.#position = position;
  }

  /**
   * @param offset of the body's first character
   * @param ignored the action is only skipped; its value is not needed
   */
  begin(offset: number, ignored: boolean): void {
    this.#offset = offset;
    this.#scanned = '';
    this.#fresh = '';
    this.#dropped = false;
    this.#ignored = ignored;
    this.#value = undefined;
    if (this.#scanner.used) this.#scanner.reset();
  }

  /** Stops reading the body as JSON: the next `</action>` ends it. */
  giveUp(): void {
    this.#scanner.giveUp();
  }

  add(text: string): void {
    this.#fresh = this.#fresh === '' ? text : this.#fresh + text;
    if (this.#dropped || this.#scanned.length + this.#fresh.length > limits.actionBodyBytes) this.#drop();
  }

  /** The body has ended. */
  end(): void {
    this.#position.countLines(this.source, this.#offset);
    this.#scanned = '';
    this.#fresh = '';
  }

  /** Whether a tag here is inside a string and cannot end the action. */
  get hidesTag(): boolean {
    this.#scan();
    return this.#scanner.hidesTag;
  }

  /** Whether an `</action>` here ends the action. */
  get endsHere(): boolean {
    // A body that is strict JSON as a whole needs no scan.
    if (!this.#dropped && !this.#ignored && !this.#scanner.used) {
      this.#value = parseJson(this.#fresh);
      if (this.#value !== undefined) return true;
    }
    this.#scan();
    return !this.#scanner.inString;
  }

  get source(): string {
    return this.#scanned === '' ? this.#fresh : this.#scanned + this.#fresh;
  }

  get value(): Json | undefined {
    return this.#value;
  }

  get depth(): number {
    this.#scan();
    return this.#scanner.maxDepth;
  }

  get tooLarge(): boolean {
    if (this.#dropped) return true;
    const { source } = this;
    // A UTF-16 code unit has at most three UTF-8 bytes.
    return source.length * 3 > limits.actionBodyBytes && utf8Bytes(source) > limits.actionBodyBytes;
  }

  #scan(): void {
    if (this.#fresh === '') return;
    this.#scanner.scan(this.#fresh);
    this.#scanned = this.#scanned === '' ? this.#fresh : this.#scanned + this.#fresh;
    this.#fresh = '';
  }

  #drop(): void {
    this.#dropped = true;
    this.#scan();
    this.#position.countLines(this.#scanned, this.#offset);
    this.#offset += this.#scanned.length;
    this.#scanned = '';
  }
}
