/**
 * Hostile programs, one table for every level that promises isolation. The rows run in parallel; afterwards, nothing is
 * left and the runner still serves. A row without a case for a level gives the reason. Hostile requests are refused before
 * a level is asked: `jobs/job-api.test.ts` and `auth.test.ts`.
 */
import fs from 'node:fs';

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { limits } from '../../limits.ts';
import { reasonToSkip } from './levels.ts';
import { waitUntilIdle, expectNothingLeft, type IdleState } from './leftovers.ts';
import { type JobBody, type Result, startRunner, type TestRunner } from './test-runner.ts';

type Level = 'docker' | 'bubblewrap' | 'wasm';

interface Kit {
  readonly level: Level;
  readonly runner: TestRunner;
  python(code: string, limits?: JobBody): Promise<Result>;
  shell(code: string, limits?: JobBody): Promise<Result>;
}
/** Timeout of programs that end by themselves: on a busy machine they may take minutes. */
const PATIENT_MS = 200_000;

type Case = (kit: Kit) => Promise<void>;
/** A case, or the reason why there is none. */
type Row = Readonly<Record<Level, Case | string>>;

const NO_PROCESSES = 'programs there have no processes';
const NO_CALLS = 'programs there make no system calls';
const KILLED_ALIKE = 'it is killed like any loop, which the contract has';
const everywhere = (body: Case): Row => ({ docker: body, bubblewrap: body, wasm: body });
const onSystem = (body: Case, why: string): Row => ({ docker: body, bubblewrap: body, wasm: why });

