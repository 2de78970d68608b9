/**
 * The text after `<name` in an opening tag (P5): finds the `>` that ends it and reads the attributes in every form
 * that models write: `a="b"`, `a='b'`, `a=b`, `a=["b", "c"]`, `a="["b","c"]"`, `a`.
 *
 * Owns the attribute text of one tag, which may arrive in pieces, and the spans of its names and values.
 * Does not own the tag's name, its position in the text, or its length limit.
 *
 * Invariants:
 *  1. Each character is read once, however the text was cut.
 *  2. In an action's tag a `>` inside quotes does not end the tag, unless the `{` of the body follows it: then a
 *     closing quote is missing. In other tags the first `>` ends the tag.
 */
import {
  BACKSLASH,
  CLOSE_BRACKET,
  DOUBLE_QUOTE,
  EQUALS,
  GREATER,
  LESS,
  LINE_FEED,
  OPEN_BRACE,
  OPEN_BRACKET,
  SINGLE_QUOTE,
  isSpace,
  isWordCharacter,
} from './characters.ts';

/** Numbers, because a step runs for every character. */
const State = {
  space: 0,
  name: 1,
  afterName: 2,
  /** After the `=`. */
  equals: 3,
  bare: 4,
  quoted: 5,
  /** `"["a","b"]"`: a list in the same quotes as its items. */
  quotedList: 6,
  list: 7,
  quotedInList: 8,
  /** After a `>` inside quotes: the end of the tag if the body's `{` follows. */
  tentativeEnd: 9,
} as const;
type State = (typeof State)[keyof typeof State];

/** Offsets in the attribute text. `valueStart` is -1 if there is no value. */
interface AttributeSpan {
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

export class TagHead {
  #text = '';
  #state: State = State.space;
  #spans: AttributeSpan[] = [];
  #quotesHideEnd = false;
  /** The state to return to from `tentativeEnd`. */
  #resume: State = State.space;
  #tentativeAt = 0;
  #quote = 0;
  #previous = 0;
  #nameStart = 0;
  #nameEnd = 0;
  #valueStart = 0;

