/** The reference server `@modelcontextprotocol/server-everything`, unmodified, over HTTP (protocol 2025-11-25). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PACKAGE_ROOT } from '../../../cli/project/folders.ts';

export interface EverythingServer extends AsyncDisposable {
  readonly host: string;
  readonly url: string;
}

/** It listens on all interfaces; loaded before it, this keeps it on the loopback interface. */
const ON_LOOPBACK = `data:text/javascript,${encodeURIComponent(
  "import net from 'node:net'; const { listen } = net.Server.prototype; net.Server.prototype.listen = function (port, done) { return listen.call(this, Number(port), '127.0.0.1', done); };",
)}`;

export async function startEverythingServer(port: number): Promise<EverythingServer> {
  const main = join(PACKAGE_ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
  const child = spawn(process.execPath, ['--import', ON_LOOPBACK, main, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  const ready = Promise.withResolvers<void>();
  createInterface(child.stderr).on('line', (line) => {
    if (line.includes('listening')) ready.resolve();
  });
  void exited.then(() => ready.reject(new Error('the server has ended')));
  await ready.promise;
  const host = `127.0.0.1:${port}`;
  return {
    host,
    url: `http://${host}/mcp`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