const ROWS: Readonly<Record<string, Row>> = {
  'a fork bomb of a shell': onSystem(async ({ shell }) => {
    const { end } = await shell('f() { f | f & }; f; sleep 30', { timeout_ms: 1_500 });
    expect(['timeout', 'exited', 'oom']).toContain(end);
  }, NO_PROCESSES),
  'a fork bomb of python': onSystem(async ({ python }) => {
    const code = 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass';
    const { end } = await python(code, { timeout_ms: 2_000 });
    expect(['timeout', 'exited', 'oom']).toContain(end);
  }, NO_PROCESSES),
  'memory without end': everywhere(async ({ level, python }) => {
    const result = await python('blocks = []\nwhile True: blocks.append(b"x" * 10_000_000)');
    if (level === 'docker') expect(result.end).toBe('oom');
    else if (result.end !== 'oom') expect(result.stderr).toContain('MemoryError');
  }),
  'a child that takes all memory while the parent ends well': {
    docker: async ({ python }) => {
      expect((await python(GREEDY_CHILD)).end).toBe('oom');
    },
    bubblewrap: async ({ python }) => {
      const { end, stdout } = await python(GREEDY_CHILD);
      // its own limit gives a MemoryError; the control group ends it
      if (end === 'exited') expect(stdout).toBe('child 1\n');
      else expect(end).toBe('oom');
    },
    wasm: NO_PROCESSES,
  },
  'one file that fills the disk': everywhere(async ({ level, python }) => {
    const code = `
block = bytes(50_000_000)
try:
    with open("/tmp/big", "wb") as file:
        for _ in range(200): file.write(block)
    print("wrote 10 GB")
except (OSError, MemoryError) as fault: print("stopped", type(fault).__name__)`;
    const { end, stdout } = await python(code);
    // the embedded interpreter ends if its files need too much memory
    expect(end === 'exited' ? stdout : end).toMatch(level === 'wasm' ? /^(stopped|Stack |oom$)/ : /^(stopped|oom$)/);
  }),
  'half a million empty files': onSystem(async ({ level, python }) => {
    const code = `
import os
for n in range(500_000):
    try: os.close(os.open(f"/tmp/f{n}", os.O_CREAT | os.O_WRONLY))
    except OSError as fault:
        print("stopped", n, fault.errno)
        break
else: print("made all")`;
    const { end, stdout } = await python(code);
    const [, made = '0'] = /^stopped (\d+) 28$/m.exec(stdout) ?? [];
    if (level === 'docker') {
      expect(end).toBe('exited');
      expect(Number(made)).toBeGreaterThan(1_000);
      expect(Number(made)).toBeLessThanOrEqual(limits.inodes);
    } else {
      // each uses memory, which is limited; the files disappear with the sandbox
      expect(['oom', 'timeout', 'exited', 'killed']).toContain(end);
    }
  }, 'its files are in memory, which is limited'),
  'a sparse file of a terabyte': everywhere(async ({ level, python }) => {
    const code = `
try:
    with open("/tmp/sparse", "wb") as file: file.truncate(2**40)
    print("made it")
except OSError as fault: print("refused", fault.errno)
except (MemoryError, OverflowError) as fault: print("refused", type(fault).__name__)`;
    expect((await python(code)).stdout).toMatch(level === 'wasm' ? /^(refused|Stack )/ : /^refused 27$/m);
  }),
  'endless output': everywhere(async ({ level, shell, python }) => {
    const ran = await (level === 'wasm' ? python('while True: print("y" * 200)') : shell('yes >&2'));
    expect(ran).toMatchObject({ end: 'output_limit', truncated: true });
    expect(Buffer.byteLength(ran.stdout + ran.stderr)).toBe(limits.outputBytes);
  }),
  'writing to the system, and links that lead out': everywhere(async ({ level, shell, python }) => {
    const code = `
import os
for name in ("/usr/x", "/etc/x", "/etc/passwd", "/bin/sh", "/cortex/x", "/proc/sys/kernel/hostname", "/x"):
    try: open(name, "a").write("x"); print("wrote", name)
    except OSError: pass
for target in ("/etc/shadow", "/proc/1/root/etc/shadow", "/proc/1/root/root"):
    try: os.symlink(target, "/work/link"); print("read", os.listdir("/work/link") if os.path.isdir("/work/link") else open("/work/link").read())
    except OSError: pass
    try: os.remove("/work/link")
    except OSError: pass
open("mine", "w").write("1")
print("looked", open("/work/mine").read())`;
    const { stdout } = await python(code);
    expect(stdout).toContain('looked 1\n');
    // a virtual file system can be writable: it contains nothing of this machine
    if (level !== 'wasm') expect(stdout).not.toContain('wrote');
    for (const name of ['/usr/x', '/etc/x', '/x']) expect(fs.existsSync(name)).toBe(false);
    expect(stdout).not.toMatch(/root:|read \[./);
    expect((await shell('rm -rf / 2>/dev/null; echo x > /etc/passwd; echo looked')).stdout).toContain('looked');
  }),
  'looking for secrets': everywhere(async ({ python, shell }) => {
    const here = new URL(import.meta.url).pathname;
    const code = `
import glob, os
for name in ["/etc/shadow", "/root", "/root/.ssh", "/home", "${here}", "/proc/1/root/etc/shadow", "/proc/kcore", "/var/run/docker.sock", "/run/docker.sock",
    "/sys", "/sys/class/net"]:
    try: print("reached", name, os.listdir(name)[:3] if os.path.isdir(name) else open(name, "rb").read(20))
    except OSError: pass
for name in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
    try: print(name, open(name, "rb").read()[:2000])
    except OSError: pass
print(dict(os.environ))
print("looked")`;
    const { stdout } = await python(code);
    expect(stdout.replaceAll(/reached \/home \['\w+'\]\n|reached \S+ \[\]\n/g, '')).not.toContain('reached');
    const ofShell = await shell('env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; echo looked');
    for (const text of [stdout, ofShell.stdout]) {
      expect(text).toMatch(/looked\n$/);
      expect(text).not.toMatch(/hunter2|CORTEX_TEST|root:|docker\.sock|lo'/);
    }
  }),
  'reaching the network': everywhere(async ({ runner, python }) => {
    const code = `
import socket
for family, place in ((socket.AF_INET, ("127.0.0.1", ${new URL(runner.url).port})), (socket.AF_INET, ("169.254.169.254", 80)),
    (socket.AF_INET, ("172.17.0.1", ${new URL(runner.url).port})), (socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET6, ("::1", ${new URL(runner.url).port})),
    (getattr(socket, "AF_UNIX", 1), "/var/run/docker.sock")):
    try:
        link = socket.socket(family); link.settimeout(1); link.connect(place); print("reached", place)
    except Exception as fault: print("no")`;
    const { stdout } = await python(code);
    expect(stdout).toBe('no\n'.repeat(6));
  }),
  'system calls of administrators and debuggers': onSystem(async ({ python }) => {
    const { stdout } = await python(CALLS);
    if (process.arch === 'x64') expect(stdout.match(/^\w+ -1 1$/gm)?.length).toBe(13);
    expect(stdout.match(/^family \d+ 97$/gm)?.length).toBe(3);
    expect(stdout).toContain('mknod 1\n');
    expect(stdout).toMatch(/CapEff:\s0+\n/);
    expect(stdout).toMatch(/CapBnd:\s0+\n/);
    expect(stdout).toMatch(/NoNewPrivs:\s1/);
    expect(stdout).toMatch(/Seccomp:\s2/);
  }, NO_CALLS),
  'signals to everybody': everywhere(async ({ python }) => {
    const code = `
import os
for pid in (1, ${process.pid}, ${process.ppid}, os.getppid()):
    try: os.kill(pid, 9)
    except (OSError, AttributeError) as fault: print("no")
try: os.kill(-1, 9)
except (OSError, AttributeError): pass`;
    expect(['exited', 'killed']).toContain((await python(code)).end);
  }),
  'a double fork in a session of its own that ignores signals': onSystem(async ({ python }) => {
    const code = `
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
    while True: time.sleep(1)
time.sleep(60)`;
    expect((await python(code, { timeout_ms: 700 })).end).toBe('timeout');
  }, NO_PROCESSES),
  'not listening to TERM': onSystem(async ({ shell }) => {
    const results = await Promise.all([
      shell('kill -STOP $$', { timeout_ms: 500 }),
      shell('trap "" TERM INT HUP; sleep 600 & wait', { timeout_ms: 500 }),
    ]);
    expect(results.map(({ end }) => end)).toEqual(['timeout', 'timeout']);
  }, 'its shell knows no signals'),
  'a regular expression that never ends': {
    docker: KILLED_ALIKE,
    bubblewrap: KILLED_ALIKE,
    wasm: async ({ python }) => {
      const { end } = await python('import re; re.match(r"(a+)+$", "a" * 60 + "!")', { timeout_ms: 700 });
      expect(end).toBe('timeout');
    },
  },
  'megabytes on standard input that nobody reads': everywhere(async ({ runner }) => {
    const inputs = { text: 'x'.repeat(8_000_000) };
    const body = { kind: 'tool', runtime: 'python3', code: 'print("done")', inputs };
    expect(await runner.run(body)).toMatchObject({ end: 'exited', exitCode: 0, stdout: 'done\n' });
  }),
  'bytes that are not UTF-8': everywhere(async ({ python }) => {
    const code = String.raw`import sys; sys.stdout.buffer.write(b"a\xff\xfe\x00\x1b[31mb"); sys.stdout.flush(); print("\ud800")`;
    const { stdout, exitCode } = await python(code);
    expect(exitCode).toBe(0);
    expect(stdout.replace('\u001B[31m', '<red>')).toMatch(/^a\uFFFD{3}<red>b\uFFFD+\n$/);
    expect(stdout.isWellFormed()).toBe(true);
  }),
};

const GREEDY_CHILD = `
import subprocess, sys
child = subprocess.run([sys.executable, "-c", "blocks = []\\nwhile True: blocks.append(b'x' * 10_000_000)"], stderr=subprocess.DEVNULL)
print("child", child.returncode)`;

const CALLS = `
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
calls = {"ptrace": 101, "mount": 165, "unshare": 272, "bpf": 321, "io_uring_setup": 425, "io_uring_enter": 426, "keyctl": 250,
  "userfaultfd": 323, "perf_event_open": 298, "setns": 308, "process_vm_readv": 310, "kexec_load": 246}
for name, number in calls.items():
    print(name, libc.syscall(number, 0, 0, 0, 0, 0), ctypes.get_errno())
print("clone", libc.syscall(56, 0x10000000, 0, 0, 0, 0), ctypes.get_errno())
for family in (16, 17, 40):
    try: socket.socket(family, socket.SOCK_DGRAM); print("socket", family)
    except OSError as fault: print("family", family, fault.errno)
try: os.mknod("/work/device", 0o20666, os.makedev(1, 1)); print("made a device")
except OSError as fault: print("mknod", fault.errno)
print(open("/proc/self/status").read())`;

/** Rows that take long at these levels: they run in `test/long/abuse.test.ts`. */
const LONG: Readonly<Record<string, readonly Level[]>> = {
  'a fork bomb of python': ['docker', 'bubblewrap'],
  'half a million empty files': ['bubblewrap'],
  // What the program prints is decoded above the levels, see `supervise.test.ts`.
  'bytes that are not UTF-8': ['docker'],
};

/** Registers the table's tests for one level: those of the system tests, or those that take long. */
export function describeAbuse(level: Level, length: 'system' | 'long' = 'system'): void {
  vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });
  const skip = reasonToSkip(level);
  describe.skipIf(skip !== null)(`${level}${skip === null ? '' : ` (skipped: ${skip})`}`, () => {
    let runner: TestRunner;
    let idle: IdleState;
    beforeAll(async () => {
      process.env['CORTEX_TEST_SECRET'] = 'hunter2';
      // Most of these programs must be killed: none of them does anything when it gets TERM.
      runner = await startRunner({ sandbox: level, warm: 1, killGraceMs: 300 });
      idle = await waitUntilIdle(level, runner);
    });
    afterAll(async () => {
      await runner.close();
    });
    const kit = (): Kit => {
      const run =
        (kind: string) =>
        (code: string, more: JobBody = {}) =>
          runner.run({ kind, code, limits: { timeout_ms: PATIENT_MS, ...more } });
      return { level, runner, python: run('python'), shell: run('shell') };
    };
    describe.concurrent('in parallel', () => {
      afterAll(async () => {
        await expectNothingLeft(level, runner.stateDir, idle);
        const hello = await runner.run({ kind: 'shell', code: 'echo hello' });
        expect(hello).toMatchObject({ end: 'exited', exitCode: 0, stdout: 'hello\n' });
      });
      for (const [name, row] of Object.entries(ROWS)) {
        const attempt = row[level];
        if (typeof attempt === 'string' || (LONG[name]?.includes(level) === true) !== (length === 'long')) continue;
        test(`[R2] ${name}`, async () => {
          await attempt(kit());
        });
      }
    });
  });
}
