/** What a run waits for and a person answers at the prompt: an approval, or the result of a client tool. */
import { boxed } from '../terminal/visible.ts';
import { Refusal, request } from '../terminal/connection.ts';
import type { Connection } from '../terminal/connection.ts';

/** Asks for a line of input; null at the end of the input. */
export type Ask = (text: string) => Promise<string | null>;

export interface Question {
  /** Path of the API at which it is answered; each is asked once. */
  readonly path: string;
  /** Shows what is asked, and sends the answer. @returns false at the end of the input */
  put(ask: Ask, api: Api): Promise<boolean>;
}

/** Requests of the chat to the running system. */
export class Api {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** @param body absent for a GET */
  async call(path: string, body?: unknown): Promise<Response> {
    const headers = { 'content-type': 'application/json' };
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) };
    return await request(this.#connection, path, init);
  }

  /**
   * A stream of events in the compact form, or in the full one of a system that is older. The refusal of the parameter comes
   * before anything else is done; another one is the same for the second request.
   */
  async stream(path: string, body?: unknown): Promise<Response> {
    const query = path.includes('?') ? '&' : '?';
    return await this.call(`${path}${query}format=compact`, body).catch(async (fault: unknown) => {
      if (!(fault instanceof Refusal) || fault.problem?.code !== 'invalid_request') throw fault;
      return await this.call(path, body);
    });
  }

  /** A request whose body is no JSON. */
  async send(path: string, init: RequestInit = {}): Promise<Response> {
    return await request(this.#connection, path, init);
  }

  async read<T>(path: string): Promise<T> {
    return (await (await this.call(path)).json()) as T;
  }

  /** A command that sends the same request. It does not contain the key. */
  curl(path: string, body?: unknown): string {
    const { key, url } = this.#connection;
    const start = key === null ? 'curl' : 'curl -H "authorization: Bearer $CORTEX_API_KEY"';
    return `${start} ${url}${path}${body === undefined ? '' : ` -d '${JSON.stringify(body)}'`}`;
  }
}

/** A value as JSON, in the width of the terminal. */
export function shown(value: unknown): string {
  // 0 if the terminal's size is unknown
  return boxed(value, process.stdout.columns || 80);
}
