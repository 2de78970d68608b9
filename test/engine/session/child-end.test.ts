/** The end of a child's run, as its parent sees it (M7, S12). */
import { expect, test } from 'vitest';
import type { RunStatus } from '../../../src/domain/session.ts';
import { childEnd } from '../../../src/engine/session/child-end.ts';
import type { SessionReading } from '../../../src/engine/session/session-reading.ts';
import { newJournal, SESSION_ID, SESSION_RECORD } from '../../journal/journal-kit.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const BELOW = { modelCalls: 1, tokens: 10, cost: 0.5, actions: 2, children: 3 };
const OUTCOME = {
  response: 'the answer',
  actions: 4,
  outputs: { n: 1 },
  error: null,
  usage: { prompt_tokens: 100, completion_tokens: 20, cached_tokens: 7, model_calls: 5, cost: 0.25 },
};

async function ended(
  more: { readonly workflow?: string; readonly status?: RunStatus; readonly outcome?: object } = {},
): Promise<unknown> {
  const { workflow, status = 'completed', outcome = {} } = more;
  const record = { ...SESSION_RECORD, ...(workflow === undefined ? {} : { workflow }) };
  const run = { ...newJournal(openNodeSql()).runs.create({}, 1, 'running'), status };
  const reading = { outcome: async () => ({ ...OUTCOME, ...outcome }) };
  return await childEnd(reading as unknown as SessionReading, record, run, BELOW);
}

test('[M7] [S12] an agent returns its answer; its spending includes its children', async () => {
  expect(await ended()).toEqual({
    sessionId: SESSION_ID,
    status: 'completed',
    output: 'the answer',
    error: null,
    spent: { modelCalls: 6, tokens: 130, cost: 0.75, actions: 6, children: 4 },
  });
  const { cost: _cost, ...unpriced } = OUTCOME.usage;
  expect(await ended({ outcome: { usage: unpriced } })).toMatchObject({ spent: { cost: 0.5 } });
});

test('[M6] a workflow returns its outputs, or its answer without them', async () => {
  expect(await ended({ workflow: 'w' })).toMatchObject({ output: { n: 1 } });
  expect(await ended({ workflow: 'w', outcome: { outputs: null } })).toMatchObject({ output: 'the answer' });
});

test.each<[RunStatus, string]>([
  ['completed', 'completed'],
  ['cancelled', 'cancelled'],
  ['failed', 'failed'],
  ['waiting', 'failed'],
  ['running', 'failed'],
])('[M7] a %s run is %s for its parent, with its error', async (status, told) => {
  const error = { code: 'x', message: 'why' };
  expect(await ended({ status, outcome: { error } })).toMatchObject({ status: told, error });
});
