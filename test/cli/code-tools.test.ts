/** The build of a project with code tools (K2). */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readCodeTools, toolFiles } from '../../cli/project/code-tools.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import type { DescribedTool } from '../../src/domain/code-tool.ts';
import { cortexHere } from '../support/cortex.ts';
import { folderOfEach } from './scene.ts';

let root = '';
folderOfEach((made) => {
  root = made;
  symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(root, 'node_modules'), 'dir');
  put('wrangler.toml', 'name = "p"\n');
  put('src/worker.ts', '');
  put('manifests/agents/helper.yaml', 'kind: Agent\nversion: "1"\nname: helper\nsummary: Helps.\npersona: You help.\n');
});

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

async function build(env: Record<string, string> = {}): Promise<{ readonly status: unknown; readonly said: string }> {
  const { out, err, code } = await cortexHere(['build'], { cwd: root, env });
  return { status: code, said: `${out}${err}` };
}

const generated = (): string => readFileSync(join(root, 'src/project.generated.ts'), 'utf8');
/** A schema without a package, which bundles fast. */
const PLAIN = "{ '~standard': { jsonSchema: { input: () => ({ type: 'object' }) } } }";
const tool = (name: string, more = '', parameters = PLAIN): string => `import { defineTool } from 'cortex-edge';
import { env } from 'cloudflare:workers';
${more}
export default defineTool({
  name: '${name}', description: 'Says ${name}.', parameters: ${parameters},
  effects: 'pure', run: ({ to }) => \`${name} \${to} \${env.X}\`,
});
`;
const zodTool = (name: string, parameters = "z.object({ to: z.string().describe('whom') })"): string =>
  tool(name, "import { z } from 'zod';", parameters);

