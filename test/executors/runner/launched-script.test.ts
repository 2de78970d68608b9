import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { ScriptLaunch, ScriptRuntime } from '../../../src/domain/manifests/program.ts';
import { launchedScript } from '../../../src/executors/runner/launched-script.ts';
import { sandboxHint } from '../../../src/executors/runner/sandbox-hint.ts';
import { toolExecutor } from '../../../src/executors/tool.ts';
import { toolOf } from '../../support/definitions.ts';
import { callOf, contextOf, errorOf, fakeRunner } from '../support.ts';
import { lacks } from '../../support/programs.ts';

const PLAIN: ScriptLaunch = { path: 'tool', files: {}, argument: 'json', environment: {}, bash: false };
const INPUTS = '{"city":"Ulm"}';
const NAMES = { python3: 'program.py', node: 'program.js', shell: 'program.sh' } as const;
const HARNESS = join(import.meta.dirname, '../../../container-runner/guest/harness.py');
const COMMANDS = {
  python3: ['python3', '-I', '-X', 'utf8', HARNESS, 'tool'],
  node: [process.execPath],
  shell: ['sh'],
} as const;
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Runs it as a sandbox does: the input in the first argument, on standard input and in a file. */
function run(runtime: ScriptRuntime, source: string, launch: Partial<ScriptLaunch>): string {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-script-'));
  folders.push(folder);
  const program = join(folder, NAMES[runtime]);
  const inputs = join(folder, 'inputs.json');
  writeFileSync(program, launchedScript(runtime, source, { ...PLAIN, ...launch }));
  writeFileSync(inputs, INPUTS);
  const { stdout, stderr } = spawnSync(COMMANDS[runtime][0], [...COMMANDS[runtime].slice(1), program, INPUTS], {
    cwd: folder,
    env: { PATH: process.env['PATH'], CORTEX_INPUTS: inputs },
    input: INPUTS,
    encoding: 'utf8',
  });
  return `${stdout}${stderr}`.replaceAll(folder, '.');
}

