/**
 * Hostile programs and requests, one table for every level that promises isolation. The rows run in parallel; afterwards,
 * nothing is left and the runner still serves. A row without a case for a level gives the reason.
 */
import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { limits } from '../../limits.ts';
import { DEFAULT_OPERATOR_LIMITS } from '../../operator-limits.ts';
import { reasonToSkip } from './levels.ts';
import { waitUntilIdle, expectNothingLeft, type IdleState } from './leftovers.ts';
import { type JobBody, type Result, signed, startRunner, type Tampering, type TestRunner } from './test-runner.ts';

type Level = 'docker' | 'bubblewrap' | 'wasm';

interface Kit {
  readonly level: Level;
  readonly runner: TestRunner;
  python(code: string, limits?: JobBody): Promise<Result>;
  shell(code: string, limits?: JobBody): Promise<Result>;
}
/** A small number, because each job of the flood takes time; sufficient for the rows that run in parallel. */
const PLACES = { running: 4, queued: 8 };
/** Timeout of programs that end by themselves: on a busy machine they may take minutes. */
const PATIENT_MS = 200_000;

type Case = (kit: Kit) => Promise<void>;
/** A case, or the reason why there is none. */
type Row = Readonly<Record<Level, Case | string>>;

const NO_PROCESSES = 'programs there have no processes';
const NO_CALLS = 'programs there make no system calls';
const everywhere = (body: Case): Row => ({ docker: body, bubblewrap: body, wasm: body });
const onSystem = (body: Case, why: string): Row => ({ docker: body, bubblewrap: body, wasm: why });