describe('[K1] [K2] cortex build', () => {
  test('bundles tools with and without a manifest, with their schemas', async () => {
    put('tools/greet.ts', zodTool('greet'));
    put('tools/wave.ts', tool('wave', "import { help } from './lib/help.ts';\nhelp();"));
    put('tools/lib/help.ts', 'export const help = (): void => undefined;\n');
    put('tools/_shared.ts', 'throw new Error("never loaded");\n');
    put(
      'manifests/tools/greet.yaml',
      'kind: Tool\nname: greet\nimplementation: {type: code, bindings: [DB]}\ntimeout: 5\n',
    );
    expect(await build()).toEqual({ status: 0, said: 'src/project.generated.ts: 1 agents, 2 tools\n' });
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

  test('has another version after a change of code, and the same one without', async () => {
    const version = (): string => /version: "(\w+)"/.exec(generated())?.[1] ?? '';
    put('tools/greet.ts', tool('greet'));
    await build();
    const first = version();
    await build();
    expect(version()).toBe(first);
    put('tools/greet.ts', tool('greet').replace('greet $', 'hello $'));
    await build();
    expect(version()).not.toBe(first);
  });

  test('reports each tool that cannot be loaded, and knows the others', () => {
    const files: Readonly<Record<string, [code: string, message: string]>> = {
      syntax: ['export default {', 'Expected'],
      missing: ["import './no.ts';", 'Could not resolve "./no.ts"'],
      other: [tool('hello'), 'so the file must be called tools/hello.ts'],
      bare: ['export const x = 1;', 'must export a tool by default'],
      throws: ['throw new Error("at load");', 'cannot be loaded: at load'],
      text: [zodTool('text', 'z.string()'), '"parameters" must be a zod object'],
      bigint: [zodTool('bigint', 'z.object({ to: z.bigint() })'), 'BigInt cannot be represented in JSON Schema'],
      gone: ['process.exit(0);', 'cannot be loaded: it ended the process'],
    };
    for (const [name, [code]] of Object.entries(files)) put(`tools/${name}.ts`, code);
    put('tools/greet.ts', tool('greet'));
    const { tools, problems } = readCodeTools(root, 'of the user');
    expect(tools.map(({ name }) => name)).toEqual(['greet']);
    expect(Object.fromEntries(problems.map(({ file, message }) => [file, message]))).toEqual(
      Object.fromEntries(
        Object.entries(files).map(([name, [, message]]) => [`tools/${name}.ts`, expect.stringContaining(message)]),
      ),
    );
    expect(problems.find(({ file }) => file === 'tools/syntax.ts')).toMatchObject({ line: 1, column: 17 });
  });

  test('prints an error on lines of its own, and writes nothing', async () => {
    put('tools/greet.ts', String.raw`throw new Error("at load\nerror    manifests/a.yaml:1:1: forged");`);
    const { status, said } = await build();
    expect(said).toContain('cannot be loaded: at load\n         error    manifests/a.yaml:1:1: forged');
    expect(said).toContain('manifests: 1 error, nothing written');
    expect(status).toBe(1);
    expect(existsSync(join(root, 'src/project.generated.ts'))).toBe(false);
  });

  test('omits a code tool with errors, and reports nothing but these', async () => {
    put('tools/greet.ts', tool('greet'));
    put('tools/wave.ts', tool('wave'));
    put('manifests/tools/wave.yaml', 'kind: Tool\nname: wave\nimplementation: {type: code}\n');
    put(
      'manifests/agents/helper.yaml',
      'kind: Agent\nversion: "1"\nname: helper\nsummary: Helps.\npersona: P.\nimport: {tools: [greet, wave]}\n',
    );
    expect((await build()).status).toBe(0);
    put('tools/greet.ts', 'throw new Error("greet fails");\n');
    put('tools/wave.ts', 'throw new Error("wave fails");\n');
    const { status, said } = await build({ CORTEX_KEEP_BUNDLE: '1' });
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

  test('finds tools directly in tools/, without helpers, tests and declarations', () => {
    for (const name of ['a.ts', '_b.ts', 'c.test.ts', 'd.d.ts', 'e.md', 'lib/f.ts']) put(`tools/${name}`, '');
    expect(toolFiles(root)).toEqual({ files: ['tools/a.ts'], problems: [] });
  });
});

describe('[K2] the manifest of a code tool', () => {
  const described = (name: string): DescribedTool => ({
    file: `tools/${name}.ts`,
    name,
    description: 'd',
    parameters: { type: 'object' },
    effects: 'pure',
  });
  const codeTools = new Map(['greet', 'wave'].map((name) => [name, described(name)]));
  const load = (text: string) => loadManifests([{ path: 'manifests/greet.yaml', text }], { codeTools });

  test.each<[name: string, text: string, field: string, message: string]>([
    [
      'without code, with the nearest name',
      'kind: Tool\nname: gret\nimplementation: {type: code}\n',
      'implementation.type',
      'no code tool is called "gret" (nearest: greet); tools/gret.ts of the project must export it, and uploaded manifests cannot bring code',
    ],
    [
      'with parameters',
      'kind: Tool\nname: greet\nimplementation: {type: code}\nparameters: {to: string}\n',
      'parameters',
      'is in the code of the tool; remove it here',
    ],
    [
      'with effects',
      'kind: Tool\nname: greet\nimplementation: {type: code}\neffects: pure\n',
      'effects',
      'is in the code of the tool; remove it here',
    ],
    [
      'of another type',
      'kind: Tool\nversion: "1"\nname: greet\nsummary: s\nimplementation: {type: builtin, entrypoint: echo}\n',
      'name',
      'the code tool in tools/greet.ts has this name too; rename one of them',
    ],
    [
      'with a binding of the runtime',
      'kind: Tool\nname: greet\nimplementation: {type: code, bindings: [SESSIONS]}\n',
      'implementation.bindings[0]',
      'SESSIONS is a binding of the runtime, which tools may not use',
    ],
  ])('is refused %s', (_name, text, field, message) => {
    expect(load(text).problems).toMatchObject([{ field, message: expect.stringContaining(message) }]);
  });

  test('is not a definition of another kind with its name', () => {
    const agent =
      'kind: Agent\nversion: "1"\nname: wave\nsummary: Waves.\npersona: You wave.\nimport: {tools: [wave]}\n';
    const { problems, catalog } = load(`kind: Tool\nname: greet\nimplementation: {type: code}\n---\n${agent}`);
    expect(problems).toEqual([]);
    expect(catalog.list('tool').map(({ name }) => name)).toEqual(['greet', 'wave']);
  });
});
