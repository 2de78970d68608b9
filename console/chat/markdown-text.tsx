/**
 * Markdown as elements. The text comes from a model, and may contain an attack on the reader.
 *
 * Invariants:
 *  1. Only the elements of these files are made, with attributes of these files: never HTML of the text.
 *  2. A link leads to http, https or mailto, and nothing is loaded without a click.
 *  3. While a text arrives, a block that is complete is neither read nor rendered again.
 */
import { Fragment } from 'preact';
import type { ComponentChildren, VNode } from 'preact';
import { useRef } from 'preact/hooks';
import * as limits from '../parts/limits.ts';
import { MarkdownElements } from './markdown-elements.tsx';
import { MarkdownTokens } from './markdown-tokens.ts';
import { PlainText } from './plain-text.tsx';
import { completed } from './unfinished.ts';

export interface MarkdownProps {
  readonly text: string;
  /** More of it is to come. */
  readonly isOpen?: boolean;
}

export function MarkdownText({ text, isOpen = false }: MarkdownProps) {
  const reader = useRef<MarkdownReader | null>(null);
  reader.current ??= new MarkdownReader();
  return <div class="markdown">{reader.current.read(text, isOpen)}</div>;
}

/** Reads a text again and again while it grows. */
class MarkdownReader {
  #blocks: VNode[] = [];
  /** The text of these blocks. */
  #done = '';
  #left: number = limits.markdownNodes;
  #tokens = new MarkdownTokens();

  read(text: string, isOpen: boolean): ComponentChildren {
    if (text.length > limits.markdownChars) return <PlainText text={text} />;
    const source = text.replace(/\r\n?/g, '\n');
    // Later references may be for earlier links, so the whole text is read at its end.
    if (!isOpen || !source.startsWith(this.#done)) {
      this.#blocks = [];
      this.#done = '';
      this.#left = limits.markdownNodes;
      this.#tokens = new MarkdownTokens();
    }
    this.#tokens.renew();
    const rest = source.slice(this.#done.length);
    const tokens = this.#tokens.blocks(isOpen ? completed(rest) : rest);
    const elements = new MarkdownElements(this.#tokens, this.#left);
    const shown = [...this.#blocks];
    // The text may go on with the last block.
    const last = isOpen ? tokens.findLastIndex(({ raw }) => raw.trim() !== '') : -1;
    let done = this.#done.length;
    for (const [index, token] of tokens.entries()) {
      if (index === last) {
        this.#blocks = [...shown];
        this.#done = source.slice(0, done);
        this.#left = elements.left;
      }
      if (elements.left === 0) {
        shown.push(<PlainText key={shown.length} text={source.slice(done)} />);
        break;
      }
      if (token.raw.trim() !== '') shown.push(<Fragment key={shown.length}>{elements.block(token)}</Fragment>);
      done += token.raw.length;
    }
    return shown;
  }
}
