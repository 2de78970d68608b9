/** Commands in a project of its own, called from one of its folders (K1, K4). */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { cortexHere } from '../support/cortex.ts';
import { folderOfFile } from './scene.ts';

const root = folderOfFile();
const agent = (name: string, tools = 'calculator'): string =>
  `kind: Agent\nversion: "1"\nname: ${name}\nsummary: Helps.\npersona: You help.\nimport: {tools: [${tools}]}\n`;
const tool = (name: string): string =>
  `kind: Tool\nversion: "1"\nname: ${name}\nsummary: s\nimplementation: {type: builtin, entrypoint: echo}\nparameters: {text: string}\nreturns: {type: string}\n`;

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

beforeAll(() => {
  put('wrangler.toml', 'name = "p"\n');
  put('src/worker.ts', '');
  put('manifests/agents/helper.yaml', agent('helper'));
  put('more/agents/other.yaml', agent('other'));
  put('notes/program.xml', '<action name="calculator" id="a">{"expression": "1 + 1"}</action>');
});

/** In the folder `notes/`, with a port at which no system runs. */
const inNotes = { cwd: join(root, 'notes'), env: { PORT: '1' } };

test.each([
  [['validate'], 'manifests: 1 agent, 1 tool loaded, 0 errors, 0 warnings\n'],
  [['validate', '../more'], 'more: 1 agent loaded, 0 errors, 0 warnings\n'],
  [['build'], 'src/project.generated.ts: 1 agents, 1 tools\n'],
  [['build', '../more'], 'src/project.generated.ts: 2 agents, 1 tools\n'],
])('[K1] cortex %j', async (args, out) => {
  expect(await cortexHere(args, inNotes)).toEqual({ out, err: '', code: 0 });
  expect(existsSync(join(root, 'notes/src'))).toBe(false);
});

test('[K1] validate without arguments checks the folders of CORTEX_MANIFESTS with manifests/', async () => {
  put('more/tools/ping.yaml', tool('ping'));
  put('manifests/agents/caller.yaml', agent('caller', 'ping'));
  put('further/agents/third.yaml', agent('third', 'ping'));
  const env = { ...inNotes.env, CORTEX_MANIFESTS: 'more, further' };
  const all = [
    'manifests: 2 agents, 1 tool loaded, 0 errors, 0 warnings',
    'more: 1 agent, 1 tool loaded, 0 errors, 0 warnings',
    'further: 1 agent loaded, 0 errors, 0 warnings',
  ];
  expect(await cortexHere(['validate'], { ...inNotes, env })).toEqual({ out: `${all.join('\n')}\n`, err: '', code: 0 });
  // A folder alone is loaded with those that its agents refer to.
  const alone = await cortexHere(['validate', '../manifests', '../further'], { ...inNotes, env });
  expect(alone).toEqual({ out: `${all[0]}\n${all[2]}\n`, err: '', code: 0 });
  put('further/agents/bad.yaml', 'kind: Agent\n');
  const { err, code } = await cortexHere(['validate'], { ...inNotes, env });
  expect(err).toContain('error    further/agents/bad.yaml:1:1: name');
  expect(code).toBe(1);
  const missing = await cortexHere(['validate'], { ...inNotes, env: { ...env, CORTEX_MANIFESTS: 'nowhere' } });
  expect(missing.err).toContain('error    nowhere: no such file or folder');
  expect(missing.code).toBe(1);
  for (const path of ['more/tools', 'manifests/agents/caller.yaml', 'further']) {
    rmSync(join(root, path), { recursive: true });
  }
});

test('[K4] cortex plan reads the manifests of the project without a system', async () => {
  const { out, err, code } = await cortexHere(['plan', 'program.xml', 'helper'], inNotes);
  expect(out).not.toBe('');
  expect(err).toContain('from the folder manifests/, because no system is running');
  expect(code).toBe(0);
});

test('[K4] the build fails with 1, and says what is wrong as JSON and on stderr', async () => {
  put('manifests/agents/bad.yaml', 'kind: Agent\n');
  const { out, err, code } = await cortexHere(['build', '--json'], inNotes);
  expect(JSON.parse(out)).toEqual({ built: false, file: 'src/project.generated.ts' });
  expect(err).toContain('manifests/agents/bad.yaml:1:1: name');
  expect(code).toBe(1);
  rmSync(join(root, 'manifests/agents/bad.yaml'));
});

test('[K4] advice names the program of the package, which is not installed here', async () => {
  const { err } = await cortexHere(['run', 'helper', 'hi', '--url', 'http://127.0.0.1:1'], inNotes);
  expect(err).toContain('; run cortex dev in another terminal');
});