const ROWS: Readonly<Record<string, Row>> = {
  'a fork bomb of a shell': everywhere(async ({ shell }) => {
    const { end } = await shell('f() { f | f & }; f; sleep 30', { timeout_ms: 2_000 });
    expect(['timeout', 'exited', 'oom']).toContain(end);
  }),
  'a fork bomb of python': everywhere(async ({ python }) => {
    const code = 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass';
    const { end } = await python(code, { timeout_ms: 2_000 });
    // the embedded shell has no fork, and reports it
    expect(['timeout', 'exited', 'oom']).toContain(end);
  }),
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
  'one file that fills the disk': everywhere(async ({ python }) => {
    const result = await python(
      'try:\n    with open("/tmp/big", "wb") as file:\n        for _ in range(1000): file.write(bytes(10_000_000))\n    print("wrote 10 GB")\nexcept (OSError, MemoryError) as fault: print("stopped", type(fault).__name__)',
    );
    expect(result.stdout).not.toContain('wrote');
  }),
  'half a million empty files': everywhere(async ({ level, python }) => {
    const code = `
import os
for n in range(500_000):
    try: os.close(os.open(f"/tmp/f{n}", os.O_CREAT | os.O_WRONLY))
    except OSError as fault:
        print("stopped", n, fault.errno)
        break
else: print("made all")`;
    const { end, stdout } = await python(code, level === 'wasm' ? { timeout_ms: 2_000 } : {});
    const [, made = '0'] = /^stopped (\d+) 28$/m.exec(stdout) ?? [];
    if (level === 'docker') {
      expect(end).toBe('exited');
      expect(Number(made)).toBeGreaterThan(1_000);
      expect(Number(made)).toBeLessThanOrEqual(limits.inodes);
    } else {
      // each uses memory, which is limited; the files disappear with the sandbox
      expect(['oom', 'timeout', 'exited', 'killed']).toContain(end);
    }
  }),
  'a sparse file of a terabyte': everywhere(async ({ level, python }) => {
    const code = `
try:
    with open("/tmp/sparse", "wb") as file: file.truncate(2**40)
    print("made it")
except OSError as fault: print("refused", fault.errno)
except (MemoryError, OverflowError) as fault: print("refused", type(fault).__name__)`;
    const { stdout } = await python(code);
    expect(stdout).not.toContain('made it');
    if (level !== 'wasm') expect(stdout).toBe('refused 27\n');
  }),
  'endless output': onSystem(async ({ shell }) => {
    for (const command of ['yes', 'yes >&2', 'tr "\\0" x < /dev/zero']) {
      const { end, truncated, stdout, stderr } = await shell(command);
      expect({ end, truncated }).toEqual({ end: 'output_limit', truncated: true });
      expect(Buffer.byteLength(stdout + stderr)).toBeLessThanOrEqual(limits.outputBytes);
      expect(Buffer.byteLength(stdout + stderr)).toBeGreaterThan(limits.outputBytes - 10);
    }
  }, 'its shell has neither `yes` nor endless devices; the next row is for it'),
  'endless output of python, with and without lines': everywhere(async ({ python }) => {
    for (const line of ['print("y" * 200)', 'import sys; sys.stderr.write("é" * 4096)']) {
      const { end, truncated, stdout, stderr } = await python(`while True: ${line}`);
      expect({ end, truncated }).toEqual({ end: 'output_limit', truncated: true });
      expect(Buffer.byteLength(stdout + stderr)).toBeLessThanOrEqual(limits.outputBytes);
    }
  }),
  'writing to the system, and links that lead out': everywhere(async ({ level, shell, python }) => {
    const code = `
import os
for name in ("/usr/x", "/etc/passwd", "/bin/sh", "/cortex/x"):
    try: open(name, "a").write("x"); print("wrote", name)
    except OSError: pass
for target in ("/etc/shadow", "/proc/1/root/etc/shadow", "/proc/1/root/root"):
    try: os.symlink(target, "/work/link"); print("read", os.listdir("/work/link") if os.path.isdir("/work/link") else open("/work/link").read())
    except OSError: pass
    try: os.remove("/work/link")
    except OSError: pass`;
    const { stdout } = await python(code);
    if (level !== 'wasm') expect(stdout).not.toContain('wrote');
    expect(stdout).not.toMatch(/root:|read \[./);
    await shell('rm -rf / 2>/dev/null; echo x > /etc/passwd');
    expect((await shell('cat /etc/hostname 2>/dev/null; echo fine')).stdout).toContain('fine');
  }),
  'looking for secrets': everywhere(async ({ python, shell }) => {
    const code = `
import glob, os
for name in ["/etc/shadow", "/var/run/docker.sock", "/run/docker.sock", "/root/.ssh", "/sys/class/net"] + glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
    try: print(name, open(name, "rb").read()[:2000] if not os.path.isdir(name) else os.listdir(name))
    except OSError: pass
print(dict(os.environ))`;
    for (const { stdout } of [
      await python(code),
      await shell('env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null'),
    ]) {
      expect(stdout).not.toMatch(/hunter2|CORTEX_TEST|root:|docker\.sock|lo'/);
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
      shell('trap "" TERM; while :; do :; done', { timeout_ms: 500 }),
      shell('kill -STOP $$', { timeout_ms: 500 }),
      shell('trap "" TERM INT HUP; sleep 600 & wait', { timeout_ms: 500 }),
    ]);
    expect(results.map(({ end }) => end)).toEqual(['timeout', 'timeout', 'timeout']);
  }, 'its shell knows no signals'),
  'a regular expression that never ends': everywhere(async ({ python }) => {
    const { end } = await python('import re; re.match(r"(a+)+$", "a" * 60 + "!")', { timeout_ms: 700 });
    expect(end).toBe('timeout');
  }),
  'reading standard input when there is none': everywhere(async ({ python, shell }) => {
    expect((await python('import sys; print(repr(sys.stdin.read()))')).stdout).toBe("''\n");
    expect((await shell('cat; echo end')).stdout).toBe('end\n');
  }),
  'megabytes on standard input that nobody reads': everywhere(async ({ runner }) => {
    const inputs = { text: 'x'.repeat(8_000_000) };
    const body = { kind: 'tool', runtime: 'python3', code: 'print("done")', inputs };
    expect(await runner.run(body)).toMatchObject({ end: 'exited', exitCode: 0, stdout: 'done\n' });
  }),
  'what no process can be given': everywhere(async ({ runner, level }) => {
    const bodies: JobBody[] = [
      { kind: 'shell', code: 'a\0b' },
      { kind: 'shell', code: 'echo', inputs: { x: 'a\0b' } },
      ...(level === 'docker'
        ? [
            { kind: 'docker', image: 'busybox', command: 'echo', args: ['a\0b'] },
            { kind: 'docker', image: 'busybox', command: 'echo', args: ['x'.repeat(200_000)] },
          ]
        : []),
    ];
    for (const body of bodies) expect((await runner.put(randomUUID(), { session: 's', ...body })).status).toBe(400);
  }),
  'values that look like commands': everywhere(async ({ runner }) => {
    const text = 'a\n$(id); `id` ; id | id && id --help $HOME \' " *';
    const { stdout } = await runner.run({ kind: 'shell', code: 'printf %s "$text"', inputs: { text } });
    expect(stdout).toBe(text);
    const tool = { kind: 'tool', runtime: 'python3', code: 'import sys; print(sys.argv[1])', inputs: { text } };
    expect(JSON.parse((await runner.run(tool)).stdout)).toEqual({ text });
  }),
  'bytes that are no text': everywhere(async ({ python }) => {
    const code = String.raw`import sys; sys.stdout.buffer.write(b"a\xff\xfe\x00\x1b[31mb"); sys.stdout.flush(); print("\ud800")`;
    const { stdout, exitCode } = await python(code);
    expect(exitCode).toBe(0);
    expect(stdout.replace('\u001B[31m', '<red>')).toMatch(/^a\uFFFD{3}<red>b\uFFFD+\n$/);
    expect(stdout.isWellFormed()).toBe(true);
  }),
  'names of images that are paths or commands': everywhere(async ({ runner }) => {
    for (const image of ['../../etc', 'Foo Bar', '$(id)', '-v=/:/host', 'a\nb']) {
      const answer = await runner.put(randomUUID(), { session: 's', kind: 'docker', image, command: 'id' });
      expect(answer.status).toBe(400);
    }
  }),
  'bundles with names that lead out': everywhere(async ({ runner }) => {
    for (const name of ['../x', '/etc/x', 'a/../../x', './x', 'a//b', 'a\0b', '']) {
      const build = { files: { 'main.py': '', [name]: '' }, entrypoint: 'main.py' };
      expect((await runner.put(randomUUID(), { session: 's', kind: 'tool', build })).status).toBe(400);
    }
  }),
  'asking for rights': everywhere(async ({ runner }) => {
    const base = { session: 's', kind: 'python', code: '1' };
    const wishes: JobBody[] = [
      { privileged: true },
      { network: 'host' },
      { mounts: ['/:/host'] },
      { limits: { memory_mb: 1e6 } },
      { limits: { cpus: 1e3 } },
      { limits: { processes: 1e6 } },
      { limits: { disk_mb: 1e9 } },
      { limits: { output_bytes: 1e12 } },
      { limits: { capabilities: ['ALL'] } },
      { user: 'root' },
    ];
    for (const wish of wishes) expect((await runner.put(randomUUID(), { ...base, ...wish })).status).toBe(400);
  }),
  'JSON that is a weapon': everywhere(async ({ runner }) => {
    const deep = `{"kind":"python","session":"s","code":"","inputs":{"x":${'['.repeat(1e6)}${']'.repeat(1e6)}}}`;
    expect((await fetch(await signed(runner.url, 'PUT', '/jobs/deep', deep))).status).toBe(400);
    const code = 'import json; print(json.dumps(inputs, sort_keys=True))';
    const text = `{"kind":"python","session":"ses_p","code":${JSON.stringify(code)},"inputs":{"__proto__":{"a":1},"constructor":{"prototype":{"a":1}}}}`;
    expect((await fetch(await signed(runner.url, 'PUT', '/jobs/proto', text))).status).toBe(202);
    await runner.watch('ses_p', 0, ({ type }) => type === 'exited');
    expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  }),
  'requests that are not the Worker’s': everywhere(async ({ runner }) => {
    const body = JSON.stringify({ kind: 'python', session: 's', code: 'print(1)' });
    const now = Math.floor(Date.now() / 1_000);
    const attempts: Tampering[] = [
      { secret: 'another secret, which is long enough too' },
      { claims: { iat: now - 600, exp: now - 500 } },
      { claims: { aud: 'somebody-else' } },
      { sentBody: body.replace('print(1)', 'print(2)') },
      { sentTarget: '/jobs/another' },
      { sentMethod: 'DELETE' },
    ];
    for (const attempt of attempts) {
      const id = randomUUID();
      expect((await fetch(await signed(runner.url, 'PUT', `/jobs/${id}`, body, attempt))).status).toBe(401);
      expect((await runner.ask('GET', `/jobs/${id}`)).status).toBe(404);
    }
    expect((await fetch(`${runner.url}/jobs/x`, { method: 'PUT', body })).status).toBe(401);
    const once = await signed(runner.url, 'GET', '/jobs/nobody', '');
    const again = once.clone();
    expect((await fetch(once)).status).toBe(404);
    expect((await fetch(again)).status).toBe(401);
  }),
  'the same id twice': everywhere(async ({ runner }) => {
    const id = randomUUID();
    const body = { session: id, kind: 'shell', code: 'echo once' };
    const answers = await Promise.all([1, 2, 3].map(() => runner.put(id, body)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 202]);
    const events = await runner.watch(id, 0, ({ type }) => type === 'exited');
    expect(events.filter(({ type }) => type === 'started').length).toBe(1);
  }),
};

/** It fills the queue, so it runs alone. */
const flood: Case = async ({ runner }) => {
  const session = `ses_${randomUUID()}`;
  const body = { session, kind: 'shell', code: 'sleep 0.5; echo done' };
  const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => runner.put(`${session}/${n}`, body)));
  const accepted = answers.filter(({ status }) => status === 202).length;
  const refused = answers.filter(({ status }) => status === 429);
  expect(accepted + refused.length).toBe(200);
  expect(accepted).toBeGreaterThanOrEqual(PLACES.running + PLACES.queued);
  expect(refused.length).toBeGreaterThan(0);
  for (const { headers } of refused) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  const events = await runner.watch(
    session,
    0,
    (_, all) => all.filter(({ type }) => type === 'exited').length === accepted,
  );
  expect(events.filter(({ type, data }) => type === 'exited' && data['exit_code'] === 0).length).toBe(accepted);
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

