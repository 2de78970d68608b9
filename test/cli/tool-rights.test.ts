/** What the code of tools may do while a command only reads their definitions: nothing (K2, K4). */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { bundleDescriber } from '../../cli/project/bundle-tools.ts';
import { readCodeTools } from '../../cli/project/code-tools.ts';
import type { ProjectTools } from '../../cli/project/code-tools.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { isolatesIn } from '../../cli/project/tool-isolates.ts';
import { loadTools } from '../../cli/project/tool-loader.ts';
import { cortexHere } from '../support/cortex.ts';
import { lacks } from '../support/programs.ts';
import { folderOfEach } from './scene.ts';

let base = '';
let root = '';
folderOfEach((made) => {
  base = made;
  root = join(base, 'apps/project');
  put('wrangler.toml', 'name = "p"\n');
  put('manifests/agents/assistant.yaml', 'kind: Agent\nversion: "1"\nname: assistant\nsummary: H.\npersona: P.\n');
  symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(root, 'node_modules'), 'dir');
});

/** Makes a file of the project. */
function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** A schema without a package, which bundles fast. */
const PLAIN = "{ '~standard': { jsonSchema: { input: () => ({ type: 'object' }) } } }";

const tool = (
  name: string,
  code = '',
  description = "'d'",
  parameters = PLAIN,
): string => `import { defineTool } from 'cortex-edge';
${code}
export default defineTool({
  name: '${name}', description: ${description}, parameters: ${parameters}, effects: 'pure', run: () => null,
});
`;

const issues = ({ problems }: ProjectTools): Record<string, string> =>
  Object.fromEntries(problems.map(({ file, message }) => [file, message]));

describe('[K4] commands that only read', () => {
  const marker = (): string => join(base, 'ran');
  beforeEach(() => {
    const path = JSON.stringify(marker());
    put('tools/bad.ts', tool('bad', `import { writeFileSync } from 'node:fs';\nwriteFileSync(${path}, '');`));
  });

  test.each([
    [['validate'], 'tools/bad.ts'],
    [['prompt'], 'tools/bad.ts'],
    // Reports only what belongs to its folder.
    [['migrate', 'manifests'], 'assistant'],
  ])('%j runs code of the project with --trust only', async (args, said) => {
    const call = { cwd: root, env: { PORT: '1', CI: 'true' } };
    const { out, err } = await cortexHere(args, call);
    expect(`${out}${err}`).toContain(said);
    expect(existsSync(marker())).toBe(false);
    await cortexHere([...args, '--trust'], call);
    expect(existsSync(marker())).toBe(true);
  });

  test('[K5] doctor runs no code of the project, and no command that the configuration of a git repository has', async () => {
    const called = join(base, 'called');
    put('.dev.vars', '');
    const git = (...args: string[]): void => void execFileSync('git', args, { cwd: root });
    git('init', '-q');
    git('add', '.dev.vars');
    git('config', 'core.fsmonitor', `touch '${called}'; false`);
    const { out } = await cortexHere(['doctor'], { cwd: root, env: { PORT: '1', CI: 'true' } });
    expect(out).toContain('tools/bad.ts');
    expect(out).toContain('.dev.vars is committed to git');
    expect([existsSync(marker()), existsSync(called)]).toEqual([false, false]);
  });

  test('the issue names the file and the option', async () => {
    const { code, err } = await cortexHere(['validate'], { cwd: root });
    expect(code).toBe(1);
    expect(err).toMatch(/^error {4}tools\/bad\.ts:1:1: cannot be loaded: .*--trust loads it with your rights\)$/m);
  });

  test('text of a tool cannot control the terminal', async () => {
    put('tools/bad.ts', 'throw new Error("\\u001B[31mred");');
    const { err } = await cortexHere(['validate'], { cwd: root });
    expect(err).toContain(String.raw`cannot be loaded: \u{1b}[31mred`);
  });
});

/** A name that the bundler cannot compute. */
const SOCKETS = "['cloudflare', 'sockets'].join(':')";

