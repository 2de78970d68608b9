/** Reads web pages with the built-in HTMLRewriter, as they stream: nothing is built in memory but the text. */
import { decodeHTML } from 'entities';
import type { HtmlReader } from '../domain/ports.ts';

/** Elements whose text nobody reads. */
const UNREADABLE = 'script, style, noscript, template, svg, iframe, head title';
/** Elements after which a line ends. */
const BLOCKS = 'p, div, br, li, tr, h1, h2, h3, h4, h5, h6, section, article, header, footer, blockquote, pre, table';

export const readHtml: HtmlReader = async (page, { selectors, maxChars }) => {
  const text = new TextCollector(maxChars);
  const matches: Record<string, string[]> = Object.fromEntries(selectors.map((selector) => [selector, []]));
  const links: { href: string; text: string }[] = [];
  let title: string | null = null;
  let unreadable = 0;
  let rewriter = new HTMLRewriter()
    .on('head title', {
      text(chunk) {
        title = (title ?? '') + chunk.text;
      },
    })
    .on(UNREADABLE, {
      element(element) {
        unreadable += 1;
        element.onEndTag(() => {
          unreadable -= 1;
        });
      },
    })
    .on(BLOCKS, {
      element(element) {
        text.lineBreak();
        if (element.tagName !== 'br') element.onEndTag(() => text.lineBreak());
      },
    })
    .on('a[href]', {
      element(element) {
        links.push({ href: element.getAttribute('href') ?? '', text: '' });
      },
      text(chunk) {
        const link = links.at(-1);
        if (link !== undefined && link.text.length < 200) link.text += chunk.text;
      },
    });
  for (const selector of selectors) {
    rewriter = rewriter.on(selector, {
      element() {
        matches[selector]?.push('');
      },
      text(chunk) {
        const found = matches[selector];
        const last = found?.length ?? 0;
        if (found === undefined || last === 0 || (found[last - 1] ?? '').length > maxChars) return;
        found[last - 1] += chunk.text;
      },
    });
  }
  rewriter = rewriter.onDocument({
    text(chunk) {
      if (unreadable === 0) text.add(chunk.text);
    },
  });
  const read = rewriter.transform(page);
  // The handlers do the work; the page itself is thrown away.
  await read.body?.pipeTo(new WritableStream());
  return {
    title: title === null ? null : squeeze(title),
    text: text.value(),
    matches: Object.fromEntries(
      Object.entries(matches).map(([selector, found]) => [selector, found.map(squeeze).slice(0, 500)]),
    ),
    links: links.slice(0, 500).map((link) => ({ href: link.href, text: squeeze(link.text) })),
    truncated: text.truncated,
  };
};

/** Collects text up to a limit, with white space as a reader sees it. */
class TextCollector {
  readonly #maxChars: number;
  #text = '';
  truncated = false;

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  add(piece: string): void {
    if (this.#text.length + piece.length <= this.#maxChars) {
      this.#text += piece;
      return;
    }
    this.#text += piece.slice(0, this.#maxChars - this.#text.length);
    this.truncated = true;
  }

  lineBreak(): void {
    if (this.#text !== '' && !this.#text.endsWith('\n')) this.#text += '\n';
  }

  value(): string {
    return this.#text
      .split('\n')
      .map(squeeze)
      .filter((line) => line !== '')
      .join('\n');
  }
}

/** As a reader sees it: entities decoded (HTMLRewriter leaves them), runs of white space as one space. */
function squeeze(text: string): string {
  return decodeHTML(text).replaceAll(/\s+/g, ' ').trim();
}
