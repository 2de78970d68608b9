/**
 * The contract of every sandbox: input, resource limits and end of a program (R2-R4, P14). Hostile programs are in
 * `abuse-table.ts`; here they run only at the level that promises no isolation, which the table excludes.
 */
import fs from 'node:fs';

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { limits } from '../../limits.ts';
import { descendantsOf } from '../../sandbox/process-tree.ts';
import type { SandboxLevel } from '../../sandbox/sandbox.ts';
import { isReady } from './leftovers.ts';
import { reasonToSkip } from './levels.ts';
import { type JobBody, type Result, startRunner, type TestRunner } from './test-runner.ts';
import { eventually } from '../../../test/support/eventually.ts';

const SLOW = 300_000;
/** Timeout of a program that prints first and never ends: on a busy machine, its start takes seconds. */
const OUTPUT_FIRST_MS = 12_000;
/** Timeout of programs that end by themselves: on a busy machine they may take minutes. */
const PATIENT_MS = 200_000;
/** Sleep time of a program that must be killed; distinct from the sleeping programs of other files. */
const NAP = 600_000 + Math.floor(Math.random() * 100_000);
const python = (code: string, more: JobBody = {}): JobBody => ({ kind: 'python', code, ...more });
const shell = (code: string, more: JobBody = {}): JobBody => ({ kind: 'shell', code, ...more });
const within = (timeoutMs: number): JobBody => ({ limits: { timeout_ms: timeoutMs } });

/** `real`: the programs of the operating system. `closed`: nothing of this machine is accessible. */
const PROPERTIES: Partial<Record<SandboxLevel, { readonly real: boolean; readonly closed: boolean }>> = {
  docker: { real: true, closed: true },
  bubblewrap: { real: true, closed: true },
  wasm: { real: false, closed: true },
  process: { real: true, closed: false },
};

type Register = (name: string, body: () => void | Promise<void>) => void;
const nothing: Register = () => undefined;

/** A test of something that a level does not promise is omitted, not skipped. */
const testIf = (applies: boolean): Register => (applies ? test : nothing);
const describeIf = (applies: boolean): Register => (applies ? describe.concurrent : nothing);

