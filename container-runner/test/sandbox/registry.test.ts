/** Selection of a job's sandbox: a requested level is never replaced by a weaker one (R2). */
import { expect, test } from 'vitest';

import { SandboxRegistry } from '../../sandbox/registry.ts';
import type { SandboxLevel } from '../../sandbox/sandbox.ts';
import { FakeSandbox } from '../support/fake-sandbox.ts';

const broken = { ok: false, reason: 'no namespaces here' } as const;
const works = (level: SandboxLevel): FakeSandbox => new FakeSandbox(level);
const fails = (level: SandboxLevel): FakeSandbox => new FakeSandbox(level, broken);
const none = new Map<SandboxLevel, string>();

test('[R2] the best available level is selected, whatever the order of the list', async () => {
  const registry = await SandboxRegistry.open([works('process'), works('wasm'), works('bubblewrap')], none, null);
  expect(registry.choose('python3', undefined).level).toBe('bubblewrap');
  const without = await SandboxRegistry.open([fails('bubblewrap'), works('wasm')], none, null);
  expect(without.choose('python3', undefined).level).toBe('wasm');
});

test('[R2] a requested level that is unavailable is refused with the reason', async () => {
  const registry = await SandboxRegistry.open([fails('bubblewrap'), works('wasm')], none, null);
  expect(() => registry.choose('python3', 'bubblewrap')).toThrow(/bubblewrap: no namespaces here/);
});

test('[R2] a requested level is not replaced by a stronger one either', async () => {
  const registry = await SandboxRegistry.open([works('bubblewrap'), works('wasm')], none, null);
  expect(registry.choose('shell', 'wasm').level).toBe('wasm');
});

test('[R2] a level set by the operator is always used', async () => {
  const registry = await SandboxRegistry.open([fails('bubblewrap'), works('wasm')], none, 'bubblewrap');
  expect(() => registry.choose('shell', undefined)).toThrow(/bubblewrap: no namespaces here/);
  expect(() => registry.choose('shell', 'wasm')).toThrow(/The operator allows only the sandbox bubblewrap/);
  expect(registry.report().active).toEqual({ python3: null, shell: null, node: null });
});

test('[R2] the report lists the active level, and why the others are unavailable', async () => {
  const absent = new Map<SandboxLevel, string>([['process', 'not allowed']]);
  const registry = await SandboxRegistry.open([fails('bubblewrap'), works('wasm')], absent, null);
  const report = registry.report();
  expect(report.active).toEqual({ python3: 'wasm', shell: 'wasm', node: 'wasm' });
  const bubblewrap = report.levels.find(({ level }) => level === 'bubblewrap');
  expect(bubblewrap?.missing.shell).toBe('no namespaces here');
  expect(report.levels.find(({ level }) => level === 'process')?.missing.shell).toBe('not allowed');
});
