import { runInDurableObject } from 'cloudflare:test';
import { describe } from 'vitest';
import { durableSql } from '../../src/durable/sql-storage.ts';
import { journalContract } from '../journal/journal-contract.ts';
import { SESSIONS } from './bindings.ts';

let objects = 0;

describe('journal on a Durable Object', () => {
  journalContract(async (body) => {
    objects += 1;
    const stub = SESSIONS.getByName(`journal-contract-${objects}`);
    await runInDurableObject(stub, async (_object, state) => await body(durableSql(state.storage)));
  });
});
