/** Open files and environment variables of the runner's starter do not reach any sandbox (R2). */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { descendantsOf } from '../../sandbox/process-tree.ts';
import type { SandboxLevel } from '../../sandbox/sandbox.ts';
import { dockerSocket, reasonToSkip } from '../support/levels.ts';
import { isReady } from '../support/leftovers.ts';
import { withSnapshot } from '../support/python-snapshot.ts';
import { MAIN, observed } from '../support/runner-process.ts';
import { SECRET, signed } from '../support/test-runner.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lacks } from '../../../test/support/programs.ts';

const SLOW = 120_000;
const WORD = 'only-for-the-administrator';
const TOOL_SECRET = 'a-secret-of-the-environment';
/** Low descriptors, which libuv closes; and ones after a gap, which libuv does not find. */
const OPEN = 'exec 3<"$1" 7<"$1" 19<"$1" 40>>"$2" 100<"$1" 230<"$1"; shift 2; exec "$@"';

let directory: string;
let file: string;
let log: string;
let runner: ChildProcess | null;
beforeEach(async () => {
  directory = await fs.mkdtemp(path.join(os.tmpdir(), 'runner-inherited-'));
  file = path.join(directory, 'secret');
  log = path.join(directory, 'log');
  await fs.writeFile(file, WORD, { mode: 0o600 });
  await fs.writeFile(log, '', { mode: 0o600 });
  runner = null;
});
afterEach(async () => {
  runner?.kill('SIGKILL');
  await fs.rm(directory, { recursive: true, force: true });
});

async function start(level: SandboxLevel): Promise<{ readonly url: string; readonly pid: number }> {
  if (level === 'wasm') withSnapshot(path.join(directory, 'state'));
  const child = spawn('bash', ['-c', OPEN, 'bash', file, log, process.execPath, MAIN], {
    env: {
      PATH: process.env['PATH'] ?? '',
      CORTEX_STATE_DIR: path.join(directory, 'state'),
      RUNNER_PORT: '0',
      RUNNER_SECRET: SECRET,
      RUNNER_SANDBOX: level,
      RUNNER_WARM: '1',
      RUNNER_ALLOW_PROCESS: '1',
      RUNNER_LOG: 'silent',
      RUNNER_DOCKER: level === 'docker' ? (dockerSocket ?? '') : 'off',
      TOOL_SECRET,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  runner = child;
  const { url } = await observed(child).ready();
  await eventually(async () => expect(await isReady({ url })).toBe(true));
  return { url, pid: child.pid ?? 0 };
}

async function run(url: string, kind: string, code: string): Promise<string> {
  const id = randomUUID();
  await fetch(await signed(url, 'PUT', `/jobs/${id}`, JSON.stringify({ kind, session: 's', code })));
  return await eventually(async () => {
    const record = (await (await fetch(await signed(url, 'GET', `/jobs/${id}`, ''))).json()) as {
      readonly state: string;
      readonly stdout: string;
      readonly stderr: string;
    };
    expect(record.state).toBe('ended');
    return record.stdout + record.stderr;
  });
}

/** The targets of a process's descriptors; none if it has ended. */
function openOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => readlinkSync(`/proc/${pid}/fd/${name}`));
  } catch {
    return [];
  }
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return '';
  }
}

/**
 * Lists the open descriptors of a job. It reads only targets inside the directory of this test: at the level
 * `process`, other visible files belong to other programs of this machine.
 */
const LOOK = {
  // from a program that the shell starts, because the shell keeps copies of its own
  shell: String.raw`ls -l /proc/self/fd 2>/dev/null | sed -n 's/^.* \([0-9]*\) -> /open \1 /p'; echo looked`,
  python: `
import os
for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
    try: to = os.readlink("/proc/self/fd/" + name)
    except OSError: continue
    print("open", name, to)
    if "runner-inherited-" in to:
        print(os.pread(int(name), 100, 0))
print("looked")`,
};
/** The descriptors are opened by a bash. */
const skipStart =
  process.platform !== 'linux'
    ? 'descriptors pass an exec on Linux only'
    : lacks('bash')
      ? 'bash is not installed'
      : null;

/** Of every visible process; only at levels where these belong to the sandbox. */
const ENVIRONMENTS = {
  shell: `cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; env; echo looked`,
  python: `
import glob, os
print(dict(os.environ))
for place in glob.glob("/proc/[0-9]*/environ"):
    try: print(open(place).read())
    except OSError: pass
print("looked")`,
};

describe.each(['docker', 'bubblewrap', 'wasm', 'process'] as const)('level %s', (level) => {
  const skip = skipStart ?? reasonToSkip(level);
  test.skipIf(skip !== null)(
    '[R2] no descriptor and no variable of the starter reaches a sandbox, and the runner opens nothing that a child would inherit',
    { timeout: SLOW },
    async () => {
      const { url, pid } = await start(level);
      // of the runner itself, which starts all of them
      expect(inheritableOf(pid)).toEqual([]);
      // including those that wait for a program
      for (const child of descendantsOf(pid)) {
        expect(openOf(child)).not.toContain(file);
        expect(openOf(child)).not.toContain(log);
        expect(environmentOf(child)).not.toContain(TOOL_SECRET);
        expect(environmentOf(child)).not.toContain(SECRET);
      }
      for (const kind of ['shell', 'python'] as const) {
        // without a sandbox, a job has the rights of the runner's user, who can read the environment of all processes
        const code = level === 'process' ? LOOK[kind] : `${LOOK[kind]}\n${ENVIRONMENTS[kind]}`;
        const found = await run(url, kind, code);
        expect(found.match(/^looked$/gm)).toHaveLength(level === 'process' ? 1 : 2);
        expect(found).not.toContain(WORD);
        const numbers = [...found.matchAll(/^open (\d+) (?!\/proc\/)/gm)].map(([, number]) => Number(number));
        expect(numbers.filter((number) => number > 2)).toEqual([]);
        expect(found).not.toContain(TOOL_SECRET);
        expect(found).not.toContain(SECRET);
      }
      expect(await fs.readFile(log, 'utf8')).toBe('');
    },
  );
});

/** Open descriptors that a child would inherit. */
function inheritableOf(pid: number): string[] {
  const found = readdirSync(`/proc/${pid}/fdinfo`).map((name) => ({ name, flags: flagsOf(pid, name) }));
  expect(found.length).toBeGreaterThan(3);
  return found.flatMap(({ name, flags }) =>
    Number(name) > 2 && flags !== null && (Number.parseInt(flags, 8) & 0o2000000) === 0 ? [name] : [],
  );
}

/** In octal digits; null: it has been closed. */
function flagsOf(pid: number, name: string): string | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/fdinfo/${name}`, 'utf8');
  } catch {
    return null;
  }
  return /^flags:\s*([0-7]+)$/m.exec(text)?.[1] ?? '0';
}