/** Registers the contract's tests for one level. */
export function describeSandbox(level: SandboxLevel): void {
  vi.setConfig({ testTimeout: SLOW });
  const skip = reasonToSkip(level);
  const { real = false, closed = false } = PROPERTIES[level] ?? {};
  describe.skipIf(skip !== null)(`${level}${skip === null ? '' : ` (skipped: ${skip})`}`, () => {
    let runner: TestRunner;
    /** The idle processes that wait for a job. */
    let idle: readonly string[] = [];
    const run = (body: JobBody, onOutput?: (stream: string, text: string) => void): Promise<Result> =>
      runner.run({ ...body, limits: { timeout_ms: PATIENT_MS, ...(body['limits'] as JobBody | undefined) } }, onOutput);

    beforeAll(async () => {
      process.env['CORTEX_TEST_SECRET'] = 'hunter2';
      // On a busy machine, a program that handles TERM needs more than the default grace period.
      const killGraceMs = 20_000;
      runner = await startRunner({ sandbox: level, allowProcess: level === 'process', warm: 1, killGraceMs });
      let before = '';
      idle = await vi.waitUntil(
        async () => {
          const now = workers();
          const settled = (await isReady(runner)) && JSON.stringify(now) === before;
          before = JSON.stringify(now);
          return settled ? now : null;
        },
        { timeout: SLOW, interval: 500 },
      );
    }, 2 * SLOW);
    afterAll(async () => {
      await runner.close();
      expect(workers()).toEqual([]);
    });
    /** After every group of cases, which run in parallel. */
    async function isUnharmed(): Promise<void> {
      await eventually(() => expect(workers()).toEqual(idle));
      expect(await run(shell('echo hello'))).toMatchObject({ end: 'exited', exitCode: 0, stdout: 'hello\n' });
    }

    /** Command lines of the processes that run jobs, except those of the embedded interpreters. */
    function workers(): string[] {
      return descendantsOf(process.pid)
        .map((pid) => {
          try {
            return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
          } catch {
            return '';
          }
        })
        .filter((line) => line !== '' && !/esbuild|guest\/(python|shell)\.ts/.test(line))
        .toSorted();
    }

    describe.concurrent('input and output of a program', () => {
      afterAll(isUnharmed, SLOW);

      test('[R2] python prints', async () => {
        expect(await run(python('print(2**100)'))).toMatchObject({
          end: 'exited',
          exitCode: 0,
          stdout: '1267650600228229401496703205376\n',
          stderr: '',
          truncated: false,
        });
      });

      test('[P14] inputs are data in python, whatever they contain', async () => {
        const inputs = { text: `"'\\\n$(id) \${x} {{}} </action>`, n: [1, { a: null }], 'odd name': true, ключ: '🙂' };
        const { stdout } = await run(python('import json; print(json.dumps(inputs))', { inputs }));
        expect(JSON.parse(stdout)).toEqual(inputs);
      });

      test('[P14] inputs are variables in the shell: strings unchanged, other values as JSON', async () => {
        const inputs = { text: 'a  b\n$(id); `id` "q" \'s\' --help *', n: [1, 2], 'not-a-name': 'x' };
        const { stdout } = await run(shell('printf "%s|" "$text" "$n"', { inputs }));
        expect(stdout).toBe(`${inputs.text}|[1,2]|`);
      });

      test('[O1] the trace of the request is the variable TRACEPARENT of every kind of program, and no input is', async () => {
        const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
        const inputs = { TRACEPARENT: 'forged' };
        const read = "import os; print(os.environ.get('TRACEPARENT'))";
        for (const body of [
          python(read, { inputs }),
          shell('echo "$TRACEPARENT"', { inputs }),
          { kind: 'tool', runtime: 'python3', code: read, inputs },
        ]) {
          expect(await runner.run(body, undefined, { traceparent })).toMatchObject({ stdout: `${traceparent}\n` });
        }
        expect(await run(python(read, { inputs }))).toMatchObject({ stdout: 'None\n' });
      });

      test('[P14] the file CORTEX_INPUTS contains all inputs, with any name', async () => {
        const inputs = { PATH: '/tmp', 'a b': [1], x: 'y' };
        const { stdout } = await run(shell('cat "$CORTEX_INPUTS"', { inputs }));
        expect(JSON.parse(stdout)).toEqual(inputs);
      });

      test('[P14] an input with the name of a system variable never becomes a variable', async () => {
        const names = [
          'PATH',
          'LD_PRELOAD',
          'BASH_ENV',
          'ENV',
          'IFS',
          'PYTHONPATH',
          'NODE_OPTIONS',
          'https_proxy',
          'HOME',
        ];
        const inputs = { ...Object.fromEntries(names.map((name) => [name, 'poison'])), other: 'fine' };
        const { stdout } = await run(
          shell(`printf "%s|" ${names.map((name) => `"$${name}"`).join(' ')} "$other"`, { inputs }),
        );
        expect(stdout).not.toContain('poison');
        expect(stdout).toMatch(/\|fine\|$/);
      });

      test('[R3] a script tool gets its input in argv, on stdin and in the file', async () => {
        const code = `
import json, os, sys
with open(os.environ["CORTEX_INPUTS"]) as file:
    print(json.dumps([json.loads(sys.argv[1]), json.load(sys.stdin), json.load(file), len(sys.argv)]))`;
        const inputs = { q: 'é $(id)', n: 1 };
        const { stdout } = await run({ kind: 'tool', runtime: 'python3', code, inputs });
        expect(JSON.parse(stdout)).toEqual([inputs, inputs, inputs, 2]);
      });

      test('[R3] a shell tool gets its input in argv and on stdin', async () => {
        const body = { kind: 'tool', runtime: 'shell', code: 'echo "$1"; cat', inputs: { q: 'a b' } };
        expect((await run(body)).stdout).toBe('{"q":"a b"}\n{"q":"a b"}');
      });

      test('[R3] argv is omitted above 96 KiB; stdin and the file are not', async () => {
        const code = 'import sys; print(len(sys.argv), len(sys.stdin.read()))';
        const inputs = { text: 'x'.repeat(limits.argumentBytes) };
        const { stdout } = await run({ kind: 'tool', runtime: 'python3', code, inputs });
        expect(stdout).toBe(`1 ${JSON.stringify(inputs).length}\n`);
      });

      testIf(!closed)('[R3] a program can ignore megabytes on stdin', async () => {
        const inputs = { text: 'x'.repeat(8_000_000) };
        const body = { kind: 'tool', runtime: 'python3', code: 'print("done")', inputs };
        expect(await run(body)).toMatchObject({ end: 'exited', exitCode: 0, stdout: 'done\n' });
      });

      test('[R3] without input, stdin is empty', async () => {
        expect((await run(shell('cat; echo end'))).stdout).toBe('end\n');
        expect((await run(python('import sys; print(repr(sys.stdin.read()))'))).stdout).toBe("''\n");
      });

      test('[R4] stderr and the exit code are returned', async () => {
        const failed = await run(python('import sys; print("out"); print("err", file=sys.stderr); sys.exit(3)'));
        expect(failed).toMatchObject({ end: 'exited', exitCode: 3, stdout: 'out\n', stderr: 'err\n' });
        expect(await run(shell('echo out; echo err >&2; exit 7'))).toMatchObject({
          exitCode: 7,
          stdout: 'out\n',
          stderr: 'err\n',
        });
      });

      test('[R3] a program that reports its failure and ends with an exit code keeps both', async () => {
        const report = '{"success": false, "error": "no such city"}\n';
        const code = `import sys, json\nprint(json.dumps({"success": False, "error": "no such city"}))\nsys.exit(1)`;
        const command = `echo '${report.trim()}'; exit 1`;
        const programs = [python(code), { ...python(code), kind: 'tool', runtime: 'python3' }];
        const commands = [shell(command), { ...shell(command), kind: 'tool', runtime: 'shell' }];
        for (const body of [...programs, ...commands])
          expect(await run(body)).toMatchObject({ end: 'exited', exitCode: 1, stdout: report, stderr: '' });
      });

      test('[R4] a traceback shows the code of the action and nothing of the runner', async () => {
        const { stderr, exitCode } = await run(python('def f():\n    raise ValueError("no")\nf()'));
        expect(exitCode).toBe(1);
        expect(stderr).toContain('File "code.py", line 2, in f\n    raise ValueError("no")');
        expect(stderr).not.toContain('harness');
      });

      test('[R3] each line is sent when it is printed', async () => {
        const id = `lines-${level}`;
        const code = `import time\nprint("one")\ntime.sleep(${NAP})\nprint("two")`;
        await runner.put(id, { session: id, ...python(code) });
        const seen = await runner.watch(id, 0, ({ type }) => type === 'stdout');
        expect(seen.at(-1)?.data).toEqual({ text: 'one\n' });
        // it is still running
        await runner.ask('DELETE', `/jobs/${id}`);
        const events = await runner.watch(id, 0, ({ type }) => type === 'exited');
        expect(events.at(-1)?.data).toMatchObject({ end: 'killed' });
      });

      testIf(!closed)('[R3] invalid UTF-8 and NUL become U+FFFD', async () => {
        const code = String.raw`import sys; sys.stdout.buffer.write(b"a\xff\xfe\x00b\xe2\x82\xac"); print("\ud800")`;
        const { stdout, exitCode } = await run(python(code));
        expect(exitCode).toBe(0);
        expect(stdout).toMatch(/^a\uFFFD{3}b€\uFFFD+\n$/);
      });

      test('two concurrent programs do not share files', async () => {
        const code = 'import time, os\nopen("here", "x").write("1")\ntime.sleep(0.3)\nprint(os.listdir("."))';
        const both = await Promise.all([run(python(code)), run(python(code))]);
        expect(both.map(({ stdout }) => stdout)).toEqual(["['here']\n", "['here']\n"]);
      });
    });

    describe.concurrent('the end of a program', () => {
      afterAll(isUnharmed, SLOW);

      test('[R4] an endless loop ends at its timeout', async () => {
        const result = await run(python('while True: pass', within(1_500)));
        expect(result).toMatchObject({ end: 'timeout', exitCode: null, stdout: '' });
      });

      test('[R4] a sleeping shell ends at its timeout', async () => {
        expect(await run(shell('sleep 60', within(500)))).toMatchObject({ end: 'timeout', exitCode: null });
      });

      test('[R4] a program that ends within a short timeout keeps its exit code', async () => {
        expect(await run(python('raise SystemExit(5)', within(PATIENT_MS)))).toMatchObject({
          end: 'exited',
          exitCode: 5,
        });
      });

      testIf(real && !closed)('[R4] a program that ignores TERM is killed after the grace period', async () => {
        const result = await run(shell('trap "" TERM; echo in; while :; do sleep 0.05; done', within(OUTPUT_FIRST_MS)));
        expect(result).toMatchObject({ end: 'timeout', stdout: 'in\n' });
      });

      testIf(real)('[R4] TERM reaches the program, which can handle it', async () => {
        // No process is started when TERM arrives: a child would handle it too until it executes its program.
        const code = 'trap "echo bye; exit 0" TERM; sleep 60 & echo in; wait';
        expect(await run(shell(code, within(OUTPUT_FIRST_MS)))).toMatchObject({ end: 'timeout', stdout: 'in\nbye\n' });
      });

      testIf(real && !closed)(
        '[R4] a double fork in its own session that ignores signals is ended at the timeout',
        async () => {
          // otherwise `workers` of afterEach finds it
          const orphan = `python3 -c 'import os, signal, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
time.sleep(${NAP})'`;
          expect((await run(shell(`${orphan}; sleep 60`, within(1_000)))).end).toBe('timeout');
          await eventually(() => expect(stillSleeping()).toEqual([]));
        },
      );

      testIf(real)('[R4] a child that outlives its program is ended too', async () => {
        expect(await run(shell(`setsid sleep ${NAP} >/dev/null 2>&1 & echo done`))).toMatchObject({
          end: 'exited',
          exitCode: 0,
          stdout: 'done\n',
        });
        await eventually(() => expect(stillSleeping()).toEqual([]));
      });

      testIf(real && !closed)('[R4] a program that stops itself ends at the timeout', async () => {
        expect((await run(shell('kill -STOP $$', within(300)))).end).toBe('timeout');
      });

      testIf(!closed)('[R3] endless output ends the program, and the output up to the limit is kept', async () => {
        const result = await run(python('while True: print("y" * 1000)'));
        expect(result).toMatchObject({ end: 'output_limit', exitCode: null, truncated: true });
        expect(result.stdout.length).toBe(limits.outputBytes);
      });

      testIf(!closed)('[R3] the output limit includes stderr, and a line that never ends', async () => {
        const code = 'import sys\nwhile True: sys.stderr.write("é" * 4096)';
        const result = await run(python(code));
        expect(result).toMatchObject({ end: 'output_limit', truncated: true, stdout: '' });
        expect(Buffer.byteLength(result.stderr)).toBeLessThanOrEqual(limits.outputBytes);
        expect(result.stderr.replaceAll('é', '')).toBe('');
      });

      test('[R1] a job can be killed', async () => {
        const id = `kill-${level}`;
        await runner.put(id, { session: id, ...python('print("in", flush=True)\nwhile True: pass') });
        await runner.watch(id, 0, ({ type }) => type === 'stdout');
        expect((await runner.ask('DELETE', `/jobs/${id}`)).status).toBe(202);
        const events = await runner.watch(id, 0, ({ type }) => type === 'exited');
        expect(events.at(-1)?.data).toMatchObject({ end: 'killed', exit_code: null });
      });
    });

    describe.concurrent('resource limits', () => {
      afterAll(isUnharmed, SLOW);

      testIf(!closed)('[R4] memory past the limit is refused or ends the program, reported separately', async () => {
        const result = await run(python('blocks = []\nwhile True: blocks.append(b"x" * 10_000_000)'));
        if (result.end === 'oom') expect(result.exitCode).not.toBe(0);
        else
          expect(result).toMatchObject({ end: 'exited', exitCode: 1, stderr: expect.stringContaining('MemoryError') });
      });

      test('[R4] a job can request more memory', async () => {
        const code = 'block = bytearray(300_000_000); print(len(block))';
        expect((await run(python(code))).stdout).toBe('');
        expect((await run(python(code, { limits: { memory_mb: 512 } }))).stdout).toBe('300000000\n');
      });

      testIf(level === 'docker' || level === 'bubblewrap')(
        '[R2] processes, disk, processors and output have the limits that the job requests',
        async () => {
          const forks = `
import os
made = 0
try:
    while made < 200:
        if os.fork() == 0:
            os.pause() if hasattr(os, "pause") else __import__("signal").pause()
        made += 1
except OSError: pass
print(made)`;
          const few = await run(python(forks, { limits: { processes: 8 } }));
          const more = await run(python(forks, { limits: { processes: 150 } }));
          expect(Number(few.stdout)).toBeLessThan(16);
          expect(Number(more.stdout)).toBeGreaterThan(100);

          const fill = 'head -c 3000000 /dev/zero > /work/big && echo fits';
          expect((await run(shell(fill, { limits: { disk_mb: 2 } }))).stdout).toBe('');
          expect((await run(shell(fill, { limits: { disk_mb: 4 } }))).stdout).toBe('fits\n');

          const cut = await run(shell('head -c 9000 /dev/zero | tr "\\0" x', { limits: { output_bytes: 4096 } }));
          expect(cut).toMatchObject({ end: 'output_limit', truncated: true, stdout: 'x'.repeat(4_096) });

          // by control groups, if available
          const spin =
            'import time\nbegin = time.perf_counter()\nwhile time.process_time() < 0.4: pass\nprint(time.perf_counter() - begin)';
          const slow = await run(python(spin, { limits: { cpus: 0.2 } }));
          if (level === 'docker' || fs.existsSync('/sys/fs/cgroup/cpu')) expect(Number(slow.stdout)).toBeGreaterThan(1);
        },
      );

      testIf(real)('[R2] the size of one file is limited, including a sparse one', async () => {
        const { stdout } = await run(
          shell('head -c 100000000 /dev/zero > big; echo $?; truncate -s 1T sparse; echo $?'),
        );
        expect(stdout).not.toMatch(/^0$/m);
      });

      testIf(real && closed)('[R2] the total memory of a program is limited', async () => {
        const code = `
import subprocess, sys
child = "import time; block = b'x' * 100_000_000; time.sleep(2)"
children = [subprocess.Popen([sys.executable, "-c", child]) for _ in range(8)]
print(sum(c.wait() != 0 for c in children))`;
        const result = await run(python(code, within(PATIENT_MS)));
        // by the control group if available; otherwise each process has its own limit
        if (fs.existsSync('/sys/fs/cgroup/memory') || fs.existsSync('/sys/fs/cgroup/memory.max')) {
          expect(result.end).toBe('oom');
        } else expect(result.end).toBe('exited');
      });

      testIf(level !== 'process')('[R2] endless recursion is an error of the program', async () => {
        const shellResult = await run(shell('f() { f | f; }; f; echo after', within(3_000)));
        expect(shellResult.stdout).not.toContain('Segmentation');
        const result = await run(python('def f(n): return f(n + 1)\nf(0)'));
        expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('RecursionError') });
      });
    });

    describeIf(closed)('isolation', () => {
      afterAll(isUnharmed, SLOW);

      test('[R2] no file of this machine is accessible, except the system’s own', async () => {
        const here = new URL(import.meta.url).pathname;
        const code = `
import os
for name in ("/etc/shadow", "/root", "/home", "${here}", "/proc/1/root/etc/shadow", "/var/run/docker.sock", "/sys", "/proc/kcore"):
    try: print("reached", name, os.listdir(name)[:3] if os.path.isdir(name) else open(name, "rb").read(20))
    except OSError: print("no")
`;
        const { stdout } = await run(python(code));
        expect(stdout.replaceAll(/reached \/home \['\w+'\]\n|reached \S+ \[\]\n/g, '')).not.toContain('reached');
      });

      test('[R2] the system is read-only; the work directory is writable', async () => {
        const code = `
import os
for name in ("/usr/x", "/etc/x", "/cortex/x", "/proc/sys/kernel/hostname", "/x"):
    try: open(name, "w").write("x"); print("wrote", name)
    except OSError: pass
open("mine", "w").write("1"); print(open("/work/mine").read())
`;
        const { stdout } = await run(python(code));
        expect(stdout).toContain('1\n');
        if (real) expect(stdout).not.toContain('wrote');
        // a virtual file system can be writable: it contains nothing of this machine
        for (const name of ['/usr/x', '/etc/x', '/x']) expect(fs.existsSync(name)).toBe(false);
      });

      testIf(real && closed)('[R2] node runs script tools', async () => {
        const code =
          'console.log(JSON.stringify([process.argv[2], require("node:fs").readFileSync(0, "utf8"), Object.keys(process.env).length < 12]))';
        const { stdout } = await run({ kind: 'tool', runtime: 'node', code, inputs: { a: 1 } });
        expect(JSON.parse(stdout)).toEqual(['{"a":1}', '{"a":1}', true]);
      });
    });
  });
}

/** Sleeping processes of this machine that a test left running. */
function stillSleeping(): string[] {
  return fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((line) => line.includes(`sleep ${NAP}`) || line.includes(`sleep(${NAP})`));
}
