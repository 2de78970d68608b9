/** The journal on a Durable Object, and the rows that Cloudflare bills for a run (J6). */
import { runInDurableObject } from 'cloudflare:test';
import { describe, expect, test } from 'vitest';
import { durableSql } from '../../src/durable/sql-storage.ts';
import { journalContract } from '../journal/journal-contract.ts';
import { SESSIONS } from './bindings.ts';
import { events, newSession, post } from './client.ts';

let objects = 0;

describe('journal on a Durable Object', () => {
  journalContract(async (body) => {
    objects += 1;
    const stub = SESSIONS.getByName(`journal-contract-${objects}`);
    await runInDurableObject(stub, async (_object, state) => await body(durableSql(state.storage)));
  });
});

/** From now on, collects the rows written by each statement of a session's object, by table. */
async function counted(session: string): Promise<() => Record<string, number>> {
  const cursors: { readonly table: string; readonly cursor: SqlStorageCursor<Record<string, SqlStorageValue>> }[] = [];
  await runInDurableObject(SESSIONS.getByName(session), (_object, { storage: { sql } }) => {
    const exec = sql.exec.bind(sql);
    sql.exec = ((query: string, ...bindings: unknown[]) => {
      const cursor = exec(query, ...bindings);
      const table = /^\s*(?:INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM)\s+(\w+)/.exec(query)?.[1] ?? 'other';
      cursors.push({ table, cursor });
      return cursor;
    }) as typeof sql.exec;
  });
  return () => {
    const rows: Record<string, number> = {};
    for (const { table, cursor } of cursors) {
      if (cursor.rowsWritten > 0) rows[table] = (rows[table] ?? 0) + cursor.rowsWritten;
    }
    return rows;
  };
}

/** The journaled types in a stream. */
async function typesOf(response: Response): Promise<string[]> {
  return (await events(response)).flatMap(({ seq, type }) => (seq === null ? [] : [type]));
}

test('[J6] a message that the model answers writes few rows: one for each turn with events, two for the run, one for the prompt', async () => {
  const session = await newSession();
  const send = async (content: string): Promise<string[]> =>
    await typesOf(await post(`/agent/session/${session}/message`, { content }));
  await send('hello');
  const rows = await counted(session);
  const types = await send('hello again');
  expect(types.slice(0, 2)).toEqual(['agent_started', 'iteration_started']);
  expect(types.slice(-3)).toEqual(['usage', 'iteration_completed', 'agent_completed']);
  const { events: written = 0, session: notes = 0, ...others } = rows();
  // Before and after a write to the directory: at the end of the run, and during a long one.
  expect(notes).toBeLessThanOrEqual(4);
  expect(others).toEqual({ runs: 2, prompts: 1 });
  // The events at the beginning and at the end share rows.
  expect(written).toBeLessThanOrEqual(types.length - 3);
});
