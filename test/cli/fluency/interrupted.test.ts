/** Measurements that end early: the endpoint fails, or Ctrl-C. */
import { describe, expect, test } from 'vitest';
import { measureModel } from '../../../cli/fluency/run/measure-model.ts';
import { platformClock } from '../../../src/durable/platform.ts';
import { createModel } from '../../../src/llm/routing/select.ts';
import { against } from './command-kit.ts';
import { startModel } from './endpoint.ts';
import { agents, dataset } from './kit.ts';
import { perfect } from './models.ts';

const FEW = ['--tasks', 'two-stations,diamond,meter-that-fails-once'];

describe('[O4] an endpoint that fails after the first requests', () => {
  const args = ['--forms', 'full', '--concurrency', '1'];

  test('is not asked any more after five runs; exit code 3', async () => {
    const options = { refuses: '*', refusesWith: 403 };
    const { out, err, code } = await against(perfect, args, options);
    expect(code).toBe(3);
    expect(out).toContain(
      `\n${dataset.tasks.length - 5} runs did not start: the endpoint has failed several runs in a row.`,
    );
    expect(out).not.toContain('use another model');
    expect(err).toMatch(/\nthe endpoint failed, so the measurement is not complete: .*this is not allowed/);
    const json = await against(perfect, [...args, '--json'], options);
    expect(JSON.parse(json.out)).toMatchObject({
      end: 'endpoint',
      endpoint_failure: expect.stringContaining('this is not allowed'),
      runs: [],
    });
  });

  test('also if there are fewer runs', async () => {
    const { out, code } = await against(perfect, [...args, ...FEW], { refuses: '*', refusesWith: 403 });
    expect([code, out]).toEqual([3, expect.stringContaining('every run failed: ')]);
  });
});

test('[O4] a form without a run after Ctrl-C: not the budget is the reason', async () => {
  const stop = new AbortController();
  await using server = await startModel(dataset, perfect);
  const { provider } = createModel(
    { provider: null, baseUrl: server.baseUrl, apiKey: null, model: 'scripted' },
    { clock: platformClock, random: () => 0 },
  );
  const report = await measureModel(
    {
      dataset,
      tasks: dataset.tasks,
      forms: ['full'],
      repeat: 1,
      concurrency: 1,
      agents,
      grammar: null,
      budget: { tokens: null, cost: null },
      priceOf: () => null,
    },
    { model: 'scripted', endpoint: server.baseUrl },
    {
      clock: platformClock,
      random: () => 0,
      model: provider,
      signal: stop.signal,
      // The announcement, before the first run.
      tell: () => stop.abort(),
      done: () => undefined,
    },
  );
  expect(report).toMatchObject({
    end: 'stopped',
    endpointFailure: null,
    forms: [{ unavailable: 'the command was stopped before its first run' }],
  });
});
