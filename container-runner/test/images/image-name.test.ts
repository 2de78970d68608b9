/** Valid image names, and the operator's patterns for allowed images. */
import { describe, expect, test } from 'vitest';

import { imageReference, isAllowed } from '../../images/image-name.ts';

describe('names', () => {
  test.each([
    'busybox',
    'python:3.12-slim',
    'library/python:3.12',
    'registry.example:5000/team/a_b/c--d:1.0',
    `alpine@sha256:${'a'.repeat(64)}`,
  ])('[R1] %s is valid', (name) => {
    expect(imageReference.safeParse(name).success).toBe(true);
  });

  test.each([
    '',
    'Foo Bar',
    'UPPER',
    '../../etc',
    '/abs',
    'a/../b',
    'a//b',
    '$(id)',
    'a;id',
    'a\nb',
    '--rm',
    'a:',
    'a:b:c/d:e',
    'a@sha256:1',
    'x'.repeat(300),
  ])('[R1] %j is invalid', (name) => {
    expect(imageReference.safeParse(name).success).toBe(false);
  });

  test.each(['a-', 'a.', 'a__', 'a/', '1.1-'])('%s repeated many times is checked without backtracking', (filler) => {
    // A pattern that backtracks would not finish, so the test would time out.
    expect(imageReference.safeParse(`${filler.repeat(60)}!`).success).toBe(false);
  });
});

describe('patterns', () => {
  test.each([
    ['python:3.12', ['python:*'], true],
    ['python', ['python:*'], true],
    ['python', ['python'], true],
    ['python:3.12', ['python'], false],
    ['evil/python:3.12', ['python:*'], false],
    ['pythonx', ['python.'], false],
    ['team/a:1', ['other/*', 'team/*'], true],
    ['anything/at:all', ['*'], true],
    ['python', [], false],
  ] as const)('%s with the patterns %j: %s', (name, patterns, allowed) => {
    expect(isAllowed(name, patterns)).toBe(allowed);
  });
});
