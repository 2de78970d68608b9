import { describe, expect, test } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { limits } from '../../../src/domain/limits.ts';
import { agent, head, load, relic, said, tool, workflow } from '../../support/manifests.ts';

describe('notations of parameters', () => {
  test.each([
    ['parameters: [{name: q, type: string, required: true}]'],
    ['parameters: {q: string}'],
    ['parameters: {q: {type: string, required: true}}'],
    ['parameters: {type: object, properties: {q: {type: string}}, required: [q], additionalProperties: false}'],
    ['parameters_schema: {type: object, properties: {q: {type: string}}, required: [q], additionalProperties: false}'],
  ])('[M3] the same parameters, as %s', (written) => {
    const loaded = load({ 't.yaml': tool('t', written) });
    expect(said(loaded)).toEqual([]);
    expect(loaded.catalog.tool('t')?.parameters).toEqual({
      type: 'object',
      properties: { q: { type: 'string' } },
      required: ['q'],
      additionalProperties: false,
    });
  });
});

test('[M1] a Markdown file with front matter is a manifest, its text the persona', () => {
  const loaded = load({
    'agents/poet.md': `---\n${head('Agent', 'poet')}import: {tools: [echo2]}\n---\n\n# You are a poet\n\nRhyme.\n---\nAlways.\n`,
    'tools/echo2.md': `---\r\n${tool('echo2').replaceAll('\n', '\r\n')}---\r\nHow to use it.\r\n`,
    'README.md': '# About\n---\nNo manifest.\n',
    'notes.md': '---\ntitle: no manifest either\n---\n',
    'bad.md': '---\nkind: Poem\n---\nx\n',
  });
  expect(said(loaded)).toEqual([
    'bad.md:2:7: kind: "Poem" is not a manifest kind (known: Agent, Tool, Relic, Workflow, Monument), so the document is skipped',
  ]);
  expect(loaded.catalog.agent('poet')?.agent.persona.agent).toBe('# You are a poet\n\nRhyme.\n---\nAlways.');
  expect(loaded.catalog.tool('echo2')?.description).toBe('How to use it.');
});

