import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { redactJson, redactor } from '../../../src/engine/session/redact.ts';
import { runText, settle, sessionKit } from '../../support/session-kit.ts';

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

test('[J6] an output nested too deeply fails its action, and the run continues', async () => {
  const deep = (levels: number): Json => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`) as Json;
  const kit = await sessionKit({
    executors: {
      tool: ({ action }) =>
        Promise.resolve({ ok: true, output: deep(action.id === 'a' ? 50_000 : limits.outcomeDepth) }),
    },
  });
  const text =
    '<action name="echo" id="a">{}</action><action name="echo" id="b">{}</action><response final="true">b: $b</response>';
  const result = await runText(kit, text);
  expect(JSON.stringify(result)).toContain('output_too_deep');
  expect(JSON.stringify(result)).toContain('[[[[');
});
