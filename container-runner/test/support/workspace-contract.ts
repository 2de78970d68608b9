/** The contract of workspaces at every sandbox level (C7): what a program gets, and what is taken when it has ended. */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { limits } from '../../limits.ts';
import type { SandboxLevel, SandboxProcess } from '../../sandbox/sandbox.ts';
import { reasonToSkip } from './levels.ts';
import { type Given, MemoryReceiver, sha256, type Wish, WorkspaceKit } from './workspace-programs.ts';

const SLOW = 120_000;
const TIME = 1_600_000_000;
const GIVEN: Readonly<Record<string, string | Given>> = {
  'a.txt': 'hello\n',
  'bin/run.sh': { content: '#!/bin/sh\necho ran\n', executable: true, modifiedAt: TIME * 1_000 + 400 },
  gone: 'x',
};
const BIG = randomBytes(10_000_000);
/** Names that a workspace can have; the last one needs a long name in archives. */
const NAMES = ['ключ 🙂.txt', 'it\'s $(id) "q" *', '-rf', 'é', 'e\u0301', `${'long '.repeat(40)}/${'x'.repeat(200)}`];

/** A test of something that a level does not promise is omitted, not skipped. */
const testIf = (applies: boolean): ((name: string, body: () => Promise<void>) => void) =>
  applies ? test : () => undefined;

