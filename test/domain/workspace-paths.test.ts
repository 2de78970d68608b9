/** The rule for paths: the Worker and the runner have their own functions, which agree (C7). */
import { describe, expect, test } from 'vitest';

import { limits as workerLimits } from '../../src/domain/limits.ts';
import { pathIssue as workerPathIssue } from '../../src/domain/workspace.ts';
import { limits } from '../../container-runner/limits.ts';
import { pathIssue } from '../../container-runner/workspace/path-rule.ts';

const long = (bytes: number): string => `${'d'.repeat(250)}/`.repeat(10).slice(0, bytes - 1) + 'x';

const ALLOWED = [
  'a',
  '.hidden',
  '-rf',
  'a/..b/c',
  'é/日本/🙂',
  'e\u0301',
  'it\'s $(id) `x` "y" ; | & <b>',
  'x'.repeat(255),
  'é'.repeat(127),
  long(512),
  'a/'.repeat(31) + 'b',
];

const REFUSED: readonly (readonly [path: string, why: RegExp])[] = [
  ['', /empty/],
  ['/', /absolute/],
  ['.', /segment "\."/],
  ['a/../b', /segment "\."/],
  ['a//b', /empty segment/],
  ['a/', /empty segment/],
  ['a\nb', /control/],
  ['a\0b', /control/],
  ['a\u0085', /control/],
  ['a\u2028b', /control/],
  ['a\\b', /backslash/],
  ['\uD800', /UTF-8/],
  ['a\uFFFD', /UTF-8/],
  ['x'.repeat(256), /longer than 255/],
  ['é'.repeat(128), /longer than 255/],
  [long(513), /longer than 512/],
  ['a/'.repeat(32) + 'b', /more than 32 levels/],
];

describe.each([
  ['the runner', pathIssue],
  ['the Worker', workerPathIssue],
])('[C7] %s', (_, issueOf) => {
  test.each(ALLOWED)('allows %j', (path) => {
    expect(issueOf(path)).toBeNull();
  });
  test.each(REFUSED)('refuses %j', (path, why) => {
    expect(issueOf(path)).toMatch(why);
    expect(pathIssue(path)).toBe(workerPathIssue(path));
  });
});

test('[C7] the Worker and the runner have the same limits, and the runner has room for what the Worker sends', () => {
  const shared = [
    'workspaceFiles',
    'workspaceFileBytes',
    'workspacePathBytes',
    'workspacePathDepth',
    'workspaceNameBytes',
    'workspaceSkippedShown',
    'workspaceTransferBytes',
  ] as const;
  for (const name of shared) expect([name, limits[name]]).toEqual([name, workerLimits[name]]);
  expect(limits.workspaceBytes).toBeGreaterThanOrEqual(workerLimits.workspaceObjectBytes);
  expect(limits.workspaceBodyBytes).toBeGreaterThanOrEqual(workerLimits.workspaceTransferBytes + 36 * 2_000);
  expect(limits.workspaceBodyBytes).toBeGreaterThanOrEqual(workerLimits.workspaceFileBytes + 36);
});