describe('[M3] a script that needs more than its input', () => {
  test('without such needs is unchanged', () => {
    expect(launchedScript('python3', 'print(1)', undefined)).toBe('print(1)');
  });

  test.skipIf(lacks('python3')).each<[string, string, Partial<ScriptLaunch>, string]>([
    ['reads the file', 'import sys\nprint(open(sys.argv[1]).read())', { argument: 'file' }, INPUTS],
    ['reads standard input', 'import sys\nprint(sys.stdin.read(), len(sys.argv))', { argument: 'file' }, `${INPUTS} 2`],
    ['reads variables', "import os\nprint(os.environ['A'])", { environment: { A: 'it\'s "$x"\n' } }, 'it\'s "$x"\n'],
    [
      'is the main program',
      'from __future__ import annotations\nprint(__name__)',
      { environment: { A: '' } },
      '__main__',
    ],
    [
      'imports modules, and reads files beside it',
      'import os, lib.b, sys\nprint(lib.b.X, os.path.relpath(__file__), sys.argv[0] == __file__)\nprint(open(os.path.join(os.path.dirname(__file__), "..", "a.txt"), newline="").read())',
      { path: 'src/main.py', files: { 'src/lib/b.py': 'X = "é🙂"', 'a.txt': 'a\r\n' } },
      'é🙂 .tool/src/main.py True\na\r\n',
    ],
  ])('in Python %s', (_what, source, launch, output) => {
    expect(run('python3', source, launch)).toBe(`${output}\n`);
  });

  test.skipIf(lacks('python3'))('in Python fails at the line of its own source', () => {
    const output = run('python3', 'x = 1\nraise ValueError("no")\n', { path: 'src/main.py', argument: 'file' });
    expect(output).toContain('File "src/main.py", line 2, in <module>\n    raise ValueError("no")');
  });

  test.skipIf(lacks('cat')).each<[string, string, Partial<ScriptLaunch>, string]>([
    ['reads the file', 'cat "$1"', { argument: 'file' }, INPUTS],
    ['reads standard input', 'cat; echo " $#"', { argument: 'file' }, `${INPUTS} 1\n`],
    ['reads variables', 'printf "%s" "$A"', { environment: { A: 'it\'s "$x" `y`' } }, 'it\'s "$x" `y`'],
    [
      'reads files beside it',
      'cat "$(dirname "$0")/../a b.txt"; cat "$1"',
      { path: 'src/main.sh', files: { 'a b.txt': "it's\n" }, argument: 'file' },
      `it's\n${INPUTS}`,
    ],
  ])('in the shell %s', (_what, source, launch, output) => {
    expect(run('shell', source, launch)).toBe(output);
  });

  test('in the shell starts with nothing before it if only its argument is special', () => {
    expect(run('shell', 'echo "$#"', { argument: { parameter: 'city' } })).toBe('1\n');
  });

  test('in the shell keeps its line numbers', () => {
    expect(run('shell', 'echo\nno-such-command\n', { argument: 'file' })).toMatch(/\b2: .*no-such-command/);
  });

  test.skipIf(lacks('bash'))('in bash runs with bash, with its arguments and its input', () => {
    const source = '#!/bin/bash\nset -euo pipefail\nx=(a b)\n[[ -f $1 ]] && echo "${x[1]} $(cat) $(cat "$1")"\n';
    expect(run('shell', source, { bash: true, argument: 'file' })).toBe(`b ${INPUTS} ${INPUTS}\n`);
  });

  test.each<[string, string, Partial<ScriptLaunch>, string]>([
    ['reads the file', "console.log(require('node:fs').readFileSync(process.argv[2], 'utf8'))", {}, INPUTS],
    [
      'reads files beside it',
      "#!/usr/bin/env node\nconsole.log(require('./b.cjs'), process.env.A)",
      { files: { 'b.cjs': 'module.exports = 2' } },
      '2 x',
    ],
    [
      'is a module',
      "import b from './b.mjs';\nconsole.log(b)",
      { path: 'm.mjs', files: { 'b.mjs': 'export default 3' } },
      '3',
    ],
  ])('in JavaScript %s', (_what, source, launch, output) => {
    const all = { path: 'main.js', argument: 'file', environment: { A: 'x' }, ...launch } as const;
    expect(run('node', source, all)).toBe(`${output}\n`);
  });

  test('gets one parameter as its argument, as text', async () => {
    const launch: ScriptLaunch = { ...PLAIN, argument: { parameter: 'city' } };
    const tool = toolOf({ type: 'script', runtime: 'shell', source: 'echo', launch, memoryMb: null, cpus: null });
    for (const [parameters, args] of [
      [{ city: '$(rm)' }, ['$(rm)']],
      [{ city: 7 }, ['7']],
      [{}, ['']],
    ] as const) {
      const runner = fakeRunner({ stdout: '1' });
      await toolExecutor.execute(callOf(parameters, { tool }), contextOf({ runner }));
      expect(runner.jobs).toMatchObject([{ args, inputs: parameters }]);
      // values are never part of the code
      expect(runner.jobs[0]?.code).not.toContain('rm');
    }
  });
});

describe('[R2] a failure that the sandbox causes', () => {
  test.each([
    ['<urlopen error [Errno -3] Temporary failure in name resolution>', /no network here/],
    ['curl: (6) Could not resolve host: example.org', /no network here/],
    ['getaddrinfo ENOTFOUND example.org', /no network here/],
    ["ModuleNotFoundError: No module named 'requests'", /requirements/],
    ["[Errno 2] No such file or directory: '/data/x'", /empty folder/],
    ['fatal: not a git repository', /empty folder/],
    ['FileNotFound: report.pdf', /^$/],
    ['division by zero', /^$/],
  ])('%s is explained', (message, hint) => {
    expect(sandboxHint(message)).toMatch(hint);
  });

  test('is explained for scripts only', async () => {
    const stdout = '{"success": false, "error": "ENOTFOUND"}';
    const context = contextOf({ runner: fakeRunner({ stdout }) });
    const script = { type: 'script', runtime: 'shell', source: 'x', memoryMb: null, cpus: null } as const;
    const image = { type: 'container', image: 'x', build: null, memoryMb: null, cpus: null } as const;
    const messages = [];
    for (const tool of [toolOf(script), toolOf(image)]) {
      messages.push(errorOf(await toolExecutor.execute(callOf({}, { tool }), context)).message);
    }
    expect(messages).toEqual([
      expect.stringMatching(/: ENOTFOUND \(a script has no network/),
      expect.stringMatching(/: ENOTFOUND$/),
    ]);
  });
});