  /** @param quotesHideEnd a `>` inside quotes is part of the value */
  reset(quotesHideEnd: boolean): void {
    this.#text = '';
    this.#state = State.space;
    if (this.#spans.length > 0) this.#spans = [];
    this.#quotesHideEnd = quotesHideEnd;
    this.#previous = 0;
  }

  /** The attribute text so far. */
  get text(): string {
    return this.#text;
  }

  /**
   * Reads more text.
   *
   * @returns `to`, or the index where the caller must decide: at a `>` that ends the tag, at a `<` that may begin
   *   another one, or at the `{` after a `>` that proved to be the end (`cutAtTentativeEnd`)
   */
  read(text: string, from: number, to: number): number {
    const before = this.#text.length - from;
    let index = from;
    for (; index < to; index += 1) {
      index = this.#skipOrdinary(text, index, to);
      if (index === to) break;
      const code = text.charCodeAt(index);
      if (this.#state === State.tentativeEnd) {
        if (isSpace(code)) continue;
        if (code === OPEN_BRACE) break;
        this.#state = this.#resume;
      }
      if ((code === GREATER || code === LESS) && this.#stopsAt(code)) break;
      this.#step(code, before + index);
    }
    if (index > from) this.#text += text.slice(from, index);
    return index;
  }

  /** Treats the `<` at which `read` stopped as an ordinary character. */
  takeLess(): void {
    this.#step(LESS, this.#text.length);
    this.#text += '<';
  }

  /** Ends the tag at the `>` where `read` stopped. @returns whether it is self-closing */
  end(): boolean {
    const inValue = this.#quotesHideEnd && this.#state !== State.name && this.#state !== State.bare;
    if (inValue || !this.#text.endsWith('/')) return false;
    this.#text = this.#text.slice(0, -1);
    return true;
  }

  /** Ends the tag at the tentative `>`. @returns the text after that `>` */
  cutAtTentativeEnd(): string {
    const rest = this.#text.slice(this.#tentativeAt + 1);
    this.#text = this.#text.slice(0, this.#tentativeAt);
    this.#state = this.#resume;
    return rest;
  }

  /** @param take called with every name as written, and its value; the value defaults to `true` */
  attributes(take: (name: string, value: string) => void): void {
    for (const span of this.#spans) this.#give(span, take);
    const end = this.#text.length;
    const open = { nameStart: this.#nameStart, nameEnd: this.#nameEnd, valueStart: -1, valueEnd: end };
    switch (this.#state) {
      case State.space:
        return;
      case State.name:
        return this.#give({ ...open, nameEnd: end }, take);
      case State.afterName:
        return this.#give(open, take);
      case State.equals:
        return this.#give({ ...open, valueStart: end }, take);
      default:
        this.#give({ ...open, valueStart: this.#valueStart }, take);
    }
  }

  #give(
    { nameStart, nameEnd, valueStart, valueEnd }: AttributeSpan,
    take: (name: string, value: string) => void,
  ): void {
    const name = wordIn(this.#text, nameStart, nameEnd);
    if (name !== '') take(name, valueStart === -1 ? 'true' : decode(this.#text.slice(valueStart, valueEnd)));
  }

  /** Skips characters that do not change the state. Most do not. */
  #skipOrdinary(text: string, from: number, to: number): number {
    let index = from;
    if (this.#state === State.quoted) {
      for (; index < to; index += 1) {
        const code = text.charCodeAt(index);
        if (code === this.#quote || code === OPEN_BRACKET || code === LESS || code === GREATER) break;
      }
    } else if (this.#state === State.name || this.#state === State.bare) {
      while (index < to && isWordCharacter(text.charCodeAt(index))) index += 1;
    }
    if (index > from) this.#previous = text.charCodeAt(index - 1);
    return index;
  }

  /** Whether the caller must decide about a `<` or `>` here. */
  #stopsAt(code: number): boolean {
    if (!this.#quotesHideEnd) return true;
    switch (this.#state) {
      case State.quoted:
      case State.quotedInList:
        return code === LESS && this.#previous === LINE_FEED;
      case State.quotedList:
        return this.#previous !== CLOSE_BRACKET;
      default:
        return true;
    }
  }

  /** @param at the character's offset in the attribute text */
  #step(code: number, at: number): void {
    const previous = this.#previous;
    this.#previous = code;
    switch (this.#state) {
      case State.space:
        if (isSpace(code)) return;
        this.#nameStart = at;
        this.#nameEnd = at;
        this.#state = code === EQUALS ? State.equals : State.name;
        return;
      case State.name:
        if (code !== EQUALS && !isSpace(code)) return;
        this.#nameEnd = at;
        this.#state = code === EQUALS ? State.equals : State.afterName;
        return;
      case State.afterName:
        if (isSpace(code)) return;
        if (code === EQUALS) {
          this.#state = State.equals;
          return;
        }
        this.#valueStart = -1;
        this.#complete(at);
        this.#nameStart = at;
        this.#state = State.name;
        return;
      case State.equals:
        if (isSpace(code)) return;
        this.#beginValue(code, at);
        return;
      case State.bare:
        if (isSpace(code)) this.#complete(at);
        return;
      case State.quoted:
        if (code === this.#quote && previous !== BACKSLASH) this.#complete(at);
        else if (code === OPEN_BRACKET && previous === this.#quote) this.#state = State.quotedList;
        else if (code === GREATER) this.#markTentativeEnd(at);
        return;
      case State.quotedList:
        if (previous !== CLOSE_BRACKET) return;
        if (code === this.#quote) this.#complete(at);
        else {
          // `"[1, 2].size() > 1"` only looked like a list.
          this.#state = State.quoted;
          if (code === GREATER) this.#markTentativeEnd(at);
        }
        return;
      case State.list:
        if (code === CLOSE_BRACKET) this.#complete(at + 1);
        else if (isQuote(code)) {
          this.#quote = code;
          this.#state = State.quotedInList;
        }
        return;
      case State.quotedInList:
        if (code === this.#quote) this.#state = State.list;
        else if (code === GREATER) this.#markTentativeEnd(at);
        return;
      case State.tentativeEnd:
    }
  }

  #beginValue(code: number, at: number): void {
    this.#valueStart = at;
    if (isQuote(code)) {
      this.#valueStart = at + 1;
      this.#quote = code;
      this.#state = State.quoted;
    } else this.#state = code === OPEN_BRACKET ? State.list : State.bare;
  }

  #complete(valueEnd: number): void {
    this.#spans.push({ nameStart: this.#nameStart, nameEnd: this.#nameEnd, valueStart: this.#valueStart, valueEnd });
    this.#state = State.space;
  }

  #markTentativeEnd(at: number): void {
    this.#resume = this.#state;
    this.#tentativeAt = at;
    this.#state = State.tentativeEnd;
  }
}

function isQuote(code: number): boolean {
  return code === DOUBLE_QUOTE || code === SINGLE_QUOTE;
}

/** The substring from the first to the last word character of a range. */
function wordIn(text: string, start: number, end: number): string {
  let from = start;
  let to = Math.min(end, text.length);
  while (from < to && !isWordCharacter(text.charCodeAt(from))) from += 1;
  while (to > from && !isWordCharacter(text.charCodeAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'", '#39': "'" };

function decode(value: string): string {
  const plain = value.includes('\\') ? value.replace(/\\(["'])/g, '$1') : value;
  if (!plain.includes('&')) return plain;
  return plain.replace(/&(lt|gt|amp|quot|apos|#39);/g, (entity, name: string) => ENTITIES[name] ?? entity);
}
