/** The tokens of a Markdown text as elements: at most `limits.markdownNodes`, what does not fit is shown as it is. */
import type { ComponentChildren } from 'preact';
import type { MarkedToken, Token, Tokens } from 'marked';
import { decodeEntities, isMisleading, linkUrl, showReordering } from '../parts/safe-text.ts';
import { CodeBlock, RemoteImage } from './markdown-parts.tsx';
import type { MarkdownTokens } from './markdown-tokens.ts';
import { PlainText } from './plain-text.tsx';

/** Elements of a block of code, besides the first one. */
const CODE_NODES = 5;

export class MarkdownElements {
  readonly #tokens: MarkdownTokens;
  /** Elements that may still be made. */
  left: number;

  constructor(tokens: MarkdownTokens, left: number) {
    this.#tokens = tokens;
    this.left = left;
  }

  block(token: MarkedToken): ComponentChildren {
    switch (token.type) {
      case 'space':
        return token.raw.trim() === '' ? null : <PlainText text={token.raw} />;
      case 'def':
        return null;
      case 'hr':
        return this.#takes(1) && <hr />;
      case 'code':
        return this.#takes(1 + CODE_NODES) ? (
          <CodeBlock text={token.text} language={token.lang ?? ''} />
        ) : (
          <PlainText text={token.raw} />
        );
      case 'heading': {
        const Heading = `h${Math.min(token.depth + 2, 6)}` as 'h3';
        return this.#takes(1) ? <Heading>{this.#text(token.text)}</Heading> : <PlainText text={token.raw} />;
      }
      case 'blockquote':
        return this.#takes(token.tokens.length) ? (
          <blockquote>{this.#blocks(token.tokens)}</blockquote>
        ) : (
          <PlainText text={token.raw} />
        );
      case 'list':
        return this.#takes(token.items.length) ? this.#list(token) : <PlainText text={token.raw} />;
      case 'table':
        return this.#takes(token.header.length * (token.rows.length + 1)) ? (
          this.#table(token)
        ) : (
          <PlainText text={token.raw} />
        );
      case 'paragraph':
        return this.#takes(1) ? <p>{this.#text(token.text)}</p> : <PlainText text={token.raw} />;
      case 'text':
        // Of a list without blank lines.
        return this.#text(token.text);
      default:
        return <PlainText text={token.raw} />;
    }
  }

  /** @returns whether so many elements may be made; if not, one that has their text is made */
  #takes(count: number): boolean {
    const isRoom = count <= this.left;
    this.left = Math.max(0, this.left - (isRoom ? count : 1));
    return isRoom;
  }

  #blocks(tokens: readonly Token[]): ComponentChildren {
    return tokens.map((token) => this.block(token as MarkedToken));
  }

  #list({ ordered, start, items }: Tokens.List): ComponentChildren {
    const children = items.map(({ task, checked, tokens }) => (
      <li class={task ? 'task' : undefined}>
        {task && (
          <span role="img" aria-label={checked ? 'done' : 'to do'}>
            {checked ? '☑ ' : '☐ '}
          </span>
        )}
        {this.#blocks(tokens.filter(({ type }) => type !== 'checkbox'))}
      </li>
    ));
    return ordered ? <ol start={Number(start)}>{children}</ol> : <ul>{children}</ul>;
  }

  #table({ header, rows }: Tokens.Table): ComponentChildren {
    const row = (cells: readonly Tokens.TableCell[], Cell: 'th' | 'td'): ComponentChildren => (
      <tr>
        {cells.map(({ text, align }) => (
          <Cell class={align === 'right' || align === 'center' ? `align-${align}` : undefined}>{this.#text(text)}</Cell>
        ))}
      </tr>
    );
    return (
      <div class="table-scroll" tabIndex={0} role="group" aria-label="Table">
        <table>
          <thead>{row(header, 'th')}</thead>
          <tbody>{rows.map((cells) => row(cells, 'td'))}</tbody>
        </table>
      </div>
    );
  }

  #text(text: string): ComponentChildren {
    return this.#inlines(this.#tokens.inlines(text), text);
  }

  #inlines(tokens: readonly Token[], text: string, isInLink = false): ComponentChildren {
    if (!this.#takes(tokens.length)) return showReordering(text);
    return tokens.map((token) => this.#inline(token as MarkedToken, isInLink));
  }

  #inline(token: MarkedToken, isInLink: boolean): ComponentChildren {
    switch (token.type) {
      case 'em':
        return <em>{this.#inlines(token.tokens, token.text, isInLink)}</em>;
      case 'strong':
        return <strong>{this.#inlines(token.tokens, token.text, isInLink)}</strong>;
      case 'del':
        return <del>{this.#inlines(token.tokens, token.text, isInLink)}</del>;
      case 'codespan':
        return <code>{showReordering(token.text.trim())}</code>;
      case 'br':
        return <br />;
      case 'escape':
        return showReordering(token.text);
      case 'link':
        return this.#link(token);
      case 'image':
        return isInLink ? (
          showReordering(token.text)
        ) : (
          <RemoteImage href={decodeEntities(token.href)} alt={token.text} />
        );
      default: {
        // The tag of a line break is what tables have for it.
        const parts = token.raw.split(/<br ?\/?>/i).map((part) => showReordering(decodeEntities(part)));
        if (!this.#takes(parts.length)) return parts.join('');
        return parts.map((part, index) => (index === 0 ? part : [<br />, part]));
      }
    }
  }

  #link({ raw, href, text, tokens }: Tokens.Link): ComponentChildren {
    const url = linkUrl(decodeEntities(/^www\./i.test(raw) ? `https://${raw}` : href));
    if (url === null) return showReordering(raw);
    return (
      <>
        <a href={url.href} title={url.href} rel="noopener noreferrer nofollow" target="_blank">
          {this.#inlines(tokens, text, true)}
        </a>
        {isMisleading(decodeEntities(text), url) && <span class="quiet"> (leads to {url.host})</span>}
      </>
    );
  }
}
