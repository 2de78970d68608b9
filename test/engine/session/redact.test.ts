import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { redactJson } from '../../../src/bounded/redact-json.ts';
import type { ActionOutcome, ActionType } from '../../../src/domain/action.ts';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { lazyRedactor, redactingExecutors, redactor } from '../../../src/engine/session/redact.ts';
import type { ActionCall, ActionContext, Executor } from '../../../src/executors/executor.ts';
import { runText, settle, sessionKit } from '../../support/session-kit.ts';
import { createOptionalTables } from '../../support/optional-tables.ts';

const SECRET = 'tok-"5\\é-very-secret';

test('[X3] a secret is redacted in plain and JSON form; short words stay', () => {
  const redact = redactor([SECRET, 'abc']);
  expect(redact(`a ${SECRET} b abc`)).toBe('a [secret] b abc');
  expect(redact(JSON.stringify({ key: SECRET }))).toBe('{"key":"[secret]"}');
});

test('[X3] values without secrets stay the same object; keys are redacted too', () => {
  const redact = redactor([SECRET]);
  const value = { a: [1, null, 'x', { b: true }] };
  expect(redactJson(value, redact)).toBe(value);
  expect(redactJson({ [SECRET]: [{ deep: `<${SECRET}>` }] }, redact)).toEqual({ '[secret]': [{ deep: '<[secret]>' }] });
  const hostile = JSON.parse(`{"__proto__": "${'x'}", "a": ${JSON.stringify(SECRET)}}`) as never;
  expect(JSON.stringify(redactJson(hostile, redact))).toBe('{"__proto__":"x","a":"[secret]"}');
});

describe('[X3] the output of an action', () => {
  async function everythingOf(fail: 'no' | 'value' | 'throw'): Promise<string> {
    const kit = await sessionKit({
      secrets: [SECRET],
      executors: {
        tool: async (_call, { progress }) => {
          for (const piece of [`so far: ${SECRET.slice(0, 5)}`, SECRET.slice(5, 9), `${SECRET.slice(9)}, done`]) {
            progress({ stream: 'stdout', text: piece });
          }
          progress({ stream: 'stderr', text: 'ends with tok-' });
          progress({ event: { type: 'x', nested: [SECRET] } });
          if (fail === 'throw') throw new Error(`refused: ${SECRET}`);
          if (fail === 'value') return { ok: false, error: { code: 'x', message: `no ${SECRET}`, retryable: false } };
          return { ok: true, output: { header: `Bearer ${SECRET}`, raw: JSON.stringify({ k: SECRET }) } };
        },
      },
    });
    const result = await runText(kit, '<action name="echo" id="a">{}</action><response final="true">got $a</response>');
    await settle();
    createOptionalTables(kit.sql);
    const stored = ['events', 'inputs', 'runs', 'chunks'].map((name) => kit.sql.exec(`SELECT * FROM ${name}`));
    const everything = JSON.stringify([kit.events, result, stored]);
    const progress = kit.events.flatMap(({ type, data }) => (type === 'progress' ? [data['text'] ?? ''] : []));
    if (fail === 'no') expect(progress.join('')).toContain('so far: [secret], done');
    if (fail === 'no') expect(progress.join('')).toContain('ends with tok-');
    return everything;
  }

  test.each(['no', 'value', 'throw'] as const)(
    'contains no secrets in events, results and rows (failing: %s)',
    async (fail) => {
      const everything = await everythingOf(fail);
      expect(everything).toContain('[secret]');
      expect(everything).not.toContain('very-secret');
    },
  );
});

