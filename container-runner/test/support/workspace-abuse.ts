/**
 * Hostile programs with a workspace (C7), one table for every level that promises isolation. A row without a case for a level
 * gives the reason.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { limits } from '../../limits.ts';
import { expectNothingLeft, type IdleState, waitUntilStill } from './leftovers.ts';
import { reasonToSkip } from './levels.ts';
import { MemoryReceiver, type Ran, type Wish, WorkspaceKit } from './workspace-programs.ts';

type Level = 'docker' | 'bubblewrap' | 'wasm';
interface Kit {
  readonly level: Level;
  python(code: string, wish?: Wish): Promise<Ran>;
  shell(code: string, wish?: Wish): Promise<Ran>;
}
type Case = (kit: Kit) => Promise<void>;
type Row = Readonly<Record<Level, Case | string>>;

const everywhere = (body: Case): Row => ({ docker: body, bubblewrap: body, wasm: body });
const onSystem = (body: Case, wasm: string): Row => ({ docker: body, bubblewrap: body, wasm });
const NO_PROCESSES = 'programs there have no processes';

const GIVEN = { 'a.txt': 'hello' };
/** The targets of links; nothing of them may be read. */
const OUTSIDE = ['/etc/passwd', '/etc', '..', '/', '/proc/1/root', '/proc/self/environ', '/cortex', '/workspace', '.'];
/** Kinds by path. */
const kinds = ({ receiver }: Ran): Record<string, string> =>
  Object.fromEntries([...receiver.entries].map(([path, { kind }]) => [path, kind]));

