/** The build of a project with code tools (K2). */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { toolFiles } from '../../cli/project/code-tools.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cortex-project-'));
  symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(root, 'node_modules'), 'dir');
  put('wrangler.toml', 'name = "p"\n');
  put('src/worker.ts', '');
  put('manifests/agents/helper.yaml', 'kind: Agent\nversion: "1"\nname: helper\nsummary: Helps.\npersona: You help.\n');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function build(env: Readonly<Record<string, string>> = {}): { readonly status: number | null; readonly said: string } {
  const program = join(PACKAGE_ROOT, 'cli/main.ts');
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, 'build'], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...env },
  });
  return { status, said: `${stdout}${stderr}` };
}

const generated = (): string => readFileSync(join(root, 'src/project.generated.ts'), 'utf8');
const tool = (name: string, more = ''): string => `import { defineTool } from 'cortex-edge';
import { z } from 'zod';
import { env } from 'cloudflare:workers';
${more}
export default defineTool({
  name: '${name}', description: 'Says ${name}.', parameters: z.object({ to: z.string().describe('whom') }),
  effects: 'pure', run: ({ to }) => \`${name} \${to} \${env.X}\`,
});
`;

describe('[K1] [K2] cortex build', () => {
  test('bundles tools with and without a manifest, with their schemas', () => {
    put('tools/greet.ts', tool('greet'));
    put('tools/wave.ts', tool('wave', "import { help } from './lib/help.ts';\nhelp();"));
    put('tools/lib/help.ts', 'export const help = (): void => undefined;\n');
    put('tools/_shared.ts', 'throw new Error("never loaded");\n');
    put(
      'manifests/tools/greet.yaml',
      'kind: Tool\nname: greet\nimplementation: {type: code, bindings: [DB]}\ntimeout: 5\n',
    );
    expect(build()).toEqual({ status: 0, said: 'src/project.generated.ts: 1 agents, 2 tools\n' });
    expect(generated()).toContain("import tool0 from '../tools/greet.ts';");
    expect(generated()).toContain('tools: { "greet": tool0, "wave": tool1 }');
    const literal = /JSON\.parse\((".*")\)/.exec(generated())?.[1] ?? '""';
    const { catalog } = JSON.parse(JSON.parse(literal)) as { catalog: { tools: { name: string }[] } };
    const named = (name: string): object | undefined => catalog.tools.find((one) => one.name === name);
    expect(named('greet')).toMatchObject({
      summary: 'Says greet.',
      effects: 'pure',
      timeoutMs: 5_000,
      implementation: { type: 'code', bindings: ['DB'], secrets: [] },
      parameters: { type: 'object', required: ['to'], properties: { to: { type: 'string', description: 'whom' } } },
    });
    expect(named('wave')).toMatchObject({ implementation: { type: 'code', bindings: [], secrets: [] } });
  });

  test('a definition of another kind does not describe the tool of its name', () => {
    put('tools/greet.ts', tool('greet'));
    put('tools/wave.ts', tool('wave'));
    put(
      'manifests/all.yaml',
      'kind: Tool\nname: greet\nimplementation: {type: code}\n---\n' +
        'kind: Agent\nversion: "1"\nname: wave\nsummary: Waves.\npersona: You wave.\nimport: {tools: [wave]}\n',
    );
    expect(build()).toEqual({ status: 0, said: 'src/project.generated.ts: 2 agents, 2 tools\n' });
  });

  test('has another version after a change of code, and the same one without', () => {
    const version = (): string => /version: "(\w+)"/.exec(generated())?.[1] ?? '';
    put('tools/greet.ts', tool('greet'));
    build();
    const first = version();
    build();
    expect(version()).toBe(first);
    put('tools/greet.ts', tool('greet').replace('greet $', 'hello $'));
    build();
    expect(version()).not.toBe(first);
  });

  test.each<[name: string, files: Record<string, string>, message: string]>([
    ['a syntax error', { 'tools/greet.ts': 'export default {' }, 'error    tools/greet.ts:1:17: Expected'],
    [
      'a missing module',
      { 'tools/greet.ts': "import './no.ts';" },
      'error    tools/greet.ts:1:8: Could not resolve "./no.ts"',
    ],
    ['another name', { 'tools/greet.ts': tool('hello') }, 'so the file must be called tools/hello.ts'],
    ['no default export', { 'tools/greet.ts': 'export const x = 1;' }, 'must export a tool by default'],
    ['code that throws', { 'tools/greet.ts': 'throw new Error("at load");' }, 'cannot be loaded: at load'],
    [
      'code that throws lines of this command',
      { 'tools/greet.ts': String.raw`throw new Error("at load\nerror    manifests/a.yaml:1:1: forged");` },
      'cannot be loaded: at load\n         error    manifests/a.yaml:1:1: forged',
    ],
    [
      'parameters that are no object',
      { 'tools/greet.ts': tool('greet').replace(/z\.object\(.*\}\)/, 'z.string()') },
      '"parameters" must be a zod object',
    ],
    [
      'a type that JSON does not have',
      { 'tools/greet.ts': tool('greet').replace('z.string()', 'z.bigint()') },
      'cannot be loaded: BigInt cannot be represented in JSON Schema',
    ],
    [
      'a manifest without code',
      {
        'manifests/tools/gone.yaml': 'kind: Tool\nname: gone\nsummary: s\nversion: "1"\nimplementation: {type: code}\n',
      },
      'no code tool is called "gone"; tools/gone.ts of the project must export it',
    ],
    [
      'a manifest without code, version and summary, with the nearest name',
      {
        'tools/roll_dice.ts': tool('roll_dice'),
        'manifests/tools/rol_dice.yaml': 'kind: Tool\nname: rol_dice\nimplementation: {type: code}\n',
      },
      'error    manifests/tools/rol_dice.yaml:3:24: implementation.type: no code tool is called "rol_dice" (nearest: roll_dice); tools/rol_dice.ts of the project must export it, and uploaded manifests cannot bring code\n' +
        'manifests: 1 error, nothing written',
    ],
    [
      'parameters in the manifest',
      {
        'tools/greet.ts': tool('greet'),
        'manifests/tools/greet.yaml':
          'kind: Tool\nname: greet\nimplementation: {type: code}\nparameters: {to: string}\n',
      },
      'parameters: is in the code of the tool; remove it here',
    ],
    [
      'effects in the manifest',
      {
        'tools/greet.ts': tool('greet'),
        'manifests/tools/greet.yaml': 'kind: Tool\nname: greet\nimplementation: {type: code}\neffects: pure\n',
      },
      'effects: is in the code of the tool; remove it here',
    ],
    [
      'a script tool of the same name',
      {
        'tools/greet.ts': tool('greet'),
        'manifests/tools/greet.yaml':
          'kind: Tool\nversion: "1"\nname: greet\nsummary: s\nimplementation: {type: builtin, entrypoint: echo}\n',
      },
      'manifests/tools/greet.yaml:3:7: name: the code tool in tools/greet.ts has this name too; rename one of them',
    ],
    [
      'a binding of the runtime',
      {
        'tools/greet.ts': tool('greet'),
        'manifests/tools/greet.yaml': 'kind: Tool\nname: greet\nimplementation: {type: code, bindings: [SESSIONS]}\n',
      },
      'SESSIONS is a binding of the runtime, which tools may not use',
    ],
    [
      'code that ends the process, and the other tools are known',
      {
        'tools/greet.ts': tool('greet'),
        'tools/gone.ts': 'process.exit(0);',
        'manifests/agents/helper.yaml':
          'kind: Agent\nversion: "1"\nname: helper\nsummary: Helps.\npersona: P.\nimport: {tools: [greet]}\n',
      },
      'error    tools/gone.ts:1:1: cannot be loaded: it ended the process\nmanifests: 1 error, nothing written',
    ],
  ])('reports %s, and writes nothing', (_name, files, message) => {
    for (const [path, text] of Object.entries(files)) put(path, text);
    const { status, said } = build();
    expect(said).toContain(message);
    expect(status).toBe(1);
    expect(existsSync(join(root, 'src/project.generated.ts'))).toBe(false);
  });

  test('omits a code tool with errors, and reports nothing but these', () => {
    put('tools/greet.ts', tool('greet'));
    put('tools/wave.ts', tool('wave'));
    put('manifests/tools/wave.yaml', 'kind: Tool\nname: wave\nimplementation: {type: code}\n');
    put(
      'manifests/agents/helper.yaml',
      'kind: Agent\nversion: "1"\nname: helper\nsummary: Helps.\npersona: P.\nimport: {tools: [greet, wave]}\n',
    );
    expect(build().status).toBe(0);
    put('tools/greet.ts', 'throw new Error("greet fails");\n');
    put('tools/wave.ts', 'throw new Error("wave fails");\n');
    const { status, said } = build({ CORTEX_KEEP_BUNDLE: '1' });
    expect(said.split('\n')).toEqual(
      expect.arrayContaining([
        'error    tools/greet.ts:1:1: cannot be loaded: greet fails',
        'error    tools/wave.ts:1:1: cannot be loaded: wave fails',
        'warning  manifests/agents/helper.yaml:6:18: import.tools[0]: tools/greet.ts has errors, so the tool in it is omitted',
        'warning  manifests/agents/helper.yaml:6:25: import.tools[1]: the tool "wave" has errors and is omitted',
        'warning  manifests/tools/wave.yaml:3:24: implementation.type: tools/wave.ts has errors, so the tool is omitted',
        'src/project.generated.ts: 1 agents, 0 tools',
      ]),
    );
    expect(said.match(/^error/gm)).toHaveLength(2);
    expect(status).toBe(0);
    // no earlier version of a code tool is kept, because its code is not in the bundle
    expect(generated()).toContain(String.raw`\"tools\":[],\"relics\":[]`);
    expect(generated()).toContain('tools: {}');
  });

  test('of another project has only the shipped definitions that it uses', () => {
    put(
      'manifests/agents/helper.yaml',
      'kind: Agent\nversion: "1"\nname: helper\nsummary: Helps.\npersona: You help.\nimport: {tools: [calculator]}\n',
    );
    expect(build()).toEqual({ status: 0, said: 'src/project.generated.ts: 1 agents, 1 tools\n' });
    expect(generated()).toContain('calculator');
    expect(generated()).not.toContain('web_fetch');
  });

  test('finds tools directly in tools/, without helpers, tests and declarations', () => {
    for (const name of ['a.ts', '_b.ts', 'c.test.ts', 'd.d.ts', 'e.md', 'lib/f.ts']) put(`tools/${name}`, '');
    expect(toolFiles(root)).toEqual({ files: ['tools/a.ts'], problems: [] });
  });
});
