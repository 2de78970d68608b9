/**
 * Removes what Node's permission model leaves available, for a process that will run foreign code.
 *
 * The permission model blocks files, child processes, workers, addons and the inspector.
 * `--disallow-code-generation-from-strings` blocks `Function` and `eval`. The network, signals to other processes and
 * the ways to load a built-in module remain. Foreign code cannot bring its own JavaScript; it can only use objects that
 * it reaches. It is therefore sufficient that no reachable object leads to a module or a socket. The sandbox's `start`
 * adds the protection of the operating system.
 */
import dgram from 'node:dgram';
import dns from 'node:dns';
import module from 'node:module';
import net from 'node:net';
import os from 'node:os';
import v8 from 'node:v8';

const GLOBALS = [
  'fetch',
  'WebSocket',
  'EventSource',
  'XMLHttpRequest',
  'Request',
  'Response',
  'Headers',
  'FormData',
  'BroadcastChannel',
  'Worker',
  'navigator',
  'localStorage',
  'sessionStorage',
  'require',
];
const PROCESS = [
  'binding',
  '_getActiveHandles',
  '_getActiveRequests',
  '_linkedBinding',
  'dlopen',
  'getBuiltinModule',
  'kill',
  '_kill',
  '_debugProcess',
  '_debugEnd',
  '_startProfilerIdleNotifier',
  '_stopProfilerIdleNotifier',
  'execve',
  'report',
  'mainModule',
  'openStdin',
  'setuid',
  'setgid',
  'setgroups',
  'initgroups',
  'seteuid',
  'setegid',
  'loadEnvFile',
];

function denied(): never {
  throw new Error('Not available in this sandbox');
}

/** Replaces a member. Nothing references the original afterwards, so the member may stay writable. */
function seal(owner: object, name: string): void {
  if (name in owner) Object.defineProperty(owner, name, { value: denied, writable: true, configurable: true });
}

/** @param importers URL prefixes of modules that may still import, for code that loads its parts lazily */
export function lockDown(importers: readonly string[] = []): void {
  for (const name of GLOBALS) {
    if (name in globalThis)
      Object.defineProperty(globalThis, name, { value: undefined, writable: true, configurable: true });
  }
  for (const name of ['connect', 'listen']) {
    seal(net.Socket.prototype, name);
    seal(net.Server.prototype, name);
  }
  for (const name of ['bind', 'connect', 'send']) seal(dgram.Socket.prototype, name);
  for (const owner of [dns, dns.promises, dns.Resolver.prototype, dns.promises.Resolver.prototype]) {
    for (const name of Object.keys(owner)) {
      if (typeof Reflect.get(owner, name) === 'function') Reflect.set(owner, name, denied);
    }
  }
  // the handle of standard input has a type that also gives access to sockets
  const handle: unknown = Reflect.get(process.stdin, '_handle');
  if (typeof handle === 'object' && handle !== null) {
    const prototype = Object.getPrototypeOf(handle) as object;
    for (const name of ['connect', 'bind', 'listen', 'fchmod']) seal(prototype, name);
  }
  seal(os, 'setPriority');
  seal(v8, 'setFlagsFromString');
  seal(v8, 'startupSnapshot');
  module.registerHooks({
    resolve(specifier, context, next) {
      const trusted = importers.some((prefix) => context.parentURL?.startsWith(prefix) === true);
      return trusted ? next(specifier, context) : denied();
    },
  });
  if (importers.length === 0) Reflect.set(module, '_load', denied);
  for (const name of PROCESS) seal(process, name);
}
