/** A session for hostile input, and what must hold after a refusal. */
import { expect } from 'vitest';
import { settle } from '../support/session-kit.ts';
import type { Script, SessionKit } from '../support/session-kit.ts';
import { sessionApi } from './session-api.ts';
import type { SessionApi } from './session-api.ts';

export const times = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));
export const ANSWER = '<response final="true">fine</response>';

export async function api(script: Script = [ANSWER, ANSWER]): Promise<SessionApi> {
  const made = await sessionApi({ script });
  made.kit.sql.onSync = settle;
  return made;
}

/** Rows of each table. */
export function rowsOf({ sql }: SessionKit): Record<string, unknown> {
  const tables = sql.exec(`SELECT name FROM sqlite_schema WHERE type = 'table'`).map(({ name }) => String(name));
  return Object.fromEntries(tables.map((name) => [name, sql.exec(`SELECT COUNT(*) AS n FROM "${name}"`)[0]?.['n']]));
}

/** Refused with the code and a detail that contains this; nothing is written; a message is answered afterwards. */
export async function expectRefusal(message: object | string, code: string, detail = ''): Promise<void> {
  const { kit, post } = await api();
  const before = rowsOf(kit);
  const sent = typeof message === 'string' ? message : { stream: false, ...message };
  const refused = await post('/message', sent);
  expect(refused.body).toMatchObject({ code, detail: expect.stringContaining(detail) as string });
  // What a client sent is quoted in part only.
  expect(JSON.stringify(refused.body).length).toBeLessThan(20_000);
  expect(rowsOf(kit)).toEqual(before);
  expect((await post('/message', { content: 'hello', stream: false })).body['response']).toBe('fine');
}
