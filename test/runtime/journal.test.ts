import { env } from 'cloudflare:workers';
import { runInDurableObject } from 'cloudflare:test';
import { describe } from 'vitest';
import { durableSql } from '../../src/durable/sql-storage.ts';
import type { Env } from '../../src/durable/env.ts';
import { journalContract } from '../journal/journal-contract.ts';

let objects = 0;

describe('journal on a Durable Object', () => {
  journalContract(async (body) => {
    objects += 1;
    const stub = (env as unknown as Env).SESSIONS.getByName(`journal-contract-${objects}`);
    await runInDurableObject(stub, async (_object, state) => await body(durableSql(state.storage)));
  });
});
