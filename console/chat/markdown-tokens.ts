/**
 * The tokens of a Markdown text, by marked's lexer: GitHub's form, without HTML, whose tags are text like any other.
 *
 * Invariants:
 *  1. The work is bounded: some texts take marked time in proportion to the square or cube of their length. Each step of
 *     the lexer costs the characters that it may look at. When `limits.markdownWork` is spent, the rest is one text.
 *  2. Quotes and lists are at most `limits.markdownDepth` deep, and so are links and emphasis. What is deeper is text.
 *  3. Nothing throws: a text that marked fails at is one text.
 */
import { Lexer, Tokenizer } from 'marked';
import type { MarkedToken, Tokens } from 'marked';
import * as limits from '../parts/limits.ts';

/** Characters that are read for blocks at once, so that a step does not cost the length of the whole text. */
const WINDOW_CHARS = 8_192;

export class MarkdownTokens {
  readonly #tokenizer = new BoundedTokenizer();
  /** It keeps the addresses of reference links. */
  readonly #lexer = new Lexer({ gfm: true, breaks: true, tokenizer: this.#tokenizer });

  /** Allows as much work again. */
  renew(): void {
    this.#tokenizer.renew();
  }

  /** @returns the blocks of a text; their `raw` together is the text */
  blocks(text: string): MarkedToken[] {
    const blocks: MarkedToken[] = [];
    let at = 0;
    for (let size = WINDOW_CHARS; at < text.length;) {
      const piece = text.slice(at, endOfLine(text, at + size));
      const found = this.#lex(piece, () => this.#lexer.blockTokens(piece));
      this.#lexer.inlineQueue = [];
      const isEnd = at + piece.length === text.length;
      // The last block may go on after the piece.
      const whole = isEnd ? found : found.slice(0, -1);
      const length = whole.reduce((sum, { raw }) => sum + raw.length, 0);
      if (!isEnd && (length === 0 || !piece.startsWith(found.at(-1)?.raw ?? '', length))) {
        size *= 2;
        continue;
      }
      for (const token of whole) blocks.push(token);
      at += isEnd ? piece.length : length;
      size = WINDOW_CHARS;
    }
    return blocks;
  }

  /** @returns what the text of a block contains */
  inlines(text: string): MarkedToken[] {
    if (text.length > limits.markdownRunChars) return [{ type: 'text', raw: text, text }];
    return this.#lex(text, () => this.#lexer.inlineTokens(text));
  }

  #lex(text: string, lex: () => readonly { readonly type: string }[]): MarkedToken[] {
    try {
      // Without extensions there are no other tokens.
      return lex() as MarkedToken[];
    } catch {
      return [{ type: 'text', raw: text, text }];
    }
  }
}

function endOfLine(text: string, from: number): number {
  const at = text.indexOf('\n', from);
  return at === -1 ? text.length : at + 1;
}

class BoundedTokenizer extends Tokenizer {
  #left: number = limits.markdownWork;
  #depth = 0;
  /** Characters of the text that may be a quote around this place. */
  #quoteChars = 0;

  renew(): void {
    this.#quoteChars = 0;
    this.#left = limits.markdownWork;
  }

  /** The first one that is tried for each block. */
  override space(src: string): Tokens.Space | undefined {
    return this.#isSpent(src) ? { type: 'space', raw: src } : super.space(src);
  }

  /** The first one that is tried for each part of a block. */
  override escape(src: string): Tokens.Escape | undefined {
    return this.#isSpent(src) ? { type: 'escape', raw: src, text: src } : super.escape(src);
  }

  /** marked goes through all of a quote again for each part that a line without its sign ends. */
  override blockquote(src: string): Tokens.Blockquote | undefined {
    const outside = this.#quoteChars;
    this.#quoteChars = src.length;
    const token = this.#within(() => super.blockquote(src));
    this.#quoteChars = outside;
    return token;
  }

  override list(src: string): Tokens.List | undefined {
    return this.#within(() => super.list(src));
  }

  override link(src: string): Tokens.Link | Tokens.Image | undefined {
    return this.#within(() => super.link(src));
  }

  override del(src: string, masked: string, before?: string): Tokens.Del | undefined {
    return this.#within(() => super.del(src, masked, before));
  }

  /** A single asterisk inside a word is text, as in `2*3*4`. */
  override emStrong(src: string, masked: string, before = ''): Tokens.Em | Tokens.Strong | undefined {
    if (/\w/.test(before) && /^\*\w/.test(src)) return undefined;
    return this.#within(() => super.emStrong(src, masked, before));
  }

  /** An address that is too long for a link is text. */
  override url(src: string): Tokens.Link | undefined {
    const token = super.url(src.slice(0, limits.urlChars));
    return token === undefined || token.raw.length === limits.urlChars ? undefined : token;
  }

  /** marked makes as many cells of each row as the head has. */
  override table(src: string): Tokens.Table | undefined {
    const [head = ''] = /^.*/.exec(src) ?? [];
    if (!head.includes('|')) return undefined;
    const rows = src.slice(0, /\n[ \t]*\n|$/.exec(src)?.index).split('\n').length;
    return head.split('|').length * rows > limits.markdownNodes ? undefined : super.table(src);
  }

  override html(): undefined {
    return undefined;
  }

  override tag(): undefined {
    return undefined;
  }

  #isSpent(src: string): boolean {
    this.#left -= src.length + this.#quoteChars;
    return this.#left < 0;
  }

  #within<T>(read: () => T | undefined): T | undefined {
    if (this.#depth >= limits.markdownDepth) return undefined;
    this.#depth += 1;
    try {
      return read();
    } finally {
      this.#depth -= 1;
    }
  }
}