/** Registers the contract's tests for one level. */
export function describeWorkspace(level: SandboxLevel): void {
  const skip = reasonToSkip(level);
  const hasMounts = level === 'docker' || level === 'bubblewrap';
  describe.skipIf(skip !== null)(`workspace, ${level}${skip === null ? '' : ` (skipped: ${skip})`}`, () => {
    let kit: WorkspaceKit;
    beforeAll(async () => {
      vi.setConfig({ testTimeout: SLOW });
      kit = await WorkspaceKit.open(level, 1);
    }, 2 * SLOW);
    afterAll(() => kit.close(), SLOW);

    /** A warm sandbox, if the level has warm ones, and one that is started for its program. */
    const STARTS = [
      ['warm', {}],
      ['cold', { memoryMb: 300, diskMb: 80 }],
    ] as const;
    // without a sandbox, nothing is warm
    describe.each(STARTS.slice(level === 'process' ? 1 : 0))('%s', (start, resources) => {
      const ready = (): Promise<unknown> => (start === 'warm' ? kit.ready() : Promise.resolve());

      test('[C7] python finds its files, executable as given; what it leaves is taken, and its exit code is kept', async () => {
        await ready();
        const code = `
import os
assert os.path.samefile(os.environ["CORTEX_WORKSPACE"], ".")
print(open("a.txt").read(), end="")
print(os.access("bin/run.sh", os.X_OK), bool(os.stat("a.txt").st_mode & 0o100), int(os.stat("bin/run.sh").st_mtime))
with open("table.csv", "w") as file: file.write("x,y\\n1,2\\n")
os.chmod("bin/run.sh", 0o644)
os.chmod("a.txt", 0o755)
os.remove("gone")
open(os.environ["HOME"] + "/note", "w").write("outside of the workspace")
raise SystemExit(3)`;
        const { exitCode, stdout, stderr, receiver } = await kit.python(code, { given: GIVEN, ...resources });
        expect({ exitCode, stdout, stderr }).toEqual({
          exitCode: 3,
          stdout: `hello\nTrue False ${TIME}\n`,
          stderr: '',
        });
        const { gone: _, ...kept } = texts(GIVEN);
        expect(receiver.files).toEqual({ ...kept, 'table.csv': 'x,y\n1,2\n' });
        expect(receiver.entries.get('bin/run.sh')).toMatchObject({ executable: false });
        expect(receiver.entries.get('a.txt')).toMatchObject({ executable: true });
        expect(receiver.completed).toBe(1);
      });

      test('[C7] a shell finds its files, executable as given; what it leaves is taken, and its exit code is kept', async () => {
        await ready();
        const code = `
cat a.txt "$CORTEX_WORKSPACE/a.txt"; test -x bin/run.sh && ! test -x a.txt && echo same
chmod -x bin/run.sh; chmod +x a.txt; rm gone; mkdir -p new/folder; echo 1 > new/folder/file; exit 5`;
        const { exitCode, stdout, stderr, receiver } = await kit.shell(code, { given: GIVEN, ...resources });
        expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 5, stdout: 'hello\nhello\nsame\n', stderr: '' });
        const { gone: _, ...kept } = texts(GIVEN);
        expect(receiver.files).toEqual({ ...kept, 'new/folder/file': '1\n' });
        expect(receiver.entries.get('bin/run.sh')).toMatchObject({ executable: false });
        expect(receiver.entries.get('a.txt')).toMatchObject({ executable: true });
        expect(receiver.completed).toBe(1);
      });

      testIf(start === 'warm' || level === 'process')(
        '[C7] a program without a workspace starts in its work directory, and has no folder for files',
        async () => {
          await ready();
          const code = `
import os
print(os.getcwd() == os.environ["HOME"], "CORTEX_WORKSPACE" in os.environ)
try: open("/workspace/x", "w"); print("wrote")
except OSError: print("no")`;
          const none = { given: null, ...resources };
          expect((await kit.python(code, none)).stdout).toBe('True False\nno\n');
          const command = 'test "$PWD" = "$HOME" && echo "[$CORTEX_WORKSPACE]"; test -w /workspace';
          expect(await kit.shell(command, none)).toMatchObject({ stdout: '[]\n', exitCode: 1 });
        },
      );
    });

    test('[C7] ten megabytes and names of all kinds arrive unchanged in both directions', async () => {
      const names = Object.fromEntries(NAMES.map((name) => [name, name]));
      const given = { ...names, 'big.bin': { content: BIG }, empty: '' };
      const expected = { ...names, 'big.bin': sha256(BIG), empty: '' };
      for (const { exitCode, receiver } of [
        await kit.python('import os; assert os.path.getsize("big.bin") == 10_000_000', { given }),
        await kit.shell('test -s big.bin', { given }),
      ]) {
        expect(exitCode).toBe(0);
        expect(receiver.files).toEqual(expected);
      }
    });

    test('[C7] a workspace is taken too if it is empty, or if its program crashes', async () => {
      const crashed = await kit.python('import os; open("x", "w").write("1"); os._exit(4)');
      expect({ exitCode: crashed.exitCode, files: crashed.receiver.files }).toEqual({ exitCode: 4, files: { x: '1' } });
      expect(crashed.receiver.completed).toBe(1);
      const { receiver } = await kit.shell('true');
      expect([receiver.entries.size, receiver.completed]).toEqual([0, 1]);
    });

    test('[C7] a tool starts in its work directory, sees the workspace, and gets its standard input', async () => {
      const tool = { entry: 'tool', given: GIVEN, stdin: 'input\n' } as const;
      const python = `
import os, sys
print(sys.stdin.read(), end="")
print(os.path.exists("a.txt"), open(os.environ["CORTEX_WORKSPACE"] + "/a.txt").read(), end="")`;
      expect((await kit.python(python, tool)).stdout).toBe('input\nFalse hello\n');
      const shell = 'cat; test -e a.txt || cat "$CORTEX_WORKSPACE/a.txt"; echo 1 > "$CORTEX_WORKSPACE/made"';
      const { stdout, receiver } = await kit.shell(shell, tool);
      expect(stdout).toBe('input\nhello\n');
      expect(receiver.files['made']).toBe('1\n');
    });

    // where programs can handle the signal to end, the next test has it
    const ways = level === 'wasm' ? (['terminate', 'kill'] as const) : (['kill'] as const);
    test.each(ways)('[C7] nothing is taken of a program that is stopped: %s', async (how) => {
      const code = 'open("x", "w").write("1")\nprint("in", flush=True)\nwhile True: pass';
      const { stdout, exitCode, receiver } = await kit.python(code, { onOutput: (_, process) => process[how]() });
      expect({ stdout, completed: receiver.completed }).toEqual({ stdout: 'in\n', completed: 0 });
      expect(exitCode).not.toBe(0);
    });

    testIf(level !== 'wasm')('[C7] a program that handles the signal to end leaves nothing either', async () => {
      await kit.ready();
      const code = 'trap "echo bye; exit 0" TERM; echo 1 > x; sleep 60 & echo in; wait';
      const onOutput = (text: string, process: SandboxProcess): void => {
        if (text === 'in\n') process.terminate();
      };
      const { receiver, stdout } = await kit.shell(code, { onOutput });
      expect({ completed: receiver.completed, stdout }).toEqual({ completed: 0, stdout: 'in\nbye\n' });
    });

    testIf(level !== 'wasm')('[C7] a program that a signal kills leaves its files', async () => {
      await kit.ready();
      const { receiver } = await kit.shell('echo 1 > x; kill -SEGV $$');
      expect({ files: receiver.files, completed: receiver.completed }).toEqual({ files: { x: '1\n' }, completed: 1 });
    });

    testIf(level !== 'wasm')('[C7] a child that outlives its program is ended before the files are taken', async () => {
      await kit.ready();
      const code =
        '(while :; do echo more > part; mv part log; done) >/dev/null 2>&1 & while ! test -s log; do :; done';
      const { receiver } = await kit.shell(code);
      expect(receiver.files['log']).toBe('more\n');
      expect(receiver.completed).toBe(1);
    });

    testIf(level !== 'wasm')('[C7] node has the same workspace', async () => {
      await kit.ready();
      const source = `
const fs = require('node:fs');
fs.writeFileSync('out', fs.readFileSync('a.txt', 'utf8').toUpperCase());
process.exit(6);`;
      const { exitCode, receiver } = await kit.run({ interpreter: 'node', source, given: GIVEN });
      expect({ exitCode, out: receiver.files['out'] }).toEqual({ exitCode: 6, out: 'HELLO\n' });
    });

    testIf(level === 'docker')('[C7] a program of an image has the same workspace', async () => {
      const command = 'pwd; cat "$CORTEX_WORKSPACE/a.txt"; echo 1 > /workspace/made; exit 7';
      const tool = await kit.image({ command }, { given: GIVEN });
      const code = await kit.image({ command, directory: '/workspace' }, { given: GIVEN });
      expect([tool, code].map(({ exitCode, stdout }) => [exitCode, stdout])).toEqual([
        [7, '/work\nhello\n'],
        [7, '/workspace\nhello\n'],
      ]);
      for (const { receiver } of [tool, code]) {
        expect(receiver.files).toEqual({ ...texts(GIVEN), made: '1\n' });
        expect(receiver.completed).toBe(1);
      }
    });

    testIf(level === 'docker')('[C7] a reserved container of an image serves programs with and without', async () => {
      const command = 'ls -d /workspace; true';
      for (const workspace of [true, false]) {
        const held = await kit.sandbox.holdImage?.('busybox');
        const { stdout, receiver } = await kit.image({ command }, { given: workspace ? {} : null }, held);
        expect([stdout, receiver.completed]).toEqual(workspace ? ['/workspace\n', 1] : ['', 0]);
      }
    });

    test('[C7] code imports files of the workspace, which hide no other module', async () => {
      await kit.ready();
      const code = 'import colorsys, helper\nprint(helper.X, hasattr(colorsys, "rgb_to_hsv"))';
      const { stdout, stderr } = await kit.python(code, { given: { 'helper.py': 'X = 5', 'colorsys.py': 'X = 6' } });
      expect({ stdout, stderr }).toEqual({ stdout: '5 True\n', stderr: '' });
    });

    test('[C7] a receiver that says stop ends the program’s sandbox, and nothing is complete', async () => {
      await kit.ready();
      const receiver = new MemoryReceiver({ entries: 3 });
      const code = 'for n in range(2_000): open(f"f{n}", "w").write("x" * 2_000)';
      await kit.python(code, { receiver });
      expect(receiver).toMatchObject({ completed: 0, refused: true });
      expect(receiver.entries.size).toBe(3);
    });

    testIf(hasMounts)(
      '[C7] a program whose files do not fit does not start, and nothing of it is complete',
      async () => {
        await kit.ready();
        const large = { content: Buffer.alloc((limits.workspaceRoomMb / 2) * 1_048_576 + 1) };
        const given = { first: 'x', a: large, b: large };
        // The files that fit would be complete: the others would count as deleted.
        const wish = (): Wish => ({ given, receiver: new MemoryReceiver({ bytes: 3 * large.content.length }) });
        for (const ran of [await kit.python('print("ran")', wish()), await kit.shell('echo ran', wish())]) {
          expect({ stdout: ran.stdout, completed: ran.receiver.completed }).toEqual({ stdout: '', completed: 0 });
        }
      },
    );

    test('[C7] a file that the runner cannot read ends the job as lost, not as exited', async () => {
      const files = await kit.given({ 'gone.txt': 'text' });
      await fs.rm(path.join(kit.folder, sha256(Buffer.from('text'))));
      const receiver = new MemoryReceiver();
      const ran = await kit.python('print("ran")', { workspace: { files, receiver } }).catch(() => null);
      // without a sandbox, the program does not even start
      if (level === 'process') expect(ran).toBeNull();
      else expect(ran).toMatchObject({ lost: true, stdout: '' });
      expect(receiver.completed).toBe(0);
    });
  });
}

function texts(given: typeof GIVEN): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).map(([name, file]) => [name, typeof file === 'string' ? file : String(file.content)]),
  );
}
