/** Links and special files in a project: only real paths inside of it are read and written (M1, K1, K2, K4). */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toolFiles } from '../../cli/project/code-tools.ts';
import { Lives } from '../../cli/system/lives.ts';
import { recordServices } from '../../cli/system/orphans.ts';
import { tokenSecretIn } from '../../cli/system/settings.ts';
import { cortex, cortexHere } from '../support/cortex.ts';
import type { CortexResult } from '../support/cortex.ts';
import { lacks } from '../support/programs.ts';
import { folderOfEach } from './scene.ts';

/** `project/` and what is outside of it: `outside/`, with the file `kept`. */
let base = '';
let root = '';
const agent = (name: string): string =>
  `kind: Agent\nversion: "1"\nname: ${name}\nsummary: Helps.\npersona: You help.\n`;
const CASE = 'agent: helper\ncases: [{name: a, message: m, answer: x, expect: [{exact: x}]}]\n';

function put(path: string, text: string): void {
  mkdirSync(dirname(join(base, path)), { recursive: true });
  writeFileSync(join(base, path), text);
}

function link(path: string, target: string): void {
  mkdirSync(dirname(join(base, path)), { recursive: true });
  symlinkSync(target, join(base, path));
}

folderOfEach((made) => {
  base = made;
  root = join(base, 'project');
  put('project/wrangler.toml', 'name = "p"\n');
  put('project/manifests/agents/helper.yaml', agent('helper'));
  put('outside/kept', 'kept');
  put('outside/agents/stranger.yaml', agent('stranger'));
});

async function run(...args: string[]): Promise<CortexResult> {
  return await cortexHere(args, { cwd: root });
}

interface Validated {
  readonly targets: readonly {
    readonly loaded: string;
    readonly errors: readonly { readonly file: string; readonly message: string }[];
  }[];
}

async function validate(env: Record<string, string> = {}): Promise<Validated['targets']> {
  const { out, err } = await cortexHere(['validate', '--json'], { cwd: root, env });
  try {
    return (JSON.parse(out) as Validated).targets;
  } catch {
    throw new Error(`no report: ${out}${err}`);
  }
}

describe('[M1] in a folder of manifests', () => {
  test.skipIf(lacks('mkfifo'))(
    'what is not a file of the project is an issue of this path, and the others load',
    async () => {
      link('project/manifests/file.yaml', '../../outside/agents/stranger.yaml');
      link('project/manifests/folder', join(base, 'outside'));
      link('project/manifests/around', '.');
      link('project/manifests/agents/above', '../../manifests');
      link('project/manifests/itself.yaml', 'itself.yaml');
      link('project/manifests/nothing.yaml', 'absent.yaml');
      link('project/manifests/device.yaml', '/dev/zero');
      execFileSync('sh', ['-c', 'mkfifo "$0"', join(root, 'manifests/pipe.yaml')]);
      const [{ loaded, errors } = { loaded: '', errors: [] }] = await validate();
      expect(loaded).toBe('1 agent loaded');
      expect(Object.fromEntries(errors.map(({ file, message }) => [file, message]))).toEqual({
        'manifests/file.yaml': expect.stringContaining('is outside of the project'),
        'manifests/folder': expect.stringContaining('is outside of the project'),
        'manifests/around': 'is a link to a folder that it is in',
        'manifests/agents/above': 'is a link to a folder that it is in',
        'manifests/itself.yaml': 'is a link that leads to itself',
        'manifests/nothing.yaml': 'leads to nothing',
        'manifests/device.yaml': 'its real path /dev/zero is outside of the project',
        'manifests/pipe.yaml': 'is not a file but a pipe',
      });
    },
  );

  test('links to files and folders of the project are followed, and links of packages and editors are not', async () => {
    link('project/manifests/node_modules', '../../outside');
    link('project/manifests/.#helper.yaml', 'ada@host.1');
    put('project/shared/agents/one.yaml', agent('one'));
    put('project/two.yaml', agent('two'));
    link('project/manifests/shared', '../shared');
    link('project/manifests/two.yaml', '../two.yaml');
    expect(await validate()).toMatchObject([{ loaded: '3 agents loaded', errors: [] }]);
  });

  test('two links that lead to each other end', async () => {
    link('project/manifests/agents/b', '../../b');
    link('project/b/a', '../manifests/agents');
    const [{ loaded, errors } = { loaded: '', errors: [] }] = await validate();
    expect(loaded).toBe('1 agent loaded');
    expect(errors.map(({ file }) => file)).toEqual(['manifests/agents/b/a']);
  });

  test('the script of a tool is found among the files of the folder only', async () => {
    const implementation = 'implementation: {type: script, runtime: python3, entrypoint: ../../../outside/kept}';
    put('project/manifests/tools/t.yaml', `kind: Tool\nversion: "1"\nname: t\nsummary: s\n${implementation}\n`);
    const [{ errors } = { errors: [] }] = await validate();
    expect(errors).toMatchObject([{ file: 'manifests/tools/t.yaml' }]);
  });

  test('the folder itself must be in the project; another one that a setting names may be anywhere', async () => {
    rmSync(join(root, 'manifests'), { recursive: true });
    link('project/manifests', '../outside/agents');
    const env = { CORTEX_MANIFESTS: '../outside/agents' };
    expect(await validate(env)).toMatchObject([
      { errors: [{ file: 'manifests', message: expect.stringContaining('is outside of the project') }] },
      { loaded: '1 agent loaded', errors: [] },
    ]);
  });
});

