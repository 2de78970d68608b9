/**
 * The blocks of a Markdown text as elements: GitHub's form, without HTML, whose tags are text like any other.
 *
 * Invariants:
 *  1. The time is linear in the length of the text: each line is looked at a few times for each container around it, and
 *     containers are at most `limits.markdownDepth` deep.
 *  2. Every text is Markdown: what begins nothing is a paragraph.
 */
import type { ComponentChildren } from 'preact';
import * as limits from '../parts/limits.ts';
import { inlinesOf, labelKey } from './markdown-inlines.tsx';
import type { Scope } from './markdown-inlines.tsx';
import { CodeBlock } from './markdown-parts.tsx';
import { PlainText } from './plain-text.tsx';

const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t](.*))?$/;
/** Makes a heading of the paragraph before it. */
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})(?:[-*+]|(\d{1,9})[.)])(?:[ \t]{1,4}|$)/;
/** An item that may follow a paragraph without a blank line. */
const FIRST_ITEM = /^ {0,3}(?:[-*+]|1[.)])[ \t]+\S/;
const TASK = /^\[([ xX])\][ \t]/;
const CODE = /^(?: {4}|\t)/;
const DEFINITION = /^[ >]*\[([^[\]]+)\]:[ \t]*<?([^\s<>]+)>?(?:[ \t]+["'(].*)?$/;
/** Elements of a block of code, besides the first one. */
const CODE_NODES = 5;

export interface Block {
  readonly node: ComponentChildren;
  /** The line after it. */
  readonly end: number;
  /** Elements that may still be made after it. */
  readonly left: number;
}

/** Reads the definitions of reference links; they may follow the links that name them. */
export function readReferences(lines: readonly string[], { references }: Scope): void {
  for (const line of lines) {
    const [, label = '', address] = DEFINITION.exec(line) ?? [];
    const key = labelKey(label);
    if (address !== undefined && !references.has(key)) references.set(key, address);
  }
}

/** A block and the line after it. */
type Read = readonly [node: ComponentChildren, end: number];

/** @param isTight paragraphs are not elements of their own: a list without blank lines */
export function blocksOf(lines: readonly string[], scope: Scope, depth = 0, isTight = false): Block[] {
  const blocks: Block[] = [];
  const line = (at: number): string => lines[at] ?? '';
  const inside = (inner: readonly string[], isTight?: boolean): ComponentChildren =>
    blocksOf(inner, scope, depth + 1, isTight).map(({ node }) => node);
  const codeOf = (from: number, end: number, indent: RegExp, language = ''): ComponentChildren => {
    scope.left -= CODE_NODES;
    const text = lines.slice(from, end).map((each) => each.replace(indent, ''));
    return <CodeBlock text={text.join('\n')} language={language} />;
  };

  /** The lines of a quote or an item: those with its prefix, and those that go on with its paragraph. */
  const contained = (from: number, first: RegExp, prefix: RegExp): string[] => {
    const inner = [line(from).replace(first, '')];
    for (let at = from + 1; at < lines.length; at += 1) {
      const next = line(at);
      if (prefix.test(next)) inner.push(next.replace(prefix, ''));
      else if (isBlank(next) ? prefix === QUOTE : isBlank(inner.at(-1)) || interrupts(next) || ITEM.test(next)) break;
      else inner.push(next);
    }
    return inner;
  };

  const list = (from: number, start: string | undefined): Read => {
    const kind = kindOf(line(from));
    const items: string[][] = [];
    let end = from;
    for (; kindOf(line(end)) === kind && !RULE.test(line(end)); end += items.at(-1)?.length ?? 1) {
      const indent = ITEM.exec(line(end))?.[1] ?? '';
      items.push(contained(end, ITEM, new RegExp(`^(?:${indent}  |\t)`)));
    }
    const source = lines.slice(from, end).join('\n').trim();
    if (items.length > scope.left) return [<PlainText text={source} />, end];
    const isLoose = /\n\s*\n/.test(source);
    const children = items.map(([first = '', ...rest]) => {
      scope.left -= 1;
      const [mark = '', sign] = TASK.exec(first) ?? [];
      return (
        <li class={sign === undefined ? undefined : 'task'}>
          {sign !== undefined && (
            <span role="img" aria-label={sign === ' ' ? 'to do' : 'done'}>
              {sign === ' ' ? '☐ ' : '☑ '}
            </span>
          )}
          {inside([first.slice(mark.length), ...rest], !isLoose)}
        </li>
      );
    });
    return [start === undefined ? <ul>{children}</ul> : <ol start={Number(start)}>{children}</ol>, end];
  };

  const table = (from: number): Read | null => {
    const marks = cellsOf(line(from + 1)).map((cell) => /^(:?)-+(:?)$/.exec(cell));
    const header = cellsOf(line(from));
    if (!line(from).includes('|') || marks.length !== header.length || marks.includes(null)) return null;
    const end = endOfParagraph(from + 2);
    const size = header.length * (end - from);
    if (size > scope.left) return [<PlainText text={lines.slice(from, end).join('\n')} />, end];
    scope.left -= size;
    const row = (at: number, Cell: 'th' | 'td'): ComponentChildren => {
      const cells = cellsOf(line(at));
      return (
        <tr>
          {marks.map((mark, column) => (
            <Cell class={mark?.[2] ? (mark[1] ? 'align-center' : 'align-right') : undefined}>
              {inlinesOf(cells[column] ?? '', scope)}
            </Cell>
          ))}
        </tr>
      );
    };
    const body = Array.from({ length: end - from - 2 }, (_, index) => row(from + 2 + index, 'td'));
    return [
      <div class="table-scroll" tabIndex={0} role="group" aria-label="Table">
        <table>
          <thead>{row(from, 'th')}</thead>
          <tbody>{body}</tbody>
        </table>
      </div>,
      end,
    ];
  };

  const endOfParagraph = (from: number): number => {
    let end = from;
    while (!isBlank(line(end)) && !interrupts(line(end))) end += 1;
    return end;
  };

  const heading = (level: number, text: string): ComponentChildren => {
    const Heading = `h${Math.min(level + 2, 6)}` as 'h3';
    return <Heading>{inlinesOf(text.trim(), scope)}</Heading>;
  };

  const block = (from: number): Read => {
    if (scope.left < 0) return [<PlainText text={lines.slice(from).join('\n')} />, lines.length];
    const first = line(from);
    let end = from + 1;
    const [fenced, indent = '', marker = '', language] = FENCE.exec(first) ?? [];
    if (fenced !== undefined) {
      while (end < lines.length && !endsFence(line(end), marker)) end += 1;
      return [codeOf(from + 1, end, new RegExp(`^ {0,${indent.length}}`), language), end + 1];
    }
    const [title, signs = '', words = ''] = HEADING.exec(first) ?? [];
    if (title !== undefined) return [heading(signs.length, words.trim().replace(/(^|[ \t])#+$/, '')), end];
    if (RULE.test(first)) return [<hr />, end];
    if (depth < limits.markdownDepth) {
      if (QUOTE.test(first)) {
        const inner = contained(from, QUOTE, QUOTE);
        return [<blockquote>{inside(inner)}</blockquote>, from + inner.length];
      }
      const item = ITEM.exec(first);
      if (item !== null) return list(from, item[2]);
    }
    if (CODE.test(first)) {
      while (end < lines.length && (CODE.test(line(end)) || isBlank(line(end)))) end += 1;
      while (isBlank(line(end - 1))) end -= 1;
      return [codeOf(from, end, CODE), end];
    }
    if (DEFINITION.test(first)) return [null, end];
    const found = table(from);
    if (found !== null) return found;
    end = endOfParagraph(end);
    const text = lines
      .slice(from, end)
      .map((each) => each.trim())
      .join('\n');
    const underline = UNDERLINE.exec(line(end))?.[1];
    if (underline !== undefined) return [heading(underline.startsWith('=') ? 1 : 2, text), end + 1];
    const children = inlinesOf(text, scope);
    return [isTight ? children : <p>{children}</p>, end];
  };

  for (let at = 0; at < lines.length;) {
    if (isBlank(line(at))) {
      at += 1;
      continue;
    }
    scope.left -= 1;
    const [node, end] = block(at);
    at = end;
    blocks.push({ node, end, left: scope.left });
  }
  return blocks;
}

function isBlank(line = ''): boolean {
  return line.trim() === '';
}

function endsFence(line: string, marker: string): boolean {
  const text = line.trim();
  return text.startsWith(marker) && text.replaceAll(marker.charAt(0), '') === '' && !CODE.test(line);
}

/** What ends a paragraph before a blank line. */
function interrupts(line: string): boolean {
  return [FENCE, HEADING, UNDERLINE, RULE, QUOTE, FIRST_ITEM].some((pattern) => pattern.test(line));
}

/** Of a list: items of another kind begin another list. */
function kindOf(line: string): string | undefined {
  return ITEM.exec(line)?.[0].trim().at(-1);
}

/** The cells of a row; `\|` does not end one. */
function cellsOf(line: string): string[] {
  const cells = line.trim().replace(/^\||(?<!\\)\|$/g, '');
  return cells.split(/(?<!\\)\|/).map((cell) => cell.replaceAll('\\|', '|').trim());
}
