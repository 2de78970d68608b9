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

/** A name of a file for each that could be confused with another, or with an option; the file contains its name. */
const NAMES = ['a', 'A', 'é', 'e\u0301', ' ', '-rf', '$(id)'];

const ROWS: Readonly<Record<string, Row>> = {
  'links to everything, and names of all kinds': everywhere(async ({ level, python, shell }) => {
    const isReal = level !== 'wasm';
    const code = `
import os
for number, target in enumerate(${JSON.stringify(OUTSIDE)}): os.symlink(target, f"link{number}")
os.mkdir("real")
open("real/x", "w").write("1")
os.symlink("real", "same")
os.remove("a.txt")
os.symlink("/etc/passwd", "a.txt")
for name in ${JSON.stringify(NAMES)}: open(name, "w").write(name)
for name in (b"a\\nb", b"\\x1b[31m", b"\\xff\\xfe", b"c:\\\\d"): open(name, "w").write("1")
${isReal ? 'os.link("real/x", "hard")' : ''}`;
    const commands = `
${OUTSIDE.map((target, number) => `ln -s ${target} link${number}`).join('\n')}
mkdir real; printf 1 > real/x; ln -s real same
rm a.txt; ln -s /etc/passwd a.txt
for name in ${NAMES.map((name) => `'${name}'`).join(' ')}; do printf %s "$name" > "./$name"; done
${isReal ? String.raw`for name in "$(printf 'a\nb')" "$(printf '\377\376')"; do printf 1 > "./$name"; done` : ''}
ln real/x hard`;
    const links = Object.fromEntries([...OUTSIDE.keys()].map((number) => [`link${number}`, 'symlink']));
    const texts = Object.fromEntries(NAMES.map((name) => [name, name]));
    const odd = { 'a\nb': '1', '\uFFFD\uFFFD': '1' };
    const ofPython = { ...odd, '\u001B[31m': '1', 'c:\\d': '1', ...(isReal ? { hard: '1' } : {}) };
    for (const [ran, more] of [
      [await python(code, { given: GIVEN }), ofPython],
      [await shell(commands, { given: GIVEN }), { hard: '1', ...(isReal ? odd : {}) }],
    ] as const) {
      const files = { ...texts, ...more, 'real/x': '1' };
      expect(ran.receiver.files).toEqual(files);
      expect(kinds(ran)).toEqual({
        ...links,
        ...Object.fromEntries(Object.keys(files).map((name) => [name, 'file'])),
        'a.txt': 'symlink',
        real: 'folder',
        same: 'symlink',
      });
      expect(ran.receiver.completed).toBe(1);
    }
  }),
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
  'folders in folders': everywhere(async ({ level, python, shell }) => {
    const code = 'import os\nfor _ in range(200): os.mkdir("d"); os.chdir("d")\nopen("x", "w").write("1")';
    const path = `${'d/'.repeat(200)}x`;
    expect((await python(code)).receiver.files).toEqual({ [path]: '1' });
    const command = 'n=0; while [ $n -lt 200 ]; do mkdir d; cd d; n=$((n+1)); done; echo 1 > x';
    if (level !== 'wasm') expect((await shell(command)).receiver.files).toEqual({ [path]: '1\n' });
  }),
  'paths longer than the system can open': onSystem(async ({ python, shell }) => {
    const code = 'import os\nfor _ in range(60): os.mkdir("d" * 100); os.chdir("d" * 100)\nopen("x", "w").write("1")';
    const ran = await python(code, { given: GIVEN });
    expect(ran.exitCode).toBe(0);
    // The files below are lost, which an entry with a name that no workspace has tells.
    expect([...ran.receiver.entries.values()].map(({ kind }) => kind)).toContain('unknown');
    const name = 'd'.repeat(100);
    const command = `n=0; while [ $n -lt 60 ]; do mkdir ${name}; cd ${name} || break; n=$((n+1)); done; exit 0`;
    // all or nothing
    const { exitCode, receiver } = await shell(command);
    expect({ exitCode, less: receiver.completed < 2 }).toEqual({ exitCode: 0, less: true });
  }, 'its files are virtual'),
  'a hundred thousand files': onSystem(async ({ python }) => {
    const code = `
import os
try:
    for n in range(100_000): os.close(os.open(f"f{n}", os.O_CREAT | os.O_WRONLY))
except OSError: pass`;
    const receiver = new MemoryReceiver({ entries: 2_000 });
    await python(code, { receiver });
    expect(receiver).toMatchObject({ refused: true, completed: 0 });
    expect(receiver.entries.size).toBe(2_000);
  }, 'the contract has it with fewer files'),
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
  'a program that writes to every descriptor, and an archive to its output': everywhere(async ({ python }) => {
    const code = `
import io, os, sys, tarfile
for fd in range(3, 64):
    try: os.write(fd, b"garbage" * 1_000)
    except OSError: pass
for pid in (1, os.getppid()):
    for fd in range(0, 12):
        try: os.write(os.open(f"/proc/{pid}/fd/{fd}", os.O_WRONLY), b"garbage")
        except OSError: pass
open("x", "w").write("1")
buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w") as archive:
    entry = tarfile.TarInfo("forged")
    entry.size = 1
    archive.addfile(entry, io.BytesIO(b"1"))
sys.stdout.buffer.write(b"\\0" + b"0" * 32 + buffer.getvalue() + b"complete")`;
    const { receiver, exitCode, stdout } = await python(code, { given: GIVEN });
    expect({ exitCode, files: receiver.files }).toEqual({ exitCode: 0, files: { 'a.txt': 'hello', x: '1' } });
    expect(receiver.completed).toBe(1);
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
};

/** Rows that take long at these levels: they run in `test/long/abuse.test.ts`. */
const LONG: Readonly<Record<string, readonly Level[]>> = {
  'folders in folders': ['docker', 'bubblewrap'],
  'paths longer than the system can open': ['docker', 'bubblewrap'],
  'a hundred thousand files': ['docker', 'bubblewrap'],
  'more bytes than the workspace has room for': ['wasm'],
  'sparse files': ['docker', 'bubblewrap'],
  'a fork bomb that outlives its program': ['docker', 'bubblewrap'],
};

/** Registers the table's tests for one level: those of the system tests, or those that take long. */
export function describeWorkspaceAbuse(level: Level, length: 'system' | 'long' = 'system'): void {
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
    afterAll(async () => {
      expect(await kit.shell('echo hello')).toMatchObject({ exitCode: 0, stdout: 'hello\n' });
      await kit.close();
    }, 120_000);

    for (const [name, row] of Object.entries(ROWS)) {
      const attempt = row[level];
      if (typeof attempt === 'string' || (LONG[name]?.includes(level) === true) !== (length === 'long')) continue;
      test(`[C7] ${name}`, async () => {
        await kit.ready();
        const patient = { timeoutMs: limits.timeoutMs };
        await attempt({
          level,
          python: (code, wish = {}) => kit.python(code, { ...patient, ...wish }),
          shell: (code, wish = {}) => kit.shell(code, { ...patient, ...wish }),
        });
        await expectNothingLeft(level, kit.folder, idle);
      });
    }
  });
}