describe('[K1] what commands write', () => {
  test.each([
    ['the file', 'project/src/project.generated.ts', '../../outside/kept'],
    ['its folder', 'project/src', '../outside'],
  ])('build refuses a link out of the project in place of %s', async (_what, path, target) => {
    link(path, target);
    const { code, err } = await run('build');
    expect([code, err]).toEqual([1, expect.stringContaining('src/project.generated.ts: its real path ')]);
    expect(readFileSync(join(base, 'outside/kept'), 'utf8')).toBe('kept');
    expect(readdirSync(join(base, 'outside'))).toEqual(['agents', 'kept']);
  });

  test('build follows a link inside of the project, and leaves no other file', async () => {
    link('project/src', 'generated');
    mkdirSync(join(root, 'generated'));
    expect(await run('build')).toMatchObject({ code: 0 });
    expect(readdirSync(join(root, 'generated'))).toEqual(['project.generated.ts']);
  });

  test.each([
    [
      'the file that it writes',
      'project/wrangler.staging.jsonc',
      '../outside/kept',
      'wrangler.staging.jsonc: its real',
    ],
    ['the file that it reads', 'project/wrangler.toml', '../outside/wrangler.toml', 'wrangler.toml: its real path'],
  ])('stage refuses a link out of the project in place of %s', async (_what, path, target, message) => {
    put('outside/wrangler.toml', 'name = "other"\n');
    rmSync(join(base, path), { force: true });
    link(path, target);
    const { code, err } = await run('stage', 'staging');
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
    expect(readFileSync(join(base, 'outside/kept'), 'utf8')).toBe('kept');
  });
});

describe('[K4] paths of the command line', () => {
  test('a report is not written through a link out of the project', async () => {
    put('project/cases.yaml', CASE);
    link('project/report.json', '../outside/kept');
    const { code, err } = await run('eval', 'cases.yaml', '--out', 'report.json');
    expect([code, err]).toEqual([2, expect.stringContaining('is outside of the project')]);
    expect(readFileSync(join(base, 'outside/kept'), 'utf8')).toBe('kept');
  });

  test('a report replaces a file of the project, and may be anywhere if its path says so', async () => {
    put('project/cases.yaml', CASE);
    put('project/report.json', 'old');
    for (const path of ['report.json', '../outside/report.json']) {
      expect(await run('eval', 'cases.yaml', '--out', path)).toMatchObject({ code: 0 });
      expect(JSON.parse(readFileSync(join(root, path), 'utf8'))).toMatchObject({ verdict: { result: 'passed' } });
    }
  });

  test.each([
    ['plan', 'input'],
    ['eval', 'input'],
    ['replay', 'input'],
  ])('%s does not read a link out of the project', async (...args) => {
    put('outside/secret', '{"secret": 1}');
    link('project/input', '../outside/secret');
    const { code, err } = await run(...args);
    expect([code, err]).toEqual([2, expect.stringContaining('input: its real path ')]);
  });

  test('a file of settings is not read through a link out of the project', async () => {
    put('outside/vars', 'CORTEX_MANIFESTS=../outside\n');
    link('project/.dev.vars', '../outside/vars');
    const { code, err } = await run('validate');
    expect([code, err]).toEqual([1, expect.stringContaining('.dev.vars: its real path ')]);
  });

  test.each([
    ['the folder', 'project/.cortex', '../outside'],
    ['a part of it, to nothing', 'project/.cortex/worker.env', '../../outside/made'],
  ])('dev refuses a state folder of the project with a link out of it: %s', async (_what, path, target) => {
    link(path, target);
    const { code, err } = await cortex(['dev'], { cwd: root, env: { PORT: '8999', RUNNER_PORT: '8999' } });
    expect([code, err]).toEqual([1, expect.stringContaining('For a state folder elsewhere, set CORTEX_STATE_DIR')]);
    expect(readdirSync(join(base, 'outside'))).toEqual(['agents', 'kept']);
  });

  test.each<[file: string, write: (folder: string) => void]>([
    ['session-token.secret', (folder) => void tokenSecretIn(folder)],
    ['lives.json', (folder) => void new Lives(folder).begin()],
    ['lives.json.new', (folder) => void new Lives(folder).begin()],
    ['services.json.new', (folder) => recordServices(folder, [])],
  ])('a link in place of %s of the state folder is not followed', (file, write) => {
    link(`state/${file}`, '../outside/kept');
    write(join(base, 'state'));
    expect(readFileSync(join(base, 'outside/kept'), 'utf8')).toBe('kept');
  });
});

describe('[K2] files of tools', () => {
  test.skipIf(lacks('mkfifo'))(
    'a link out of the project, a pipe and a link to nothing are issues; a link inside is a tool',
    () => {
      put('outside/stranger.ts', '');
      put('project/lib/inside.ts', '');
      link('project/tools/inside.ts', '../lib/inside.ts');
      link('project/tools/stranger.ts', '../../outside/stranger.ts');
      link('project/tools/gone.ts', 'nothing.ts');
      execFileSync('sh', ['-c', 'mkfifo "$0"', join(root, 'tools/pipe.ts')]);
      const { files, problems } = toolFiles(root);
      expect(files).toEqual(['tools/inside.ts']);
      expect(Object.fromEntries(problems.map(({ file, message }) => [file, message]))).toEqual({
        'tools/stranger.ts': expect.stringContaining('is outside of the project'),
        'tools/gone.ts': 'leads to nothing',
        'tools/pipe.ts': 'is not a file but a pipe',
      });
    },
  );

  test('the folder must be in the project', () => {
    put('outside/tools/stranger.ts', '');
    link('project/tools', '../outside/tools');
    expect(toolFiles(root)).toMatchObject({ files: [], problems: [{ file: 'tools' }] });
    expect(lstatSync(join(root, 'tools')).isSymbolicLink() && existsSync(join(root, 'tools/stranger.ts'))).toBe(true);
  });
});
