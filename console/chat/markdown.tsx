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
import { memo } from '../parts/memo.ts';
import { blocksOf, readReferences } from './markdown-blocks.tsx';
import { PlainText } from './plain-text.tsx';
import { completed } from './unfinished.ts';

interface MarkdownProps {
  readonly text: string;
  /** More of it is to come. */
  readonly isOpen?: boolean;
}

export const Markdown = memo(function Markdown({ text, isOpen = false }: MarkdownProps) {
  const reader = useRef<MarkdownReader | null>(null);
  reader.current ??= new MarkdownReader();
  return <div class="markdown">{reader.current.read(text, isOpen)}</div>;
});

/** Reads a text again and again while it grows. */
class MarkdownReader {
  #blocks: VNode[] = [];
  /** The text of these blocks. */
  #done = '';
  #left: number = limits.markdownNodes;
  #references = new Map<string, string>();

  read(text: string, isOpen: boolean): ComponentChildren {
    if (text.length > limits.markdownChars) return <PlainText text={text} />;
    const source = text.replace(/\r\n?/g, '\n');
    // Later references may be for earlier links, so the whole text is read at its end.
    if (!isOpen || !source.startsWith(this.#done)) {
      this.#blocks = [];
      this.#done = '';
      this.#left = limits.markdownNodes;
      this.#references = new Map();
    }
    const rest = source.slice(this.#done.length);
    const lines = (isOpen ? completed(rest) : rest).split('\n');
    const scope = { left: this.#left, references: this.#references };
    readReferences(lines, scope);
    const blocks = blocksOf(lines, scope);
    const shown = [...this.#blocks];
    for (const { node } of blocks) shown.push(<Fragment key={shown.length}>{node}</Fragment>);
    // The text may go on with the last block.
    const last = blocks.at(-2);
    if (isOpen && last !== undefined) {
      this.#blocks = shown.slice(0, -1);
      this.#done += `${lines.slice(0, last.end).join('\n')}\n`;
      this.#left = last.left;
    }
    return shown;
  }
}
