/**
 * The contract of every sandbox: input, resource limits and end of a program (R2-R4, P14). What is decided before a level
 * starts a program is in `jobs/job-data.test.ts`, what of its output counts in `supervise.test.ts`. Hostile programs are in
 * `abuse-table.ts`; here they run only at the level that promises no isolation, which the table excludes.
 */
import fs from 'node:fs';

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { descendantsOf } from '../../sandbox/process-tree.ts';
import type { SandboxLevel } from '../../sandbox/sandbox.ts';
import { isReady } from './leftovers.ts';
import { reasonToSkip } from './levels.ts';
import { type JobBody, type Result, startRunner, type TestRunner } from './test-runner.ts';
import { eventually } from '../../../test/support/eventually.ts';

const SLOW = 300_000;
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

      const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      /** With a trace, which every kind of program gets as a variable (O1). */
      const traced = (body: JobBody): Promise<Result> => runner.run(body, undefined, { traceparent });
      const OK = { end: 'exited', exitCode: 0, stderr: '', truncated: false };

      test('[P14] [O1] inputs are data in python, whatever they contain', async () => {
        const inputs = { text: `"'\\\n$(id) \${x} {{}} </action>`, n: [1, { a: null }], 'odd name': true, ключ: '🙂' };
        const code = 'import json, os; print(json.dumps([inputs, os.environ.get("TRACEPARENT")]))';
        const { stdout, ...end } = await traced(python(code, { inputs }));
        expect(JSON.parse(stdout)).toEqual([inputs, traceparent]);
        expect(end).toEqual(OK);
      });

      test('[P14] [O1] inputs are variables in the shell and all of them are in a file; none replaces a variable of the system', async () => {
        const names = ['PATH', 'LD_PRELOAD', 'BASH_ENV', 'IFS', 'PYTHONPATH', 'NODE_OPTIONS', 'https_proxy', 'HOME'];
        const poison = Object.fromEntries(names.map((name) => [name, 'poison']));
        const inputs = {
          ...poison,
          TRACEPARENT: 'forged',
          text: 'a  b\n$(id); `id` | id && id "q" \'s\' --help $HOME *',
          n: [1, 2],
          'not-a-name': 'x',
        };
        const code = `printf "%s|" ${names.map((name) => `"$${name}"`).join(' ')} "$text" "$n" "$TRACEPARENT"; cat "$CORTEX_INPUTS"`;
        const { stdout } = await traced(shell(code, { inputs }));
        const [variables = '', file = ''] = stdout.split(`${inputs.text}|[1,2]|${traceparent}|`);
        expect(variables.split('|')).toHaveLength(names.length + 1);
        expect(variables).not.toContain('poison');
        expect(JSON.parse(file)).toEqual(inputs);
      });

      test('[R3] [O1] a script tool gets its input in argv, on stdin and in the file, and keeps its output and exit code', async () => {
        const code = `
import json, os, sys
with open(os.environ["CORTEX_INPUTS"]) as file:
    print(json.dumps([json.loads(sys.argv[1]), json.load(sys.stdin), json.load(file), len(sys.argv), os.environ["TRACEPARENT"]]))
sys.exit(1)`;
        const inputs = { q: 'é $(id)\n" *', n: 1 };
        const { stdout, ...end } = await traced({ kind: 'tool', runtime: 'python3', code, inputs });
        expect(JSON.parse(stdout)).toEqual([inputs, inputs, inputs, 2, traceparent]);
        expect(end).toEqual({ ...OK, exitCode: 1 });
      });

      test('[R3] a shell tool gets its input in argv and on stdin, and keeps its output and exit code', async () => {
        const body = { kind: 'tool', runtime: 'shell', code: 'echo "$1"; cat; exit 3', inputs: { q: 'a b' } };
        expect(await run(body)).toEqual({ ...OK, exitCode: 3, stdout: '{"q":"a b"}\n{"q":"a b"}' });
      });

      testIf(!closed)('[R3] a program can ignore megabytes on stdin', async () => {
        const inputs = { text: 'x'.repeat(8_000_000) };
        const body = { kind: 'tool', runtime: 'python3', code: 'print("done")', inputs };
        expect(await run(body)).toMatchObject({ end: 'exited', exitCode: 0, stdout: 'done\n' });
      });

      test('[R3] [R4] without input, stdin is empty; stderr and the exit code are returned', async () => {
        const code = 'import sys; print(repr(sys.stdin.read())); print("err", file=sys.stderr); sys.exit(3)';
        const failed = { end: 'exited', stderr: 'err\n' };
        expect(await run(python(code))).toMatchObject({ ...failed, exitCode: 3, stdout: "''\n" });
        const command = 'cat; echo out; echo err >&2; exit 7';
        expect(await run(shell(command))).toMatchObject({ ...failed, exitCode: 7, stdout: 'out\n' });
      });

      testIf(real && closed)('[R2] node runs script tools', async () => {
        const code =
          'console.log(JSON.stringify([process.argv[2], require("node:fs").readFileSync(0, "utf8"), Object.keys(process.env).length < 12]))';
        const { stdout } = await run({ kind: 'tool', runtime: 'node', code, inputs: { a: 1 } });
        expect(JSON.parse(stdout)).toEqual(['{"a":1}', '{"a":1}', true]);
      });

      test('[R4] a traceback shows the code of the action and nothing of the runner', async () => {
        const { stderr, exitCode } = await run(python('def f():\n    raise ValueError("no")\nf()'));
        expect(exitCode).toBe(1);
        expect(stderr).toContain('File "code.py", line 2, in f\n    raise ValueError("no")');
        expect(stderr).not.toContain('harness');
      });

      test('[R3] [R1] each line is sent when it is printed, and a program can be killed', async () => {
        const id = `lines-${level}`;
        await runner.put(id, { session: id, ...python('print("one")\nwhile True: pass\nprint("two")') });
        const seen = await runner.watch(id, 0, ({ type }) => type === 'stdout');
        expect(seen.at(-1)?.data).toEqual({ text: 'one\n' });
        expect((await runner.ask('DELETE', `/jobs/${id}`)).status).toBe(202);
        const events = await runner.watch(id, 0, ({ type }) => type === 'exited');
        expect(events.at(-1)?.data).toMatchObject({ end: 'killed', exit_code: null });
      });

      test('[R2] two concurrent programs do not share files', async () => {
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

      testIf(real)('[R4] TERM reaches the program, which can handle it', async () => {
        // No process is started when TERM arrives: a child would handle it too until it executes its program.
        const code = 'trap "echo bye; exit 0" TERM; sleep 60 & echo in; wait';
        const id = `term-${level}`;
        await runner.put(id, { session: id, ...shell(code) });
        await runner.watch(id, 0, ({ type }) => type === 'stdout');
        expect((await runner.ask('DELETE', `/jobs/${id}`)).status).toBe(202);
        const events = await runner.watch(id, 0, ({ type }) => type === 'exited');
        expect(events.at(-1)?.data).toMatchObject({ end: 'killed' });
        const printed = events.filter(({ type }) => type === 'stdout').map(({ data }) => String(data['text']));
        expect(printed.join('')).toBe('in\nbye\n');
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

      testIf(real && !closed)(
        '[R4] a program that stops itself, which TERM does not reach, is killed after the grace period',
        async () => {
          const impatient = await startRunner({ sandbox: level, allowProcess: true, warm: 0, killGraceMs: 300 });
          expect(await impatient.run(shell('kill -STOP $$', within(300)))).toMatchObject({ end: 'timeout' });
          await impatient.close();
        },
      );
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
        if (level !== 'docker') expect((await run(python(code))).stdout).toBe('');
        expect((await run(python(code, { limits: { memory_mb: 512 } }))).stdout).toBe('300000000\n');
      });

      testIf(level === 'docker' || level === 'bubblewrap')(
        '[R2] processes, disk, processors and output have the limits that the job requests',
        async () => {
          const code = `
import os, signal, sys, time
begin = time.perf_counter()
while time.process_time() < 0.4: pass
elapsed = time.perf_counter() - begin
try:
    with open("/work/big", "wb") as file: file.write(bytes(3_000_000))
    fits = True
except OSError: fits = False
made = 0
try:
    while made < 200:
        if os.fork() == 0: signal.pause()
        made += 1
except OSError: pass
print(made, fits, elapsed)
sys.stdout.flush()
os.write(1, b"x" * 9_000)`;
          const few = await run(python(code, { limits: { processes: 8, disk_mb: 2, cpus: 0.2 } }));
          const [processes, fits, seconds] = few.stdout.split(/\s/);
          expect(Number(processes)).toBeLessThan(16);
          expect(fits).toBe('False');
          // by control groups, if available
          if (level === 'docker' || fs.existsSync('/sys/fs/cgroup/cpu')) expect(Number(seconds)).toBeGreaterThan(1);

          const more = await run(python(code, { limits: { processes: 150, disk_mb: 4, output_bytes: 4_096 } }));
          expect(more).toMatchObject({ end: 'output_limit', truncated: true });
          expect(more.stdout).toHaveLength(4_096);
          const [moreProcesses, moreFits] = more.stdout.split(/\s/);
          expect(Number(moreProcesses)).toBeGreaterThan(100);
          expect(moreFits).toBe('True');
        },
      );

      testIf(!closed)('[R2] the size of one file is limited, including a sparse one', async () => {
        const { stdout } = await run(
          shell('head -c 100000000 /dev/zero > big; echo $?; truncate -s 1T sparse; echo $?'),
        );
        expect(stdout).toMatch(/^[1-9]\d*\n[1-9]\d*\n$/);
      });

      testIf(real && closed)('[R2] the total memory of a program is limited', async () => {
        const code = `
import subprocess, sys
child = "import time; block = b'x' * 100_000_000; time.sleep(2)"
children = [subprocess.Popen([sys.executable, "-c", child]) for _ in range(4)]
print(sum(c.wait() != 0 for c in children))`;
        const result = await run(python(code, within(PATIENT_MS)));
        // by the control group if available; otherwise each process has its own limit
        if (fs.existsSync('/sys/fs/cgroup/memory') || fs.existsSync('/sys/fs/cgroup/memory.max')) {
          expect(result.end).toBe('oom');
        } else expect(result.end).toBe('exited');
      });

      testIf(level !== 'process')('[R2] endless recursion is an error of the program', async () => {
        if (level === 'wasm') {
          const { stdout, stderr } = await run(shell('f() { f | f; }; f; echo after', within(3_000)));
          expect([stdout, stderr]).toEqual(['', expect.stringContaining('recursion')]);
        }
        const result = await run(python('def f(n): return f(n + 1)\nf(0)'));
        expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('RecursionError') });
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
