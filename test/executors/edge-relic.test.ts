/** Calls of the executor to edge relics: scopes, lost answers, crashes (R6). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../src/domain/action.ts';
import type { EdgeRelicCall, EdgeRelics } from '../../src/domain/ports/edge-relics.ts';
import { EDGE_ENDPOINTS } from '../../src/catalog/build/edge-endpoints.ts';
import { relicExecutor } from '../../src/executors/relic.ts';
import { callOf, contextOf, errorOf } from './support.ts';
import { relicOf } from '../support/definitions.ts';

const relic = relicOf(
  { type: 'edge', store: 'kv', ttlMs: null, quotaBytes: 1_000_000, schema: [] },
  { name: 'notes', endpoints: Object.fromEntries(EDGE_ENDPOINTS.kv.map((endpoint) => [endpoint.name, endpoint])) },
);

const lost = (): Promise<never> => Promise.reject(new Error('the object was reset'));
const SUM: ActionOutcome = { ok: true, output: 3 };

function storesWith(change: Partial<EdgeRelics> = {}): EdgeRelics & { readonly calls: EdgeRelicCall[] } {
  const calls: EdgeRelicCall[] = [];
  return {
    calls,
    call: async (call) => {
      calls.push(call);
      return SUM;
    },
    lookup: async () => null,
    ...change,
  };
}

const increment = (definition = relic): Parameters<typeof relicExecutor.execute>[0] =>
  callOf({ key: 'n' }, { relic: definition, action: { type: 'relic', name: 'notes.increment' } });

describe('[R6] an edge relic', () => {
  test('is called with its scope and the runtime key', async () => {
    const edgeRelics = storesWith();
    expect(await relicExecutor.execute(increment(), contextOf({ edgeRelics, owner: 'team a' }))).toEqual(SUM);
    await relicExecutor.execute(increment({ ...relic, scope: 'shared' }), contextOf({ edgeRelics, owner: 'team a' }));
    const { session } = contextOf();
    expect(edgeRelics.calls).toMatchObject([
      { space: session, endpoint: 'increment', parameters: { key: 'n' }, key: 'ses_1/1/0/0' },
      { space: 'key:team~20a' },
    ]);
  });

  test('[J3] is asked again after a lost answer', async () => {
    const edgeRelics = storesWith({ call: lost, lookup: async () => SUM });
    expect(await relicExecutor.execute(increment(), contextOf({ edgeRelics }))).toEqual(SUM);
  });

  test('[J2] reports an unknown outcome; repeatable calls are repeated', async () => {
    const edgeRelics = storesWith({ call: lost });
    expect(errorOf(await relicExecutor.execute(increment(), contextOf({ edgeRelics })))).toMatchObject({
      code: 'outcome_unknown',
      retryable: false,
    });
    const get = callOf({ key: 'n' }, { relic, action: { type: 'relic', name: 'notes.get' } });
    expect(errorOf(await relicExecutor.execute(get, contextOf({ edgeRelics })))).toMatchObject({
      code: 'relic_unavailable',
      retryable: true,
    });
  });

  test('[J2] knows after a crash which calls were executed', async () => {
    const known = contextOf({ edgeRelics: storesWith({ lookup: async () => SUM }) });
    expect(await relicExecutor.recover?.(increment(), known)).toEqual(SUM);
    expect(await relicExecutor.recover?.(increment(), contextOf({ edgeRelics: storesWith() }))).toBeNull();
  });

  test('[S8] that never answers blocks no caller', async () => {
    const abort = new AbortController();
    const edgeRelics = storesWith({ call: () => new Promise(() => undefined) });
    const asked = relicExecutor.execute(increment(), contextOf({ edgeRelics, signal: abort.signal }));
    abort.abort(new Error('timeout'));
    expect(errorOf(await asked)).toMatchObject({ code: 'aborted' });
  });
});
