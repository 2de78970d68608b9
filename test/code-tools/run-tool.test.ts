/** One attempt of a code tool (K2). */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/code-tools/define-tool.ts';
import type { ToolContext } from '../../src/code-tools/define-tool.ts';
import { jsonOf } from '../../src/code-tools/json-result.ts';
import { runTool } from '../../src/code-tools/run-tool.ts';
import type { ToolRun } from '../../src/code-tools/run-tool.ts';
import { limits } from '../../src/domain/limits.ts';

type Update = Parameters<ToolRun['progress']>[0];

function running(
  run: (ctx: ToolContext) => unknown,
  more: Partial<ToolRun> = {},
): { run: ToolRun; outcome: ReturnType<typeof runTool>; updates: Update[]; abort: AbortController } {
  const updates: Update[] = [];
  const abort = new AbortController();
  const tool = defineTool({ name: 't', description: 't', parameters: z.object({}), run: (_input, ctx) => run(ctx) });
  const settings: ToolRun = {
    parameters: {},
    idempotencyKey: 'ses_1/1/0/0',
    attempt: 1,
    session: { id: 'ses_1', agent: 'a', userId: null, namespace: null },
    secrets: {},
    bindings: {},
    signal: abort.signal,
    fetch: () => Promise.reject(new Error('not used')),
    progress: (update) => updates.push(update),
    ...more,
  };
  return { run: settings, outcome: runTool(tool, settings), updates, abort };
}