describe('[K2] in an isolate', () => {
  test('the code of a tool has no network, files, programs, variables or bindings', () => {
    const net = "await new Promise((done, fail) => net.connect(1, '127.0.0.1', () => done('')).on('error', fail))";
    const refused: Readonly<Record<string, [expression: string, message: string]>> = {
      network: ["await fetch('http://127.0.0.1:1')", 'Disallowed operation'],
      sockets: [`(await import(${SOCKETS})).connect('127.0.0.1:1').opened`, 'Disallowed operation'],
      sockets_of_node: [net, 'Disallowed operation'],
      files: ["(await import('node:' + 'fs')).readFileSync('/etc/passwd')", 'no such file'],
      folders: [`(await import('node:' + 'fs')).readdirSync(${JSON.stringify(PACKAGE_ROOT)})`, 'no such file'],
      programs: ["(await import('node:' + 'child_process')).execSync('id')", 'not implemented'],
      texts: ["new Function('return 1')()", 'Code generation from strings disallowed'],
    };
    const seen = "JSON.stringify([process.env, (await import(['cloudflare', 'workers'].join(':'))).env])";
    // What the code reports about itself is the description of its tool.
    for (const [name, expression] of [...Object.entries(refused).map(([one, [text]]) => [one, text]), ['seen', seen]]) {
      const attempt = `let said; try { said = 'got ' + (${expression}); } catch (fault) { said = 'refused: ' + fault; }`;
      put(`tools/${name}.ts`, tool(name ?? '', `import net from 'node:net';\nvoid net;\n${attempt}`, 'String(said)'));
    }
    const { tools, problems } = readCodeTools(root);
    expect(problems).toEqual([]);
    expect(Object.fromEntries(tools.map(({ name, description }) => [name, description]))).toEqual({
      ...Object.fromEntries(
        Object.entries(refused).map(([name, [, message]]) => [
          name,
          expect.toSatisfy((text: string) => text.startsWith('refused: ') && text.includes(message)),
        ]),
      ),
      seen: 'got [{},{}]',
    });
  });

  test('code that runs in a request has no network either', () => {
    const then = `export const then = (resolve: (value: unknown) => void) => void Promise.allSettled([
  fetch('http://127.0.0.1:1/'), import(${SOCKETS}).then(({ connect }) => connect('127.0.0.1:1').opened),
]).then((all) => resolve({ default: { ...tool, description: all.map((one) => String(one.status + ' ' + one.reason)).join() } }));`;
    put('tools/probe.ts', `${tool('probe').replace('export default', 'const tool =')}${then}`);
    const { tools, problems } = readCodeTools(root);
    expect(problems).toEqual([]);
    expect(tools[0]?.description).toMatch(/^rejected .*does not export a fetch\(\) function.*,rejected /);
  });

  test('tools load as in Node, with packages, helpers, modules of Node and path aliases', () => {
    put('tsconfig.json', '{\n  // a comment\n  "compilerOptions": { "paths": { "@/*": ["./lib/*"] } },\n}\n');
    put('lib/help.ts', 'export const help = "h";\n');
    put(
      'tools/one.ts',
      tool(
        'one',
        "import { z } from 'zod';\nimport { help } from '@/help';\nimport { join } from 'path';",
        'join(help, help)',
        'z.object({ to: z.string() })',
      ),
    );
    put(
      'tools/two.ts',
      tool('two', "import { env } from 'cloudflare:workers';\nimport { Buffer } from 'node:buffer';"),
    );
    const isolated = readCodeTools(root);
    expect(isolated.problems).toEqual([]);
    expect(isolated.tools.map(({ description }) => description)).toEqual(['h/h', 'd']);
    expect(isolated.tools).toEqual(readCodeTools(root, 'of the user').tools);
  });

  test.skipIf(lacks('mkfifo'))('what a module reads must be in the project or in a package', () => {
    writeFileSync(join(base, 'secret.txt'), 'secret');
    const imports = (path: string): string => `import text from ${JSON.stringify(path)} with { type: 'text' };`;
    put('tools/absolute.ts', tool('absolute', imports('/etc/passwd'), 'text'));
    put('tools/above.ts', tool('above', imports('../../../secret.txt'), 'text'));
    symlinkSync('../../../secret.txt', join(root, 'linked.txt'));
    put('tools/linked.ts', tool('linked', imports('../linked.txt'), 'text'));
    put('tools/device.ts', tool('device', imports('/dev/zero'), 'text'));
    execFileSync('sh', ['-c', 'mkfifo "$0"', join(root, 'pipe.txt')]);
    put('tools/pipe.ts', tool('pipe', imports('../pipe.txt'), 'text'));
    mkdirSync(join(base, 'other/node_modules/p'), { recursive: true });
    writeFileSync(join(base, 'other/node_modules/p/secret.txt'), 'secret');
    put('tools/package.ts', tool('package', imports('../../../other/node_modules/p/secret.txt'), 'text'));
    put('tools/fine.ts', tool('fine', imports('../wrangler.toml'), 'text'));
    const read = readCodeTools(root);
    expect(read.tools.map(({ name, description }) => [name, description])).toEqual([['fine', 'name = "p"\n']]);
    expect(Object.keys(issues(read)).toSorted()).toEqual(
      ['above', 'absolute', 'device', 'linked', 'package', 'pipe'].map((name) => `tools/${name}.ts`),
    );
    expect(issues(read)['tools/above.ts']).toContain('secret.txt is outside of the project and its packages (--trust');
  });

  test('a package of the workspace around the project is read', () => {
    mkdirSync(join(base, 'node_modules/@team'), { recursive: true });
    mkdirSync(join(base, 'packages/shared'), { recursive: true });
    writeFileSync(join(base, 'packages/shared/index.js'), 'export const word = "shared";\n');
    symlinkSync('../../packages/shared', join(base, 'node_modules/@team/shared'));
    put('tools/one.ts', tool('one', "import { word } from '@team/shared';", 'word'));
    expect(readCodeTools(root)).toMatchObject({ problems: [], tools: [{ description: 'shared' }] });
  });

  test.skipIf(lacks('mkfifo'))('a configuration of TypeScript leads to no other file', () => {
    execFileSync('sh', ['-c', 'mkfifo "$0"', join(base, 'pipe.json')]);
    put('tsconfig.json', '{ "extends": "../../pipe.json" }');
    put('tools/one.ts', tool('one'));
    expect(readCodeTools(root)).toMatchObject({ problems: [], tools: [{ name: 'one' }] });
  });

  test('memory, the size and the form of a description are limited, and the other tools load', () => {
    put('tools/a.ts', tool('a'));
    put(
      'tools/heap.ts',
      tool('heap', 'const all: unknown[] = []; while (true) all.push(new Array(1e5).fill(all.length));'),
    );
    put('tools/large.ts', tool('large', '', "'x'.repeat(2e6)"));
    put(
      'tools/deep.ts',
      tool('deep', 'let deep: unknown = 1;\nfor (let at = 0; at < 200; at += 1) deep = [deep];').replace(
        'effects:',
        'example: deep as never, effects:',
      ),
    );
    put(
      'tools/other.ts',
      tool('other', 'const { parse } = JSON;\nJSON.parse = (text) => ({ ...parse(text), name: 1 });'),
    );
    // workerd reads it at its start, and ends.
    put('tools/unread.ts', tool('unread', 'export const pattern = /a{2,1}/;'));
    put('tools/z.ts', tool('z'));
    const read = readCodeTools(root);
    expect(read.tools.map(({ name }) => name)).toEqual(['a', 'z']);
    expect(issues(read)).toEqual({
      'tools/heap.ts': expect.stringContaining('cannot be loaded: its isolate ended: out of memory (at most 1024 MiB)'),
      'tools/large.ts': expect.stringContaining('its description has more than 1048576 bytes'),
      'tools/deep.ts': expect.stringContaining('its description is not valid'),
      'tools/other.ts': expect.stringContaining('its description is not valid'),
      'tools/unread.ts': expect.stringContaining('Invalid regular expression'),
    });
  });

  test('a module that never ends is one problem; the modules before and after it load', async () => {
    const folder = join(base, 'modules');
    mkdirSync(folder);
    const good = `export default { name: 'n', description: 'd', effects: 'pure', parameters: ${PLAIN}, run() {} };`;
    const texts = { a: good, bad: 'while (true) {}', never: 'await new Promise(() => undefined);', z: good };
    const modules = Object.entries(texts).map(([file, text]) => {
      writeFileSync(join(folder, `${file}.mjs`), text);
      return { file, module: join(folder, `${file}.mjs`) };
    });
    await bundleDescriber(join(folder, 'main.mjs'));
    const found = await loadTools(modules, isolatesIn(folder), (expire, _ms, file) => {
      const timer = file === 'bad' ? setImmediate(expire) : null;
      return () => timer !== null && clearImmediate(timer);
    });
    expect(found.get('bad')).toBe('cannot be loaded: it took longer than 10 s');
    expect(found.get('never')).toContain('Top-level await in module is unsettled');
    for (const file of ['a', 'z']) expect(found.get(file)).toMatchObject({ file, name: 'n' });
  });
});
