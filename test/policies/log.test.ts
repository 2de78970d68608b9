/** Entries of the operator's log: one line each, bounded, without secrets; repeats are limited (X3, X5). */
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import { LOG_EVENTS } from '../../src/domain/log.ts';
import type { LogEvent, LogFields } from '../../src/domain/log.ts';
import { redactor } from '../../src/engine/session/redact.ts';
import { logEntry } from '../../src/policies/log-entry.ts';
import { LogRepeats } from '../../src/policies/log-repeats.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';

const SECRET = 'sk-very-secret';
const redact = redactor([SECRET]);
const always = { admit: () => 1 };

function entry(event: LogEvent, fields: LogFields): Record<string, unknown> & { readonly line: string } {
  const made = logEntry(event, fields, redact, always);
  if (made === null) throw new Error('it was not logged');
  return { ...(JSON.parse(made.line) as Record<string, unknown>), line: made.line };
}

describe('[X5] an entry', () => {
  test('is one JSON object with level and event first', () => {
    const { line, ...fields } = entry('run_failed', {
      session_id: 's',
      run_id: 'r',
      agent: 'a',
      code: 'c',
      message: 'm',
    });
    expect(line.startsWith('{"level":"error","event":"run_failed",')).toBe(true);
    expect(fields).toEqual({
      level: 'error',
      event: 'run_failed',
      session_id: 's',
      run_id: 'r',
      agent: 'a',
      code: 'c',
      message: 'm',
    });
  });

  test.each(Object.keys(LOG_EVENTS) as LogEvent[])(
    '%s is on one line, without secrets, whatever its fields',
    (event) => {
      const evil = `a\nb\u2028${SECRET}`;
      const { line } = entry(event, { message: evil, workflow: evil, path: evil, fault: new Error(evil) });
      expect(line).not.toMatch(/[\n\r]/);
      expect(line).not.toContain(SECRET);
      expect(line).toContain('[secret]');
    },
  );

  test('has fields and a stack of bounded length', () => {
    const fault = new Error('x'.repeat(100_000));
    const { line, message } = entry('internal_error', { workflow: 'y'.repeat(100_000), fault });
    expect(line.length).toBeLessThan(2 * limits.logFieldChars + limits.logStackChars + 500);
    expect(message).toBe(`${'x'.repeat(limits.logFieldChars - 1)}…`);
  });

  test('of an error with a code has the code and no stack', () => {
    const fault = new EngineError('internal', 'text');
    const { line } = entry('request_failed', { path: '/x', fault });
    expect(line).toBe('{"level":"error","event":"request_failed","message":"text","code":"internal","path":"/x"}');
  });

  test('of anything thrown is readable', () => {
    expect(entry('internal_error', { fault: 'just text' })['message']).toBe('just text');
    expect(entry('internal_error', { fault: new Error('boom') })['stack']).toContain('Error: boom');
  });
});

describe('[X5] repeats', () => {
  test('one entry per minute for equal fields, with the number of events', () => {
    const clock = new VirtualClock();
    const repeats = new LogRepeats(() => clock.now());
    const log = (fields: LogFields): Record<string, unknown> | null => {
      const made = logEntry('schedule_failed', fields, redact, repeats);
      return made === null ? null : (JSON.parse(made.line) as Record<string, unknown>);
    };
    const one = { workflow: 'w', code: 'c', message: 'first' };
    expect(log(one)).not.toHaveProperty('count');
    clock.advance(30_000);
    expect(log({ ...one, message: 'second' })).toBeNull();
    expect(log({ ...one, workflow: 'other' })).not.toBeNull();
    expect(log({ ...one, namespace: 'ann' })).not.toBeNull();
    clock.advance(limits.logRepeatMs - 30_000 - 1);
    expect(log(one)).toBeNull();
    clock.advance(1);
    expect(log({ ...one, message: 'fourth' })).toMatchObject({ message: 'fourth', count: 3 });
    clock.advance(limits.logRepeatMs);
    expect(log(one)).not.toHaveProperty('count');
  });

  test('of a failed run are all logged', () => {
    const repeats = new LogRepeats(() => 0);
    const fields = { run_id: 'r', message: 'm' };
    expect([1, 2, 3].map(() => logEntry('run_failed', fields, redact, repeats) !== null)).toEqual([true, true, true]);
  });

  test('remember a bounded number of keys', () => {
    const repeats = new LogRepeats(() => 0);
    for (let key = 0; key <= limits.logRepeats; key += 1) expect(repeats.admit(String(key))).toBe(1);
    expect([repeats.admit(String(limits.logRepeats)), repeats.admit('0')]).toEqual([null, 1]);
  });
});