describe('[K2] a call of a code tool', () => {
  test('ends when its signal aborts, although the tool ignores it', async () => {
    const { outcome, abort } = running(() => new Promise(() => undefined));
    abort.abort(new Error('cancelled by the user'));
    expect(await outcome).toMatchObject({
      ok: false,
      error: { code: 'aborted', message: 'stopped: cancelled by the user' },
    });
  });

  test('does not begin after an abort', async () => {
    let calls = 0;
    const signal = AbortSignal.abort(new Error('too late'));
    expect(await running(() => (calls += 1), { signal }).outcome).toMatchObject({ error: { code: 'aborted' } });
    expect(calls).toBe(0);
  });

  test('ignores what the tool says and writes after its end', async () => {
    const { promise, resolve } = Promise.withResolvers<ToolContext>();
    const { outcome, updates } = running((ctx) => {
      resolve(ctx);
      return 1;
    });
    expect(await outcome).toEqual({ ok: true, output: 1 });
    const ctx = await promise;
    ctx.progress('late');
    ctx.artifacts.write('late.txt', 'x');
    expect(updates).toEqual([]);
  });

  test('bounds updates in number and length', async () => {
    const { outcome, updates } = running(({ progress }) => {
      progress('x'.repeat(limits.codeToolUpdateChars + 5));
      progress({ percent: 140 });
      progress({ percent: Number.NaN, message: 'y' });
      for (let n = 0; n < limits.codeToolUpdates; n += 1) progress('z');
    });
    await outcome;
    expect(updates[0]?.text.length).toBe(limits.codeToolUpdateChars + 1);
    expect(updates[1]).toEqual({ text: '100 %\n', percent: 100 });
    expect(updates[2]).toEqual({ text: 'y\n' });
    expect(updates.length).toBe(limits.codeToolUpdates);
  });

  test('returns artifacts beside the result', async () => {
    const write = ({ artifacts }: ToolContext): void => {
      artifacts.write('a.md', '# A', 'text/markdown');
      artifacts.write('b.bin', Uint8Array.of(1, 2));
    };
    const files = [
      { name: 'a.md', content_type: 'text/markdown', text: '# A' },
      { name: 'b.bin', base64: 'AQI=' },
    ];
    expect(await running(write).outcome).toEqual({ ok: true, output: { files } });
    const results: readonly [unknown, unknown][] = [
      [5, { result: 5, files }],
      [{ n: 5 }, { n: 5, files }],
      [{ files: [{ name: 'own' }] }, { files: [{ name: 'own' }, ...files] }],
    ];
    for (const [returned, output] of results) {
      const { outcome } = running((ctx) => {
        write(ctx);
        return returned;
      });
      expect(await outcome).toEqual({ ok: true, output });
    }
  });

  test('sends text bodies through the outbound rules', async () => {
    const sent: unknown[] = [];
    const fetch: ToolRun['fetch'] = async (url, { signal: _signal, ...init }) => {
      sent.push([url, init]);
      return new Response('ok');
    };
    const { outcome } = running(
      async (ctx) => {
        await ctx.fetch(new URL('https://a.example/'), { method: 'POST', body: new URLSearchParams({ q: 'x y' }) });
        await ctx.fetch('https://a.example/', { body: new Uint8Array(1) as never });
      },
      { fetch },
    );
    expect(await outcome).toMatchObject({
      error: { code: 'tool_failed', message: expect.stringContaining('text bodies') },
    });
    const headers = { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' };
    expect(sent).toEqual([['https://a.example/', { method: 'POST', headers, body: 'q=x+y', whenTooLarge: 'fail' }]]);
  });

  test.each([
    ['a text', () => 'thrown text', 'thrown text'],
    ['an object with a hostile code', () => Object.assign(new Error('m'), { name: 'ToolError', code: '<x>' }), 'm'],
    ['a very long message', () => new Error('e'.repeat(100_000)), 'e'.repeat(10)],
  ])('turns %s into a failure', async (_name, thrown, message) => {
    const { outcome } = running(() => {
      throw thrown();
    });
    const failed = await outcome;
    expect(failed).toMatchObject({ ok: false, error: { code: 'tool_failed', retryable: false } });
    const text = failed.ok ? '' : failed.error.message;
    expect(text).toContain(message);
    expect(text.length).toBeLessThan(limits.codeToolErrorChars + 100);
  });

  test.each([
    ['an object without a prototype', Object.create(null) as unknown],
    ['a proxy that throws', new Proxy({}, { getPrototypeOf: () => expect.fail('no') })],
  ])('turns %s into a failure, too', async (_name, thrown) => {
    const { outcome } = running(() => {
      throw thrown;
    });
    expect(await outcome).toMatchObject({ ok: false, error: { code: 'tool_failed', retryable: false } });
  });

  test.each([
    ['transforms', z.object({ u: z.string().transform((text) => new URL(text).host) }), 'Invalid URL'],
    [
      'refinements',
      z.object({
        u: z.string().refine(() => {
          throw null;
        }),
      }),
      'null',
    ],
  ])('parameters whose %s throw are refused before the tool runs', async (_name, parameters, message) => {
    let calls = 0;
    const tool = defineTool({ name: 't', description: 't', parameters, run: () => (calls += 1) });
    const outcome = await runTool(tool, { ...running(() => null).run, parameters: { u: 'nope' } });
    expect(outcome).toMatchObject({
      error: { code: 'invalid_parameters', beforeDispatch: true, message: expect.stringContaining(message) },
    });
    expect(calls).toBe(0);
  });

  test.each([
    ['an ArrayBuffer', 'a.bin', new ArrayBuffer(3)],
    ['a number', 'a.bin', 5],
    ['null', 'a.bin', null],
    ['words', 'a.bin', new Uint16Array(3)],
    ['no name', '', 'x'],
  ])('an artifact of %s is refused, and not stored as an empty one', async (_name, name, content) => {
    const { outcome } = running(({ artifacts }) => artifacts.write(name, content as never));
    expect(await outcome).toMatchObject({
      error: { code: 'tool_failed', message: expect.stringContaining('rtifact') },
    });
  });
});

describe('[K2] the result of a code tool as JSON', () => {
  class Point {
    readonly x = 1;
  }
  const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);

  test.each([
    [undefined, null],
    [{ a: undefined, b: [undefined] }, { b: [null] }],
    [new Date(0), '1970-01-01T00:00:00.000Z'],
    [new URL('https://a.example/x'), 'https://a.example/x'],
    ['\uD800', '\uFFFD'],
    [Object.create(null), {}],
    [{ toJSON: () => ({ a: 1 }) }, { a: 1 }],
    [{ __proto__: null, constructor: 'text' }, { constructor: 'text' }],
  ])('%s', (value, json) => {
    expect(jsonOf(value)).toEqual(json);
  });

  test.each([
    [() => 1, 'the result is a function'],
    [{ a: [Symbol('s')] }, 'the result.a[0] is a symbol'],
    [{ n: Number.NaN }, 'the result.n is NaN'],
    [[1, Number.POSITIVE_INFINITY], 'the result[1] is Infinity'],
    [{ p: new Point() }, 'the result.p is an instance of Point'],
    [new Set(), 'the result is an instance of Set'],
    [deep(limits.outcomeDepth + 1), `is nested more than ${limits.outcomeDepth} deep`],
    [{ toJSON: () => 1n }, 'the result is a bigint'],
  ])('refuses %s', (value, message) => {
    expect(() => jsonOf(value)).toThrow(message);
  });
});
