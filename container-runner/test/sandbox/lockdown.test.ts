/** The remaining abilities of a locked-down process that has Node's own objects, which foreign code must not get (R2). */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { expect, test } from 'vitest';

const LOCKDOWN = new URL('../../guest/lockdown.ts', import.meta.url);

/** References everything before the lockdown, except what foreign code would have to request later. */
const SCRIPT = `
import net from 'node:net'; import dgram from 'node:dgram'; import dns from 'node:dns'; import module from 'node:module';
import { lockDown } from ${JSON.stringify(LOCKDOWN.href)};
const require = module.createRequire(import.meta.url);
lockDown();
const tries = {
  fetch: () => fetch('http://127.0.0.1:1'),
  websocket: () => new WebSocket('ws://127.0.0.1:1'),
  connect: () => net.connect(1, '127.0.0.1'),
  unix: () => net.connect('/var/run/docker.sock'),
  handle: () => process.stdin._handle.connect({}, '/var/run/docker.sock'),
  listen: () => net.createServer().listen(0),
  udp: () => dgram.createSocket('udp4').send('x', 1, '127.0.0.1'),
  dns: () => dns.lookup('localhost', () => {}),
  resolve: () => dns.promises.resolve4('localhost'),
  kill: () => process.kill(process.ppid, 0),
  debug: () => process._debugProcess(process.ppid),
  binding: () => process.binding('tcp_wrap'),
  builtin: () => process.getBuiltinModule('node:net'),
  require: () => require('node:net'),
  import: () => import('node:net'),
  importFile: () => import('file:///etc/hostname'),
  execve: () => process.execve('/bin/sh', ['sh']),
  dlopen: () => process.dlopen({}, '/lib/libc.so.6'),
  handles: () => process._getActiveHandles(),
};
const open = [];
for (const [name, attempt] of Object.entries(tries)) {
  try { await attempt(); open.push(name); } catch {}
}
console.log(JSON.stringify(open));
process.exit(0);
`;

test('[R2] network, signals, modules and handles are not accessible', async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      '--permission',
      `--allow-fs-read=${fileURLToPath(new URL('..', LOCKDOWN))}`,
      '--disallow-code-generation-from-strings',
      '--no-warnings',
      '--input-type=module',
      '--eval',
      SCRIPT,
    ],
    { env: {} },
  );
  expect(JSON.parse(stdout)).toEqual([]);
});
