/** A session behind its own routes, whose answers are compared with the OpenAPI document. */
import { checkedSession } from '../support/response-check.ts';
import { sessionKit } from '../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../support/session-kit.ts';

type Headers = Readonly<Record<string, string>>;

export interface Answer<Body = Record<string, unknown>> {
  readonly status: number;
  readonly body: Body;
}

export interface SessionApi {
  readonly kit: SessionKit;
  load(path: string, init?: RequestInit): Promise<Response>;
  get<Body = Record<string, unknown>>(path: string, headers?: Headers): Promise<Body>;
  /** A text is sent as it is, everything else as JSON. */
  post<Body = Record<string, unknown>>(path: string, body: unknown, headers?: Headers): Promise<Answer<Body>>;
}

export async function sessionApi(options: KitOptions = {}): Promise<SessionApi> {
  return apiOf(await sessionKit(options));
}

export function apiOf(kit: SessionKit): SessionApi {
  const { session, clock } = kit;
  const fetch = checkedSession({ session, clock, destroy: async () => undefined, log: () => undefined });
  const load: SessionApi['load'] = async (path, init = {}) => await fetch(new Request(`http://session${path}`, init));
  return {
    kit,
    load,
    get: async <Body>(path: string, headers: Headers = {}) => (await (await load(path, { headers })).json()) as Body,
    post: async <Body>(path: string, body: unknown, headers: Headers = {}) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const response = await load(path, { method: 'POST', headers, body: text });
      return { status: response.status, body: (await response.json()) as Body };
    },
  };
}