const ROWS: Readonly<Record<string, Row>> = {
  'symbolic links to everything': everywhere(async ({ python, shell }) => {
    const code = `
import os
for number, target in enumerate(${JSON.stringify(OUTSIDE)}): os.symlink(target, f"link{number}")
os.mkdir("real")
open("real/x", "w").write("1")
os.symlink("real", "same")`;
    const commands = OUTSIDE.map((target, number) => `ln -s ${target} link${number}`).join('; ');
    for (const ran of [await python(code), await shell(`${commands}; mkdir real; echo 1 > real/x; ln -s real same`)]) {
      expect(kinds(ran)).toEqual({
        ...Object.fromEntries(OUTSIDE.map((_, number) => [`link${number}`, 'symlink'])),
        real: 'folder',
        'real/x': 'file',
        same: 'symlink',
      });
      expect(ran.receiver.completed).toBe(1);
    }
  }),
  'a file that is exchanged for a link': everywhere(async ({ python, shell }) => {
    const code = 'import os; os.remove("a.txt"); os.symlink("/etc/passwd", "a.txt")';
    for (const ran of [
      await python(code, { given: GIVEN }),
      await shell('rm a.txt; ln -s /etc/passwd a.txt', { given: GIVEN }),
    ]) {
      expect(kinds(ran)).toEqual({ 'a.txt': 'symlink' });
    }
  }),
  'hard links': {
    docker: async ({ python, shell }) =>
      await hardLinks([await python(HARD, { given: GIVEN }), await shell(LN, { given: GIVEN })]),
    bubblewrap: async ({ python, shell }) =>
      await hardLinks([await python(HARD, { given: GIVEN }), await shell(LN, { given: GIVEN })]),
    wasm: async ({ shell }) => await hardLinks([await shell(LN, { given: GIVEN })]),
  },
  'hard links to what is outside': onSystem(async ({ python, shell }) => {
    const code = `
import os
for target in ("/etc/passwd", "/cortex/program.py", "/proc/self/status", "/usr/bin/env"):
    try: os.link(target, "hard"); print("linked", target)
    except OSError: pass`;
    for (const ran of [await python(code), await shell('ln /etc/passwd x; ln /cortex/stdin y; ln /bin/sh z; true')]) {
      expect({ stdout: ran.stdout, kinds: kinds(ran) }).toEqual({ stdout: '', kinds: {} });
    }
  }, 'its files are virtual'),
  'devices, pipes and sockets': onSystem(async ({ python }) => {
    const code = `
import os, socket
for make in (lambda: os.mknod("device", 0o20666, os.makedev(1, 3)), lambda: os.mkfifo("pipe")):
    try: make(); print("made")
    except OSError as fault: print(fault.errno)
socket.socket(socket.AF_UNIX).bind("socket")`;
    const ran = await python(code);
    expect(ran.stdout).toBe('1\n1\n');
    expect(kinds(ran)).toEqual({ socket: 'unknown' });
    expect(ran.receiver.completed).toBe(1);
  }, 'its Python cannot make them'),
  'names with newlines, control characters and invalid UTF-8': everywhere(async ({ python }) => {
    const code = `
for name in (b"a\\nb", b"\\x1b[31m", b"\\xff\\xfe", b"c:\\\\d", b" ", b"-rf", b"$(id)"): open(name, "w").write("1")`;
    const ran = await python(code);
    expect(Object.keys(kinds(ran)).toSorted()).toEqual(
      ['a\nb', '\u001B[31m', '\uFFFD\uFFFD', 'c:\\d', ' ', '-rf', '$(id)'].toSorted(),
    );
    expect(ran.receiver.completed).toBe(1);
  }),
  'names with newlines, of a shell': onSystem(async ({ shell }) => {
    const ran = await shell(
      String.raw`for name in "$(printf 'a\nb')" "$(printf '\377\376')" -rf; do echo 1 > "./$name"; done`,
    );
    expect(Object.keys(kinds(ran)).toSorted()).toEqual(['-rf', 'a\nb', '\uFFFD\uFFFD'].toSorted());
    expect(ran.receiver.completed).toBe(1);
  }, 'its files have text as names'),
  'names that differ in case or composition only': everywhere(async ({ python, shell }) => {
    const names = ['a', 'A', 'é', 'e\u0301'];
    const code = `for name in ${JSON.stringify(names)}: open(name, "w").write(name)`;
    const commands = names.map((name) => `printf %s '${name}' > '${name}'`).join('; ');
    for (const { receiver } of [await python(code), await shell(commands)])
      expect(receiver.files).toEqual(Object.fromEntries(names.map((name) => [name, name])));
  }),
  'folders in folders': everywhere(async ({ level, python, shell }) => {
    const code = 'import os\nfor _ in range(200): os.mkdir("d"); os.chdir("d")\nopen("x", "w").write("1")';
    const path = `${'d/'.repeat(200)}x`;
    expect((await python(code)).receiver.files).toEqual({ [path]: '1' });
    const command = 'n=0; while [ $n -lt 200 ]; do mkdir d; cd d; n=$((n+1)); done; echo 1 > x';
    if (level !== 'wasm') expect((await shell(command)).receiver.files).toEqual({ [path]: '1\n' });
  }),
  'paths longer than the system can open': everywhere(async ({ level, python, shell }) => {
    const code = 'import os\nfor _ in range(60): os.mkdir("d" * 100); os.chdir("d" * 100)\nopen("x", "w").write("1")';
    const ran = await python(code, { given: GIVEN });
    expect(ran.exitCode).toBe(0);
    // The files below are lost, which an entry with a name that no workspace has tells.
    if (level !== 'wasm') expect([...ran.receiver.entries.values()].map(({ kind }) => kind)).toContain('unknown');
    if (level === 'wasm') return;
    const name = 'd'.repeat(100);
    const command = `n=0; while [ $n -lt 60 ]; do mkdir ${name}; cd ${name} || break; n=$((n+1)); done; exit 0`;
    // all or nothing
    const { exitCode, receiver } = await shell(command);
    expect({ exitCode, less: receiver.completed < 2 }).toEqual({ exitCode: 0, less: true });
  }),
  'a hundred thousand files': everywhere(async ({ level, python }) => {
    const code = `
import os
try:
    for n in range(100_000): os.close(os.open(f"f{n}", os.O_CREAT | os.O_WRONLY))
except OSError: pass`;
    const receiver = new MemoryReceiver({ entries: 2_000 });
    await python(code, { receiver });
    expect({ refused: receiver.refused, completed: receiver.completed, level }).toEqual({
      refused: true,
      completed: 0,
      level,
    });
    expect(receiver.entries.size).toBe(2_000);
  }),
  'more bytes than the workspace has room for': everywhere(async ({ level, python }) => {
    const code = `
try:
    for n in range(10):
        with open(f"f{n}", "wb") as file:
            for _ in range(40): file.write(bytes(1_000_000))
except (OSError, MemoryError): print("full")`;
    const receiver = new MemoryReceiver({ bytes: 67_108_864 });
    const { stdout } = await python(code, { receiver });
    // the embedded interpreter runs out of memory
    if (level !== 'wasm') expect({ stdout, refused: receiver.refused }).toEqual({ stdout: 'full\n', refused: true });
    expect(receiver.completed).toBe(0);
  }),
  'sparse files': onSystem(async ({ python, shell }) => {
    const code = `
with open("large", "wb") as file:
    try: file.truncate(2**40); print("made")
    except OSError as fault: print(fault.errno)
with open("small", "wb") as file: file.truncate(10_000_000)`;
    const ran = await python(code);
    expect(ran.stdout).toBe('27\n');
    expect(ran.receiver.entries.get('small')).toMatchObject({ kind: 'file', size: 10_000_000 });
    const { receiver } = await shell('truncate -s 1T large 2>/dev/null; truncate -s 10000000 small');
    expect(receiver.entries.get('small')).toMatchObject({ kind: 'file', size: 10_000_000 });
    expect(receiver.completed).toBe(1);
  }, 'its files are in memory, which is limited'),
  'a file that a process changes for ever': onSystem(async ({ python, shell }) => {
    const code = `
import os
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    while True:
        for size in (1, 1_000_000): open("x", "w").write("x" * size)
while not os.path.exists("x"): pass`;
    const command = '(setsid sh -c "while :; do echo 1 >> x; rm x; done" >/dev/null 2>&1 &) ; sleep 0.2';
    for (const { exitCode, receiver } of [await python(code), await shell(command)])
      // The memory limit may end the guest, too: then nothing of the workspace counts.
      expect([
        [0, 1],
        [137, 0],
      ]).toContainEqual([exitCode, receiver.completed]);
  }, NO_PROCESSES),
  'a fork bomb that outlives its program': onSystem(async ({ python, shell }) => {
    const code = `
import os, time
if os.fork() == 0:
    while True:
        try: os.fork()
        except OSError: pass
time.sleep(0.3)`;
    // The limit of processes may end the shell, too.
    await shell('f() { f | f & }; f >/dev/null 2>&1; sleep 0.3', { timeoutMs: 20_000 });
    const { exitCode, receiver } = await python(code);
    // The memory limit may end the guest, too: then nothing of the workspace counts.
    expect([
      [0, 1],
      [137, 0],
    ]).toContainEqual([exitCode, receiver.completed]);
  }, NO_PROCESSES),
  'rights that stop the reader': everywhere(async ({ python, shell }) => {
    const code = `
import os
os.mkdir("folder")
for name in ("folder/x", "file", "program"): open(name, "w").write("1")
for name in ("folder", "file"): os.chmod(name, 0)
os.chmod("program", 0o6755)
os.chmod(os.environ["CORTEX_WORKSPACE"], 0)`;
    const command =
      'mkdir folder; for n in folder/x file program; do printf 1 > $n; done; chmod 0 folder file; chmod 6755 program; chmod 0 .';
    for (const { receiver } of [await python(code), await shell(command)]) {
      expect(receiver.files).toEqual({ 'folder/x': '1', file: '1', program: '1' });
      expect(receiver.entries.get('program')?.executable).toBe(true);
      expect(receiver.completed).toBe(1);
    }
  }),
  'a program that kills everything that it can': onSystem(async ({ level, python, shell }) => {
    const code = `
import os
open("x", "w").write("1")
for pid in (os.getppid(), 1, -1):
    try: os.kill(pid, 9)
    except OSError: pass
os._exit(0)`;
    for (const { receiver } of [
      await python(code),
      await shell('echo 1 > x; kill -9 $PPID; kill -9 1; kill -9 -1; exit 0'),
    ]) {
      // The first process of a container cannot be killed. Elsewhere nothing is taken, and nothing remains.
      if (level === 'docker') expect(Object.keys(receiver.files)).toEqual(['x']);
      else expect(receiver.completed).toBe(0);
    }
  }, NO_PROCESSES),
  'a program that writes to every descriptor': everywhere(async ({ python }) => {
    const code = `
import os
for fd in range(3, 64):
    try: os.write(fd, b"garbage" * 1_000)
    except OSError: pass
for pid in (1, os.getppid()):
    for fd in range(0, 12):
        try: os.write(os.open(f"/proc/{pid}/fd/{fd}", os.O_WRONLY), b"garbage")
        except OSError: pass
open("x", "w").write("1")`;
    const { receiver, exitCode } = await python(code, { given: GIVEN });
    expect({ exitCode, files: receiver.files }).toEqual({ exitCode: 0, files: { 'a.txt': 'hello', x: '1' } });
    expect(receiver.completed).toBe(1);
  }),
  'output that looks like an archive': everywhere(async ({ python }) => {
    const code = `
import io, sys, tarfile
buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w") as archive:
    entry = tarfile.TarInfo("forged")
    entry.size = 1
    archive.addfile(entry, io.BytesIO(b"1"))
sys.stdout.buffer.write(b"\\0" + b"0" * 32 + buffer.getvalue() + b"complete")`;
    const { receiver, stdout } = await python(code, { given: GIVEN });
    expect(receiver.files).toEqual({ 'a.txt': 'hello' });
    expect(stdout).toContain('forged');
  }),
  'a program that knows the marker and forges an archive': {
    docker: async ({ python }) => {
      // of the memory of its parent's copy
      const code = `
import gc, os, sys
markers = [value for thing in gc.get_objects() if isinstance(thing, dict) for value in thing.values()
    if isinstance(value, str) and len(value) == 33 and value[0] == "\\0"]
print(len(markers))
sys.stdout.flush()
os.write(1, (markers + ["\\0"])[0].encode() + b"complete" * 1_000)`;
      const { receiver, stdout } = await python(code, { given: GIVEN });
      // the archive is invalid from here on
      if (stdout.startsWith('0')) expect(receiver.completed).toBe(1);
      else expect(receiver.completed).toBe(0);
    },
    bubblewrap: 'it has a channel of its own',
    wasm: 'it has a channel of its own',
  },
  'a workspace that is exchanged for something else': onSystem(async ({ python, shell }) => {
    const code = `
import os
os.chdir("/")
for change in (lambda: os.rmdir("/workspace"), lambda: os.rename("/workspace", "/tmp/other"), lambda: os.symlink("/etc", "/workspace"),
    lambda: os.execvp("umount", ["umount", "/workspace"]) if os.fork() == 0 else os.wait()):
    try: change()
    except OSError: pass`;
    const command = 'cd /; rm -rf /workspace; mv /workspace /tmp/x; ln -s /etc /workspace; umount /workspace; exit 0';
    for (const { receiver } of [await python(code, { given: GIVEN }), await shell(command)]) {
      expect(Object.keys(receiver.files).join(' ')).toMatch(/^(a\.txt)?$/);
      expect(receiver.completed).toBe(1);
    }
  }, 'the next row is for it'),
  'a virtual workspace that is exchanged for a link': {
    docker: 'the folder is a mount, see the row before',
    bubblewrap: 'the folder is a mount, see the row before',
    wasm: async ({ python, shell }) => {
      const code = 'import os\nos.chdir("/")\nos.rmdir("/workspace")\nos.symlink("/etc", "/workspace")';
      for (const { receiver } of [await python(code), await shell('cd /; rm -r /workspace; ln -s /etc /workspace')]) {
        expect({ entries: receiver.entries.size, completed: receiver.completed }).toEqual({ entries: 0, completed: 0 });
      }
    },
  },
  'a workspace that is removed': {
    docker: 'the folder is a mount',
    bubblewrap: 'the folder is a mount',
    wasm: async ({ python, shell }) => {
      const code = 'import os, shutil\nos.chdir("/")\nshutil.rmtree("/workspace")';
      for (const { receiver } of [await python(code, { given: GIVEN }), await shell('cd /; rm -r /workspace')]) {
        expect({ entries: receiver.entries.size, completed: receiver.completed }).toEqual({ entries: 0, completed: 1 });
      }
    },
  },
  'memory without end': everywhere(async ({ python }) => {
    const code = 'open("x", "w").write("1")\nblocks = []\nwhile True: blocks.append(b"x" * 10_000_000)';
    const { oom, exitCode, stderr } = await python(code);
    if (!oom) expect({ exitCode, error: stderr.includes('MemoryError') }).toEqual({ exitCode: 1, error: true });
  }),
};

