/** A door in a server under test: calls wait until the test opens it, and the test waits until calls have arrived. */
export class Gate {
  readonly #opened = Promise.withResolvers<void>();
  readonly #waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  #arrivals = 0;

  /** Number of calls that have come to the gate. */
  get arrivals(): number {
    return this.#arrivals;
  }

  /** Called by the server. Rejects when the signal aborts. */
  async pass(signal?: AbortSignal): Promise<void> {
    this.#arrivals += 1;
    for (const { count, resolve } of this.#waiting) if (count <= this.#arrivals) resolve();
    if (signal === undefined) return await this.#opened.promise;
    const { promise, reject } = Promise.withResolvers<never>();
    const abort = (): void => reject(new Error('the client is gone'));
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    return await Promise.race([this.#opened.promise, promise]);
  }

  /** Opens for all calls, also for later ones. */
  open(): void {
    this.#opened.resolve();
  }

  /** Resolves when this number of calls has arrived since the start. */
  async arrived(count = 1): Promise<void> {
    if (this.#arrivals >= count) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ count, resolve });
    await promise;
  }
}
