/**
 * Reads web pages with the built-in HTMLRewriter as they stream: only the text is kept in memory.
 *
 * Pages may be hostile. The rewriter calls back for every tag and text, at about twenty microseconds each, and two
 * megabytes may contain half a million tags. So reading pauses after a number of calls and after each piece of the
 * page, to let other work run, and everything after `limits.htmlEvents` is left out.
 */
import { decodeHTML } from 'entities';
import { limits } from '../domain/limits.ts';
import type { HtmlReader } from '../domain/ports/outbound.ts';

/** Elements whose text is ignored. */
const UNREADABLE = 'script, style, noscript, template, svg, iframe, head title';
/** Elements after which a line ends. */
const BLOCKS = 'p, div, br, li, tr, h1, h2, h3, h4, h5, h6, section, article, header, footer, blockquote, pre, table';
const TITLE_CHARS = 1_000;
const LINK_CHARS = 200;
/** Maximum number of links, and of matches of one selector. */
const LISTED = 500;

export const readHtml: HtmlReader = async (page, { selectors, maxChars }) => {
  const text = new TextCollector(maxChars);
  const matches: Record<string, string[]> = Object.fromEntries(selectors.map((selector) => [selector, []]));
  const links: { href: string; text: string }[] = [];
  let title: string | null = null;
  let unreadable = 0;
  let events = 0;
  let matchedChars = 0;
  let cut = false;
  /** Called by every handler; the rewriter waits for the returned promise. */
  const count = (): Promise<void> | undefined => {
    events += 1;
    cut ||= events > limits.htmlEvents;
    return events % limits.htmlEventsPerTurn === 0 ? nextTurn() : undefined;
  };
  let rewriter = new HTMLRewriter()
    .on('head title', {
      text(chunk) {
        if ((title ?? '').length < TITLE_CHARS) title = (title ?? '') + chunk.text;
        return count();
      },
    })
    .on(UNREADABLE, {
      element(element) {
        unreadable += 1;
        element.onEndTag(() => {
          unreadable -= 1;
          return count();
        });
        return count();
      },
    })
    .on(BLOCKS, {
      element(element) {
        text.lineBreak();
        if (element.tagName !== 'br') {
          element.onEndTag(() => {
            text.lineBreak();
            return count();
          });
        }
        return count();
      },
    })
    .on('a[href]', {
      element(element) {
        if (links.length < LISTED) links.push({ href: element.getAttribute('href') ?? '', text: '' });
        return count();
      },
      text(chunk) {
        const link = links.at(-1);
        if (link !== undefined && link.text.length < LINK_CHARS) link.text += chunk.text;
        return count();
      },
    });
  for (const selector of selectors) {
    rewriter = rewriter.on(selector, {
      element() {
        matches[selector]?.push('');
        return count();
      },
      text(chunk) {
        const found = matches[selector];
        const last = found?.length ?? 0;
        if (found !== undefined && last > 0 && last <= LISTED && (found[last - 1] ?? '').length <= maxChars) {
          matchedChars += chunk.text.length;
          cut ||= matchedChars > limits.htmlMatchedChars;
          if (!cut) found[last - 1] += chunk.text;
        }
        return count();
      },
    });
  }
  rewriter = rewriter.onDocument({
    text(chunk) {
      if (unreadable === 0) text.add(chunk.text);
      return count();
    },
  });
  const read = rewriter.transform(inPieces(page, () => cut));
  // The handlers do the work; the page itself is discarded.
  await read.body?.pipeTo(new WritableStream());
  return {
    title: title === null ? null : squeeze(title),
    text: text.value(),
    matches: Object.fromEntries(
      Object.entries(matches).map(([selector, found]) => [selector, found.slice(0, LISTED).map(squeeze)]),
    ),
    links: links.map((link) => ({ href: link.href, text: squeeze(link.text) })),
    truncated: text.truncated || cut,
  };
};

/** Yields to other work of the host. */
function nextTurn(): Promise<void> {
  return new Promise((resume) => {
    setTimeout(resume, 0);
  });
}

/** The same response with its body in small slices; ends when `enough` returns true. */
function inPieces(page: Response, enough: () => boolean): Response {
  if (page.body === null) return page;
  const reader = page.body.getReader();
  let rest = new Uint8Array();
  const pieces = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (enough()) {
        void reader.cancel().catch(() => {});
        return controller.close();
      }
      if (rest.length === 0) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        rest = value;
      }
      await nextTurn();
      controller.enqueue(rest.slice(0, limits.htmlPieceBytes));
      rest = rest.subarray(limits.htmlPieceBytes);
    },
    async cancel(reason) {
      await reader.cancel(reason);
    },
  });
  return new Response(pieces, { status: page.status, headers: page.headers });
}

/** Collects text up to a limit, with white space as displayed. */
class TextCollector {
  readonly #maxChars: number;
  #text = '';
  /** Stored separately, because reading the end of a long text would copy it each time. */
  #atLineStart = true;
  truncated = false;

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  add(piece: string): void {
    if (piece === '') return;
    if (this.#text.length + piece.length <= this.#maxChars) {
      this.#text += piece;
      this.#atLineStart = piece.endsWith('\n');
      return;
    }
    if (!this.truncated) this.#text += piece.slice(0, this.#maxChars - this.#text.length);
    this.#atLineStart = true;
    this.truncated = true;
  }

  lineBreak(): void {
    if (this.#atLineStart) return;
    this.#text += '\n';
    this.#atLineStart = true;
  }

  value(): string {
    return this.#text
      .split('\n')
      .map(squeeze)
      .filter((line) => line !== '')
      .join('\n');
  }
}

/** Text as displayed: entities decoded (HTMLRewriter does not), runs of white space as one space. */
function squeeze(text: string): string {
  return decodeHTML(text).replaceAll(/\s+/g, ' ').trim();
}
