/** Requests to other hosts, and pages that they answer with. */

/** Outbound HTTP under the operator's rules (X2). */
export interface OutboundFetch {
  (
    url: string,
    init: {
      readonly method?: string;
      readonly headers?: Record<string, string>;
      readonly body?: string;
      readonly signal: AbortSignal;
      /** What happens to a body over `limits.fetchBytes`. Default: it is cut there. `fail`: reading it rejects. */
      readonly whenTooLarge?: 'cut' | 'fail';
      /**
       * The caller does nothing before it has the whole body, and reads it with `readText`: a small one has been read when
       * this resolves.
       */
      readonly readsAll?: boolean;
      /** Why a redirect to this URL must not be followed; null if it may be (C9). Default: it may be. */
      readonly redirectRefusal?: (url: string) => Promise<string | null>;
    },
  ): Promise<Response>;
}

/** A file that is being fetched. Its body throws the errors of `FileFetch` as well. */
export interface FetchedFile {
  /** As its server states it. */
  readonly contentType: string | null;
  /** After decompression. Leaving the loop stops the transfer. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Fetches the files that messages name by URL, under the operator's rules (C2, X2). */
export interface FileFetch {
  /**
   * @throws EngineError `url_refused`, `url_failed`, `url_timeout`, `runner_unavailable`. Their messages say nothing about
   *   the network behind the URL: no addresses, no targets of redirects, no text of the server.
   */
  (
    url: string,
    init: {
      readonly signal: AbortSignal;
      /** Whether the hosts that the operator allows for tools (`ALLOW_HOSTS`) are allowed. */
      readonly operatorHosts: boolean;
    },
  ): Promise<FetchedFile>;
}

/** Reads a page for `web_fetch` and `web_extract`. The Worker streams it through HTMLRewriter. */
export interface HtmlReader {
  (
    page: Response,
    request: {
      /** CSS selectors whose text is collected; empty means the readable text of the whole page. */
      readonly selectors: readonly string[];
      readonly maxChars: number;
    },
  ): Promise<{
    readonly title: string | null;
    readonly text: string;
    readonly matches: Readonly<Record<string, readonly string[]>>;
    readonly links: readonly { readonly href: string; readonly text: string }[];
    readonly truncated: boolean;
  }>;
}