/** Registers the table's tests for one level. */
export function describeAbuse(level: Level): void {
  vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });
  const skip = reasonToSkip(level);
  describe.skipIf(skip !== null)(`${level}${skip === null ? '' : ` (skipped: ${skip})`}`, () => {
    let runner: TestRunner;
    let idle: IdleState;
    beforeAll(async () => {
      process.env['CORTEX_TEST_SECRET'] = 'hunter2';
      runner = await startRunner({
        sandbox: level,
        warm: 1,
        operatorLimits: { ...DEFAULT_OPERATOR_LIMITS, ...PLACES },
      });
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
    async function isUnharmed(): Promise<void> {
      await expectNothingLeft(level, runner.stateDir, idle);
      const hello = await runner.run({ kind: 'shell', code: 'echo hello' });
      expect(hello).toMatchObject({ end: 'exited', exitCode: 0, stdout: 'hello\n' });
    }

    describe.concurrent('in parallel', () => {
      afterAll(isUnharmed);
      for (const [name, row] of Object.entries(ROWS)) {
        const attempt = row[level];
        if (typeof attempt === 'string') continue;
        test(`[R2] ${name}`, async () => {
          await attempt(kit());
        });
      }
    });

    test('[R2] two hundred jobs at once', async () => {
      await flood(kit());
      await isUnharmed();
    });
  });
}
