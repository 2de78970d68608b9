import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockState } from '../../scripts/system/state-lock.ts';

test('a state folder has one system at a time, and is free again behind it', () => {
  const parent = mkdtempSync(join(tmpdir(), 'cortex-lock-'));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  const folder = join(parent, 'state');
  const first = lockState(folder);
  expect(first).not.toBeNull();
  expect(lockState(folder)).toBeNull();
  const other = lockState(join(parent, 'other'));
  expect(other).not.toBeNull();
  first?.();
  const second = lockState(folder);
  expect(second).not.toBeNull();
  second?.();
  other?.();
});
