import { describe, expect, test } from 'vitest';
import type { ModelDelta, ModelRequest } from '../../../src/domain/ports/model.ts';
import { sessionKit, settle, resultOf } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';
import { eventsOf } from '../../support/events.ts';

type Speech = (request: ModelRequest) => AsyncGenerator<ModelDelta>;

/** Streams until it is stopped; then reports its usage, or nothing. */
function endless(told: boolean): Speech {
  return async function* (request): AsyncGenerator<ModelDelta> {
    yield { type: 'reasoning', text: 'twelve chars' };
    yield { type: 'text', text: '<thought>sixteen chars' };
    await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
    if (!told) return;
    yield {
      type: 'usage',
      usage: { promptTokens: 77, completionTokens: 5, cachedTokens: 0, estimated: false, model: 'm' },
    };
    yield { type: 'finish', reason: 'abort' };
  };
}

async function cancelled(stream: Speech): Promise<{ kit: SessionKit; run: string }> {
  const kit = await sessionKit({ stream });
  const run = await send(kit, 'go');
  await settle();
  await kit.session.cancel('enough');
  await kit.session.ended(run.run);
  await kit.settled();
  return { kit, run: run.runId };
}

describe('[L6] the usage of a cancelled generation', () => {
  test.each([true, false])(
    'is reported once, before the end of the run (reported by the endpoint: %s)',
    async (told) => {
      const { kit, run } = await cancelled(endless(told));
      const types = kit.events.map(({ type }) => type);
      expect(types.filter((type) => type === 'usage')).toHaveLength(1);
      expect(types.indexOf('usage')).toBeLessThan(types.indexOf('agent_cancelled'));
      const { usage } = await resultOf(kit.session, kit.session.run(run));
      // "twelve chars" and "<thought>sixteen chars" have 34 bytes
      expect(usage).toMatchObject({ model_calls: 1, completion_tokens: 9, estimated: true });
      expect(Number(usage['prompt_tokens'])).toBeGreaterThan(100);
      expect(kit.events.find(({ type }) => type === 'usage')?.data).toMatchObject({ estimated: true });
      expect(eventsOf(kit.events, 'agent_cancelled')[0]?.data.usage).toMatchObject({
        model_calls: 1,
        completion_tokens: 9,
      });
    },
  );

  test('is not counted twice if the call has reported it', async () => {
    const { kit } = await cancelled(async function* (request): AsyncGenerator<ModelDelta> {
      yield { type: 'text', text: '<thought>hm' };
      yield {
        type: 'usage',
        usage: { promptTokens: 7, completionTokens: 3, cachedTokens: 0, estimated: false, model: 'm' },
      };
      await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
    });
    expect(eventsOf(kit.events, 'usage').map(({ data }) => data.prompt_tokens)).toEqual([7]);
  });
});

test('[L6] a generation stopped by the budget of seconds reports its usage', async () => {
  let calls = 0;
  const kit = await sessionKit({
    agent: (agent) => ({ ...agent, budgets: { ...agent.budgets, seconds: 10 } }),
    stream: async function* (request): AsyncGenerator<ModelDelta> {
      calls += 1;
      if (calls === 1) yield* endless(true)(request);
      else {
        yield { type: 'text', text: '<response final="true">done</response>' };
        yield { type: 'finish', reason: 'stop' };
      }
    },
  });
  const run = await send(kit, 'go');
  await settle();
  kit.clock.advance(10_000);
  await kit.session.ended(run.run);
  const used = eventsOf(kit.events, 'usage').map(({ data }) => data.prompt_tokens);
  expect(used).toEqual([77]);
});