describe('imports', () => {
  test.each([
    'fetch',
    './tools/fetch.yaml',
    'tools/fetch.yaml',
    '.\\tools\\fetch.yaml',
    '/srv/project/manifests/tools/fetch.yaml',
    '/manifests/tools/fetch.yaml',
    'C:\\work\\manifests\\tools\\fetch.yaml',
  ])('[M2] %s is found', (written) => {
    const loaded = load({
      'manifests/a.yaml': agent('a', `import: {tools: ['${written}']}`),
      'manifests/tools/fetch.yaml': tool('fetch'),
    });
    expect(said(loaded)).toEqual([]);
    expect([...(loaded.catalog.agent('a')?.tools.keys() ?? [])]).toEqual(['fetch']);
  });

  test('[M2] two folders can have tools and relics with the same name; each importer gets its own', () => {
    const loaded = load({
      'east/agent.yaml': agent('east', 'import: {tools: [look], relics: [./memo.yaml]}'),
      'east/look.yaml': tool('look', 'implementation: {type: builtin, entrypoint: echo}'),
      'east/memo.yaml': relic('memo'),
      'west/agent.yaml': agent('west', 'import: {tools: [../west/look.yaml], relics: [memo]}'),
      'west/look.yaml': tool('look', 'implementation: {type: builtin, entrypoint: calculator}'),
      'west/memo.yaml': relic('memo', 'implementation: {type: edge, store: log}'),
      'agent.yaml': agent('root', 'import: {tools: [look]}'),
    });
    expect(loaded.problems).toEqual([]);
    expect(loaded.warnings.map(formatProblem)).toEqual([
      'west/look.yaml:3:7: name: another tool is already called "look", in east/look.yaml:3; importers nearer to this one use it',
      'west/memo.yaml:3:7: name: another relic is already called "memo", in east/memo.yaml:3; importers nearer to this one use it',
    ]);
    const meant = (name: string): unknown[] => {
      const resolved = loaded.catalog.agent(name);
      return [resolved?.tools.get('look')?.implementation, resolved?.relics.get('memo')?.implementation];
    };
    expect(meant('east')).toMatchObject([{ entrypoint: 'echo' }, { store: 'kv' }]);
    expect(meant('west')).toMatchObject([{ entrypoint: 'calculator' }, { store: 'log' }]);
    expect(meant('root')).toMatchObject([{ entrypoint: 'echo' }, undefined]);
  });

  test('[M2] of two imports with the same name, the first path counts, and a path counts before a name', () => {
    const loaded = load({
      'a.yaml': agent('a', 'import: {tools: [look, ./x/look.yaml, ./y/look.yaml]}'),
      'look.yaml': tool('look', 'implementation: {type: builtin, entrypoint: calculator}'),
      'x/look.yaml': tool('look', 'implementation: {type: builtin, entrypoint: echo}'),
      'y/look.yaml': tool('look', 'implementation: {type: builtin, entrypoint: web_fetch}'),
      'w.yaml': workflow('w', 'import: {tools: [./y/look.yaml]}\nsteps: [{name: s, type: tool, target: look}]'),
    });
    expect(loaded.problems).toEqual([]);
    expect(loaded.warnings.map(formatProblem)).toContain(
      'a.yaml:6:39: import.tools[2]: "look" already refers to the tool in x/look.yaml; this one is omitted',
    );
    expect(loaded.catalog.agent('a')?.tools.get('look')?.implementation).toMatchObject({ entrypoint: 'echo' });
    expect(loaded.catalog.workflow('w')?.tools.get('look')?.implementation).toMatchObject({ entrypoint: 'web_fetch' });
  });

  test('[M2] a step cannot use another definition than the import with its name', () => {
    const loaded = load({
      'w.yaml': workflow(
        'w',
        'import: {tools: [./y/look.yaml]}\nsteps: [{name: s, type: tool, target: ./x/look.yaml}]',
      ),
      'x/look.yaml': tool('look'),
      'y/look.yaml': tool('look'),
    });
    expect(loaded.problems.map(formatProblem)).toEqual([
      'w.yaml:6:39: steps[0].target: "look" already refers to the tool in y/look.yaml',
    ]);
  });

  test('[M2] an importer of a definition that did not load loads without it, with a warning', () => {
    const loaded = load({
      'a.yaml': agent('a', 'import: {tools: [t]}'),
      't.yaml': tool('t', 'implementation: {type: zzz}'),
    });
    expect(said(loaded)).toEqual([
      't.yaml:5:24: implementation.type: "zzz" is not allowed (allowed: builtin, script, http, container, code, client)',
      'a.yaml:6:18: import.tools[0]: the tool "t" has errors and is omitted',
    ]);
    expect(loaded.catalog.agent('a')?.tools.size).toBe(0);
  });

  test('[M4] a bare name is also looked up among the bundled definitions, whose names are reserved', () => {
    const { catalog: common } = load({ 'c.yaml': tool('common_tool'), 'a.yaml': agent('shipped') });
    const files = [
      { path: 'a.yaml', text: agent('a', 'import: {tools: [common_tool, comon_tool]}') },
      { path: 'b.yaml', text: agent('shipped') },
      { path: 'c.yaml', text: agent('c', 'import: {tools: [common_tool]}') },
    ];
    const loaded = loadManifests(files, { bundled: common });
    expect(said(loaded)).toEqual([
      'a.yaml:6:31: import.tools[1]: agent "a" imports the tool "comon_tool", which does not exist (nearest: common_tool)',
      'b.yaml:3:7: name: "shipped" is the name of a bundled agent, which cannot be changed',
    ]);
    expect(loaded.catalog.agent('c')?.agent.imports.tools).toEqual(['common_tool']);
  });
});

describe('hostile files', () => {
  test.each([
    ['__proto__ as a field', `${tool('t')}__proto__: {effects: pure}\n`, '"__proto__" is not allowed as a field name'],
    [
      'a nested __proto__ key',
      `${tool('t')}metadata: {a: [{__proto__: {x: 1}}]}\n`,
      '"__proto__" is not allowed as a field name',
    ],
    [
      'nesting',
      `${tool('t')}metadata: {a: ${'['.repeat(200)}${']'.repeat(200)}}\n`,
      `deeper than ${limits.jsonDepth} levels`,
    ],
    [
      'an alias bomb',
      `a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n`,
      'expands its aliases too often',
    ],
    ['a tag', 'kind: !!js/function "x"\n', 'Unresolved tag'],
    ['a merge key', 'x: &x {kind: Tool}\n<<: *x\n', 'kind'],
  ])('[M1] %s gives a specific error', (_what, text, message) => {
    const bad = { path: 'bad.yaml', text, isAlone: true };
    const loaded = loadManifests([{ path: 'good.yaml', text: tool('good') }, bad]);
    expect(loaded.problems.map(formatProblem).join('\n')).toContain(message);
    expect(loaded.problems.every(({ file }) => file === 'bad.yaml')).toBe(true);
    expect(loaded.catalog.list('tool').map(({ name }) => name)).toEqual(['good']);
    expect(({} as Record<string, unknown>)['effects']).toBeUndefined();
  });

  test('[M1] names of Object.prototype members are not definitions', () => {
    const loaded = load({ 'a.yaml': agent('a', 'import: {tools: [constructor, toString, __proto__]}') });
    expect(loaded.problems.map(({ message }) => message)).toEqual([
      expect.stringContaining('which does not exist'),
      expect.stringContaining('which does not exist'),
      expect.stringContaining('which does not exist'),
    ]);
  });
});
