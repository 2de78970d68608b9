/** Escape attempts from the embedded sandbox: the reach of Python's bridge to JavaScript (R2). */
import fs from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { startRunner, type TestRunner } from '../support/test-runner.ts';

let runner: TestRunner;
let directory: string;
let listener: net.Server;
let connections = 0;
let port = 0;

beforeAll(async () => {
  directory = await fs.mkdtemp(path.join(os.tmpdir(), 'escape-'));
  await fs.writeFile(path.join(directory, 'secret'), 'hunter2');
  listener = net.createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => {
    listener.listen(0, '127.0.0.1', resolve);
  });
  port = (listener.address() as net.AddressInfo).port;
  runner = await startRunner({ sandbox: 'wasm', warm: 2 });
});
afterAll(async () => {
  await runner.close();
  listener.close();
  await fs.rm(directory, { recursive: true, force: true });
});

async function attack(code: string): Promise<string> {
  const whole = `${code}\nprint("looked")`;
  const ran = await runner.run({ kind: 'python', code: whole, limits: { timeout_ms: 120_000 } });
  const { stdout, stderr } = ran;
  expect(ran).toMatchObject({ end: 'exited', exitCode: 0, stdout: expect.stringMatching(/looked\n$/) });
  expect(connections).toBe(0);
  return stdout + stderr;
}

test('[R2] no constructor compiles code from a string', async () => {
  const said = await attack(`
import pyodide_js
Function = pyodide_js.runPython.constructor
for make in (Function, Function.constructor, (lambda s: pyodide_js._module.constructor.constructor(s))):
    try: print("made", make("return process")())
    except Exception as fault: print("no", str(fault)[:60])
try:
    from pyodide.code import run_js
    print("made", run_js("process.pid"))
except Exception as fault: print(fault)
`);
  expect(said).not.toContain('made');
  expect(said.match(/Code generation from strings disallowed/g)?.length).toBe(3);
  expect(said).toContain("cannot import name 'eval'");
});

test('[R2] the globals of the process are not accessible', async () => {
  const said = await attack(`
import js, pyodide_js
for owner in (js, pyodide_js, pyodide_js._module, pyodide_js._api, pyodide_js.FS):
    for name in ("process", "globalThis", "require", "fetch", "WebSocket", "eval", "Function", "import"):
        if getattr(owner, name, None) is not None: print("found", name, "in", owner)
`);
  expect(said).not.toContain('found');
});

test('[R2] the host file system cannot be mounted or read', async () => {
  const secret = path.join(directory, 'secret');
  const said = await attack(`
import os, pyodide_js
FS = pyodide_js.FS
for root in ("/", "${directory}"):
    try:
        FS.mkdirTree("/host" + root); FS.mount(FS.filesystems.NODEFS, {"root": root}, "/host" + root)
        print("listed", os.listdir("/host" + root))
    except Exception as fault: print("no", type(fault).__name__)
try: pyodide_js.mountNodeFS("/etc2", "${directory}"); print("listed", os.listdir("/etc2"))
except Exception as fault: print("no", type(fault).__name__)
for name in ("${secret}", "/host${secret}", "/etc2/secret", "/etc/passwd"):
    try: print("read", open(name).read())
    except Exception as fault: print("no", type(fault).__name__)
`);
  expect(said).not.toContain('hunter2');
  expect(said).not.toMatch(/listed \[.+\]/);
  expect(said).not.toContain('root:');
});

test('[R2] the interpreter has no access to the network', async () => {
  const said = await attack(`
import asyncio, pyodide_js, socket, urllib.request
async def main():
    try: await pyodide_js.loadPackage("http://127.0.0.1:${port}/x-1.0-py3-none-any.whl")
    except Exception as fault: print("no", type(fault).__name__)
    try:
        from pyodide.http import pyfetch
        print("reached", await pyfetch("http://127.0.0.1:${port}/"))
    except Exception as fault: print("no", type(fault).__name__)
asyncio.run(main())
try:
    link = socket.create_connection(("127.0.0.1", ${port}), timeout=1); link.sendall(b"x"); print("got", link.recv(1))
except Exception as fault: print("no", type(fault).__name__)
try: print("reached", urllib.request.urlopen("http://127.0.0.1:${port}/", timeout=1).read())
except Exception as fault: print("no", type(fault).__name__)
`);
  expect(said).not.toContain('reached');
  expect(connections).toBe(0);
});

test('[R2] the interpreter has no processes, threads or native libraries', async () => {
  const tries = {
    fork: 'os.fork()',
    exec: 'os.execv("/bin/sh", ["sh"])',
    popen: '__import__("subprocess").run(["id"])',
    thread: '__import__("threading").Thread(target=print).start()',
    kill: `os.kill(${process.pid}, 9)`,
    library: '__import__("ctypes").CDLL("libc.so.6")',
  };
  const said = await attack(`
import os
for name, attempt in {${Object.entries(tries)
    .map(([name, code]) => `"${name}": lambda: ${code}`)
    .join(', ')}}.items():
    try: print(name, "gave", attempt())
    except Exception: print("no", name)
`);
  expect(said.match(/no \w+/g)).toEqual(Object.keys(tries).map((name) => `no ${name}`));
  // it ends the interpreter
  const { stdout } = await runner.run({ kind: 'python', code: 'import os; print(os.system("id"))' });
  expect(stdout).not.toMatch(/uid=|^0$/m);
});

test('[R2] memory outside the interpreter is limited too', async () => {
  const code = `
import pyodide_js
bytes_of = pyodide_js._module.HEAPU8.constructor
held = []
try:
    for _ in range(64):
        block = bytes_of.new(256 * 1024 * 1024); block.fill(1); held.append(block)
    print("took all")
except Exception as fault: print("no")`;
  const { end, stdout } = await runner.run({ kind: 'python', code, limits: { timeout_ms: 120_000 } });
  if (process.platform === 'linux') expect([end, stdout]).toEqual(end === 'oom' ? ['oom', ''] : ['exited', 'no\n']);
});

test('[R2] stack traces expose no objects of the host', async () => {
  const said = await attack(`
import pyodide_js
from pyodide.ffi import create_proxy
def prepare(error, sites):
    for site in sites:
        print("site")
        for name in ("getThis", "getFunction"):
            found = getattr(site, name, None)
            value = found() if found else None
            if value is not None and getattr(value, "process", None) is not None: print("found", name)
    return "x"
# the first error has the constructors, and the stack of the second one is prepared by them
for attempt in range(2):
    try: pyodide_js.runPython.constructor("x")
    except Exception as fault:
        error = getattr(fault, "js_error", fault)
        print(str(error.stack)[:5])
        for kind in (error.constructor, getattr(error.constructor, "__proto__")): kind.prepareStackTrace = create_proxy(prepare)
`);
  expect(said).toMatch(/EvalE\n(site\n)+x\nlooked\n$/);
  expect(said).not.toContain('found');
});

test('[R2] the shell has no access to the host', async () => {
  const secret = path.join(directory, 'secret');
  const { stdout, stderr } = await runner.run({
    kind: 'shell',
    code: `cat ${secret}; ls ${directory}; curl http://127.0.0.1:${port}/; node -e 1; python3 -c 'print(1)'; js-exec -c 'process.exit()'; sqlite3 :memory: 'select 1'; cat /proc/1/environ; exec /bin/sh; echo "$(<${secret})"`,
  });
  expect(stdout + stderr).not.toContain('hunter2');
  expect(connections).toBe(0);
});