const HARD = 'import os; os.link("a.txt", "b.txt"); os.mkdir("d"); os.link("a.txt", "d/c.txt")';
const LN = 'ln a.txt b.txt; mkdir d; ln a.txt d/c.txt';

/** Every name of a file is a file: which one is the link depends on the order. */
async function hardLinks(all: readonly Ran[]): Promise<void> {
  for (const { receiver } of all) {
    expect(receiver.files).toEqual({ 'a.txt': 'hello', 'b.txt': 'hello', 'd/c.txt': 'hello' });
    expect(receiver.completed).toBe(1);
  }
  await Promise.resolve();
}

/** Registers the table's tests for one level. */
export function describeWorkspaceAbuse(level: Level): void {
  const skip = reasonToSkip(level);
  describe.skipIf(skip !== null)(`workspace, ${level}${skip === null ? '' : ` (skipped: ${skip})`}`, () => {
    let kit: WorkspaceKit;
    let idle: IdleState;
    const isReady = async (): Promise<boolean> => kit.sandbox.warm?.filling !== true;
    beforeAll(async () => {
      vi.setConfig({ testTimeout: 120_000 });
      kit = await WorkspaceKit.open(level, 1);
      idle = await waitUntilStill(level, kit.folder, isReady);
    }, 300_000);
    afterAll(() => kit.close(), 120_000);

    for (const [name, row] of Object.entries(ROWS)) {
      const attempt = row[level];
      if (typeof attempt === 'string') continue;
      test(`[C7] ${name}`, async () => {
        await kit.ready();
        const patient = { timeoutMs: limits.timeoutMs };
        await attempt({
          level,
          python: (code, wish = {}) => kit.python(code, { ...patient, ...wish }),
          shell: (code, wish = {}) => kit.shell(code, { ...patient, ...wish }),
        });
        await expectNothingLeft(level, kit.folder, idle);
        expect(await kit.shell('echo hello')).toMatchObject({ exitCode: 0, stdout: 'hello\n' });
      });
    }
  });
}