describe('[X3] executors', () => {
  const redact = redactor([SECRET]);
  const call = {} as ActionCall;
  type Work = (call: ActionCall, context: ActionContext) => Promise<ActionOutcome>;

  /** The executor's outcome and its published live output. */
  async function through(work: Work, as: 'execute' | 'recover'): Promise<{ outcome: unknown; shown: unknown[] }> {
    const shown: unknown[] = [];
    const context = { session: 's', progress: (data: unknown) => shown.push(data) } as unknown as ActionContext;
    const given = { execute: work, recover: work } as Executor;
    const { tool } = redactingExecutors({ tool: given } as unknown as Record<ActionType, Executor>, redact);
    const ended = as === 'execute' ? tool.execute(call, context) : tool.recover?.(call, context);
    return { outcome: await ended?.catch((fault: unknown) => String(fault)), shown };
  }

  test.each(['execute', 'recover'] as const)('%s returns its outcome and live output without secrets', async (as) => {
    const spent = { modelCalls: 1, tokens: 2, cost: 3, actions: 4 };
    const done = await through(async (_call, { progress, session }) => {
      progress({ stream: 'stdout', text: `${session}: ${SECRET} is ${SECRET.slice(0, 3)}` });
      progress({ stream: 'stderr', text: 'x\n' });
      progress({ stream: 'stdout', text: `${SECRET.slice(3)}!\nnext` });
      progress({ text: 'of no stream' });
      return { ok: true, output: [SECRET], spent };
    }, as);
    expect(done.outcome).toEqual({ ok: true, output: ['[secret]'], spent });
    const textOf = (stream?: string): string =>
      (done.shown as { stream?: string; text: string }[])
        .filter((data) => data.stream === stream)
        .map(({ text }) => text)
        .join('');
    expect(textOf('stdout')).toBe('s: [secret] is [secret]!\nnext');
    expect([textOf('stderr'), textOf()]).toEqual(['x\n', 'of no stream']);
    const error = { code: 'x', message: `no ${SECRET}`, retryable: true };
    const failed = await through(async () => ({ ok: false, error, spent }), as);
    expect(failed.outcome).toEqual({ ok: false, error: { ...error, message: 'no [secret]' }, spent });
  });

  test('an exception of execute becomes a failure; an exception of recover is passed on', async () => {
    const work = async (_call: ActionCall, { progress }: ActionContext): Promise<never> => {
      progress({ text: 'so far' });
      throw new Error(`refused: ${SECRET}`);
    };
    const thrown = await through(work, 'execute');
    expect(thrown).toEqual({
      outcome: {
        ok: false,
        error: { code: 'executor_fault', message: 'refused: [secret]', retryable: false },
      },
      shown: [{ text: 'so far' }],
    });
    expect(await through(work, 'recover')).toMatchObject({ outcome: expect.stringContaining('refused') as string });
  });

  test('an output that is nested too deeply has its own code', async () => {
    const deep = JSON.parse(`${'['.repeat(limits.outcomeDepth + 1)}${']'.repeat(limits.outcomeDepth + 1)}`) as Json;
    expect((await through(async () => ({ ok: true, output: deep }), 'execute')).outcome).toEqual({
      ok: false,
      error: {
        code: 'output_too_deep',
        message: `the output is nested too deeply (allowed: ${limits.outcomeDepth} levels)`,
        retryable: false,
      },
    });
  });

  test('recover exists only if the executor has it, and passes null on', async () => {
    const execute: Work = async () => ({ ok: true, output: null });
    const { tool, python } = redactingExecutors(
      { tool: { execute }, python: { execute, recover: async () => null } } as unknown as Record<ActionType, Executor>,
      redact,
    );
    expect(tool).not.toHaveProperty('recover');
    const context = { progress: () => undefined } as unknown as ActionContext;
    expect(await python.recover?.(call, context)).toBeNull();
  });
});

test('[X3] secrets from the minimum length are redacted, longer ones first, and read once on demand', () => {
  const least = 's'.repeat(limits.secretChars);
  expect(redactor([least.slice(1)])(least.slice(1))).toBe(least.slice(1));
  expect(redactor([least])(`<${least}>`)).toBe('<[secret]>');
  expect(redactor(['inside', 'the inside of it'])('the inside of it, inside')).toBe('[secret], [secret]');
  expect(redactor([]).openChars('nothing waits')).toBe(0);
  let reads = 0;
  const lazy = lazyRedactor(() => {
    reads += 1;
    return [SECRET];
  });
  expect(reads).toBe(0);
  expect([lazy(SECRET), lazy('x'), lazy.openChars('ab')]).toEqual(['[secret]', 'x', 2]);
  expect(reads).toBe(1);
});

test('[X3] a carriage return or a line feed ends a line', () => {
  const redact = redactor([SECRET]);
  expect([redact.openChars('a\rbc'), redact.openChars('a\nbcd'), redact.openChars('a\nb\rc')]).toEqual([2, 3, 1]);
  expect(redactor([`two\rlines`]).openChars('a\r')).toBe(2);
});

test('[X3] the amount of delayed live output reveals nothing about the secrets', () => {
  const redact = redactor(['sk-abcdefgh', 'other-secret-0']);
  for (const [guess, wrong] of [
    ['s', 'x'],
    ['sk-abc', 'sk-abd'],
    ['so far: sk-abcdefg', 'so far: sk-abcdefx'],
    ['done\nsk-a', 'done\nsk-b'],
  ] as const) {
    expect(redact.openChars(guess)).toBe(redact.openChars(wrong));
  }
  // whole lines are never delayed
  expect(redact.openChars('a line\n')).toBe(0);
  expect(redact.openChars('50 %\r')).toBe(0);
  expect(redact.openChars('a line\nrest')).toBe(4);
  expect(redact.openChars('x'.repeat(100))).toBe('other-secret-0'.length - 1);
  // a secret of several lines can be cut at a line break
  expect(redactor(['-----BEGIN\nabc\n-----END']).openChars('-----BEGIN\n')).toBe(11);
});

test('[X3] live output cut at any position shows no secret, neither in a piece nor in the whole', () => {
  const secrets = ['secret-one', 'one-of-them-secret', 'aaaaaab'];
  const redact = redactor(secrets);
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('secret-', 'one', '-of-them-secret', 'aaa', 'aaab', 'b', ' ', 's'), { maxLength: 20 }),
      fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 60 }),
      (words, cuts) => {
        const text = words.join('');
        let held = '';
        let shown = '';
        let at = 0;
        for (const size of [...cuts, text.length]) {
          const all = redact(held + text.slice(at, at + size));
          at += size;
          const open = redact.openChars(all);
          held = open === 0 ? '' : all.slice(-open);
          shown += all.slice(0, all.length - open);
        }
        shown += held;
        for (const secret of secrets) expect(shown).not.toContain(secret);
      },
    ),
    { numRuns: 300 },
  );
});
