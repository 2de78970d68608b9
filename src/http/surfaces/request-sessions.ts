/**
 * Sessions of requests that name neither a session nor a key (E2). Each request has a session of its own. Some clients
 * repeat such a request by themselves, and say only that it is a repeated one.
 *
 * Time is divided into slots. The first two equal requests of a slot have sessions whose ids follow from the request and the
 * slot; further ones have random ids. So a repeated request finds the session of the first one, and also sees whether it
 * could be that of another equal request.
 *
 * Invariants:
 *  1. A repeated request joins a session only if no other equal request is known. Otherwise it has a session of its own:
 *     a second run is better than the answer to another client's request.
 *  2. The session's object decides whether its run is recent enough to be joined (session-surface.ts).
 */
import { limits } from '../../domain/limits.ts';

export interface RequestSessionsOptions {
  readonly now: () => number;
  /** The session id for a text; the same text always gives the same id. */
  readonly sessionIdOf: (start: string) => Promise<string>;
  readonly newSessionId: () => Promise<string>;
}

export class RequestSessions {
  readonly #options: RequestSessionsOptions;

  constructor(options: RequestSessionsOptions) {
    this.#options = options;
  }

  /**
   * The session of a request that was not sent before.
   *
   * @param request what distinguishes requests, as JSON
   * @param open creates the session, unless there is one. @returns whether it was created
   */
  async create(request: readonly unknown[], open: (id: string) => Promise<boolean>): Promise<string> {
    const slot = this.#slot(0);
    for (const place of [0, 1]) {
      const id = await this.#idOf(request, slot, place);
      if (await open(id)) return id;
    }
    const id = await this.#options.newSessionId();
    await open(id);
    return id;
  }

  /** The only session of such a request in this slot and the one before; null if there is none, or more than one. */
  async find(request: readonly unknown[], exists: (id: string) => Promise<boolean>): Promise<string | null> {
    const found: string[] = [];
    for (const slot of [this.#slot(0), this.#slot(1)]) {
      const first = await this.#idOf(request, slot, 0);
      if (!(await exists(first))) continue;
      if (await exists(await this.#idOf(request, slot, 1))) return null;
      found.push(first);
    }
    const [only = null, ...others] = found;
    return others.length === 0 ? only : null;
  }

  #slot(ago: number): number {
    return Math.floor(this.#options.now() / limits.repeatedRequestMs) - ago;
  }

  #idOf(request: readonly unknown[], slot: number, place: number): Promise<string> {
    return this.#options.sessionIdOf(JSON.stringify(['request', ...request, slot, place]));
  }
}
