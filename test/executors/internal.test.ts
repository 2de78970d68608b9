import { expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { INTERNAL_ACTIONS } from '../../src/domain/internal-actions.ts';
import { internalExecutor, internalPolicy } from '../../src/executors/internal.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { callOf, contextOf, errorOf, MapStore } from './support.ts';
import type { TestContext } from './support.ts';

const run = (name: string, parameters: JsonObject, context: TestContext = contextOf()) =>
  internalExecutor.execute(callOf(parameters, { action: { type: 'internal', name } }), context);

const open = { enabled: true, allowed: null, blocked: [] };

test('[I] a variable is set, kept with its JSON type, and deleted', async () => {
  const context = contextOf();
  expect(await run('set_variable', { key: 'city', value: { name: 'Ulm' } }, context)).toEqual({
    ok: true,
    output: { key: 'city', value: { name: 'Ulm' } },
  });
  await run('set_variable', { key: 'none', value: null }, context);
  expect(context.variables.entries()).toEqual([
    ['city', { name: 'Ulm' }],
    ['none', null],
  ]);
  expect(await run('delete_variable', { key: 'city' }, context)).toEqual({
    ok: true,
    output: { key: 'city', deleted: true },
  });
  expect(await run('delete_variable', { key: 'city' }, context)).toEqual({
    ok: true,
    output: { key: 'city', deleted: false },
  });
});

test('[I] clear_context clears every variable and lists their names', async () => {
  const context = contextOf();
  await run('set_variable', { key: 'a', value: 1 }, context);
  await run('set_variable', { key: 'b', value: 2 }, context);
  expect(await run('clear_context', {}, context)).toEqual({ ok: true, output: { cleared: ['a', 'b'] } });
  expect(context.variables.entries()).toEqual([]);
});

test.each([
  { value: 1 },
  { key: 'a b', value: 1 },
  { key: '1a', value: 1 },
  { key: 'x'.repeat(65), value: 1 },
  { key: '', value: 1 },
  { key: 'a<b', value: 1 },
  { key: 'a' },
])('[P12] set_variable %j is an error of the model', async (parameters) => {
  const context = contextOf();
  expect(errorOf(await run('set_variable', parameters, context))).toMatchObject({ code: 'invalid_parameters' });
  expect(context.variables.entries()).toEqual([]);
});

test('[I] an error of the store is reported to the model', async () => {
  class Full extends MapStore {
    override set(): void {
      throw new EngineError('invalid_request', 'A session holds at most 1000 variables');
    }
  }
  const context = { ...contextOf(), variables: new Full() };
  expect(errorOf(await run('set_variable', { key: 'a', value: 1 }, context))).toEqual({
    code: 'too_large',
    message: 'A session holds at most 1000 variables',
    retryable: false,
  });
});

test.each(INTERNAL_ACTIONS.filter((name) => name.endsWith('feed') || name.endsWith('feeds')))(
  '[I] %s fails if there are no feeds',
  async (name) => {
    expect(errorOf(await run(name, {}))).toMatchObject({ code: 'not_available', beforeDispatch: true });
  },
);

test('[I] disabled overrides blocked, and blocked overrides allowed', () => {
  const name = 'set_variable';
  expect(internalPolicy(open, name)).toBeNull();
  expect(internalPolicy({ ...open, allowed: [name] }, name)).toBeNull();
  expect(internalPolicy({ ...open, allowed: ['clear_context'] }, name)?.message).toBe(
    'The internal action "set_variable" is not allowed for this agent (allowed: clear_context)',
  );
  expect(internalPolicy({ ...open, allowed: [name], blocked: [name] }, name)?.message).toContain('is blocked');
  expect(internalPolicy({ enabled: false, allowed: [name], blocked: [name] }, name)?.message).toContain('disabled');
  expect(internalPolicy({ ...open, allowed: [] }, name)).toMatchObject({ code: 'not_allowed' });
});

test('[I] an unknown internal action is unknown, even if all are disabled', () => {
  expect(internalPolicy({ ...open, enabled: false }, 'drop_tables')).toMatchObject({ code: 'unknown_name' });
  expect(internalPolicy(open, 'toString')).toMatchObject({ code: 'unknown_name' });
});

test('[I] a refused action changes nothing', async () => {
  const context = contextOf({ internalActions: { ...open, blocked: ['set_variable'] } });
  expect(errorOf(await run('set_variable', { key: 'a', value: 1 }, context))).toMatchObject({
    code: 'not_allowed',
    retryable: false,
    beforeDispatch: true,
  });
  expect(context.variables.entries()).toEqual([]);
});

test('[I] list_context_feeds with an id returns that feed, or says why it has no value', async () => {
  const views = [
    { id: 'clock', value: 'noon', error: null },
    { id: 'old', value: 1, error: 'down' },
    { id: 'gone', value: null, error: 'down' },
  ];
  const feeds = { list: () => views, add: never, update: never, remove: () => false };
  const read = (id: string | number) => run('list_context_feeds', { id }, contextOf({ feeds }));
  expect(await read('clock')).toEqual({ ok: true, output: views[0] });
  expect(await read('old')).toEqual({ ok: true, output: views[1] });
  expect(errorOf(await read('gone'))).toMatchObject({ code: 'feed_unavailable', retryable: true });
  expect(errorOf(await read('clok'))).toMatchObject({
    code: 'invalid_parameters',
    message: 'There is no feed "clok" (known: clock, old, gone)',
  });
  expect(errorOf(await read(5)).code).toBe('invalid_parameters');
});

function never(): Promise<JsonObject> {
  throw new Error('not called');
}
