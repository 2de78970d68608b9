/** Where workerd listens under `cortex dev` (X1). */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { privateArguments, workerdSockets } from '../../cli/system/private-workerd.ts';

const SOCKETS = { entry: '/state/entry', inspectorHost: '127.1.2.3' };

describe('[X1] the listeners of workerd', () => {
  test('are a Unix socket and an address that pages cannot find, and its other arguments stay', () => {
    const given = ['serve', '--binary', '--socket-addr=entry=127.0.0.1:0', '--external-addr=loopback=127.0.0.1:9', '-'];
    expect(privateArguments([...given, '--inspector-addr=127.0.0.1:0'], SOCKETS)).toEqual([
      'serve',
      '--binary',
      '--socket-addr=entry=unix:/state/entry',
      '--external-addr=loopback=127.0.0.1:9',
      '-',
      '--inspector-addr=127.1.2.3:0',
    ]);
  });

  test.each([
    '--debug-port=127.0.0.1:0',
    '--socket-addr=direct=127.0.0.1:0',
    '--socket-addr=entry=0.0.0.0:0',
    '--socket-fd=entry=4',
    '--inspector-addr=*:9229',
    '-i127.0.0.1:0',
    '-s',
  ])('with %s it does not start', (argument) => {
    expect(() => privateArguments(['serve', argument], SOCKETS)).toThrow(`has no guard: ${argument}`);
  });

  test.each([
    ['a folder', 'sockets', true],
    ['a folder with a path that is too long for a socket', 'long'.repeat(30), false],
  ])('%s is for this user alone', (_name, name, isUsed) => {
    const state = mkdtempSync(join(tmpdir(), 'cortex-sockets-'));
    onTestFinished(() => rmSync(state, { recursive: true, force: true }));
    const { entry, inspectorHost } = workerdSockets(join(state, name));
    const folder = dirname(entry);
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    expect(folder === join(state, name)).toBe(isUsed);
    expect(inspectorHost).toMatch(/^127(\.[1-9]\d{0,2}){3}$/);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(Buffer.byteLength(entry)).toBeLessThan(104);
  });
});
