import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockState } from '../../cli/system/state-lock.ts';

test('only one system can use a state folder, which is free again after its end', () => {
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
