/** Options of every request of the client. */
export interface AbortOptions {
  /** Ends the request, and what it reads. */
  readonly signal?: AbortSignal | undefined;
}
