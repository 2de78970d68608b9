import { describe } from 'vitest';
import { openNodeSql } from '../support/node-sql.ts';
import { journalContract } from './journal-contract.ts';

describe('journal on node:sqlite', () => {
  journalContract(async (body) => body(openNodeSql()));
});
