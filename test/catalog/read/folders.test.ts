import { describe, expect, test } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { agent, load, tool, workflow } from '../../support/manifests.ts';

describe('a folder with other files', () => {
  test.each([
    ['a compose file', 'services: {db: {image: postgres}}\n', 'no "kind", so it is no manifest; skipped'],
    ['settings with an inner kind', 'log: {kind: json}\n', 'no "kind", so it is no manifest; skipped'],
    ['an empty file', ' \n', 'the file is empty; skipped'],
    ['a list', '- kind\n- other\n', 'no "kind", so it is skipped'],
    ['broken YAML', 'a: [1, 2\n# kind\n', 'no "kind", so it is skipped'],
    ['a template', '{{ .Values.kind }}: x\n', 'no "kind", so it is skipped'],
  ])('[M1] %s is skipped with a note', (_what, text, message) => {
    const loaded = load({ 'x.yaml': text, 't.yaml': tool('t') });
    expect([loaded.problems, loaded.warnings]).toEqual([[], []]);
    expect(loaded.skipped.map(({ file }) => file)).toEqual(['x.yaml']);
    expect(loaded.skipped[0]?.message).toContain(message);
    expect(loaded.catalog.tool('t')?.name).toBe('t');
  });

  test.each([
    ['a kind of another system', 'x.yaml', 'kind: Deployment\nmetadata: {name: web}\n', 'kind: "Deployment" is not'],
    ['a kind that contains one of ours', 'x.yaml', 'kind: RelicSpec\n', 'kind: "RelicSpec" is not a manifest kind'],
    ['a file with the name of a manifest', 'x/agent.yml', 'persona: x\n', 'no "kind", so it is no manifest; skipped'],
    ['the fields of a manifest', 'x.yaml', 'name: a\nversion: "1"\nsummary: of a kind\n', 'kind: is missing, so'],
  ])('[M1] %s is skipped with a warning', (_what, path, text, message) => {
    const loaded = load({ [path]: text, 't.yaml': tool('t') });
    expect([loaded.problems, loaded.skipped]).toEqual([[], []]);
    expect(loaded.warnings.map(formatProblem)).toEqual([expect.stringContaining(message)]);
  });

  test.each([
    ['a mistake in the kind', 'kind: Agnet\nname: x\n', 'Did you mean Agent?'],
    ['broken YAML with a kind', 'kind: Tool\nname: [x\n', 'not valid YAML'],
  ])('[M1] %s is an error', (_what, text, message) => {
    const loaded = load({ 'x.yaml': text, 't.yaml': tool('t') });
    expect(loaded.problems.map(formatProblem)).toEqual([expect.stringContaining(message)]);
    expect(loaded.catalog.tool('t')?.name).toBe('t');
  });

  test('[M1] one document without a kind does not affect the others of its file', () => {
    const loaded = load({ 'x.yaml': `services: {}\n---\n${tool('t')}---\nkind: Amulet\n` });
    expect(loaded.problems).toEqual([]);
    expect([loaded.skipped.length, loaded.warnings.length]).toEqual([1, 1]);
    expect(loaded.catalog.tool('t')?.name).toBe('t');
  });

  test('[M1] a file that is given alone must be a manifest, also after it was part of a folder', () => {
    const folder = load({ 'x.yaml': 'services: {}\n', 't.yaml': tool('t') });
    const alone = loadManifests([{ path: 'x.yaml', text: 'services: {}\n', isAlone: true }], { read: folder.read });
    expect(alone.problems.map(formatProblem)).toEqual([expect.stringContaining('x.yaml:1:1: kind: is missing')]);
  });
});

describe('imports', () => {
  test.each([
    ['agents/a/tools/look', 'there is no file agents/a/agents/a/tools/look'],
    ['./tools/look', 'there is no file agents/a/tools/look'],
    ['plain.yml', 'there is no file agents/a/plain.yml'],
    ['look', 'which does not exist'],
  ])('[M2] %s is no import: a path names a file, and a name a manifest', (written, message) => {
    const loaded = load({
      'agents/a/agent.yml': agent('a', `import: {tools: ["${written}"]}`),
      'agents/a/tools/look/tool.yml': tool('look_around'),
      'shared/plain.yaml': tool('plain'),
    });
    expect(loaded.problems.map(formatProblem)).toEqual([expect.stringContaining(message)]);
  });

  test('[M2] an import that does not exist is an error of its importer only', () => {
    const loaded = load({
      'a.yaml': agent('a', 'import: {agents: [b]}'),
      'b.yaml': agent('b', 'import: {tools: [./nothing]}'),
    });
    expect(loaded.problems.map(formatProblem)).toEqual([
      'b.yaml:6:18: import.tools[0]: agent "b" imports the tool "./nothing", but there is no file nothing',
    ]);
    expect(loaded.catalog.agent('a')?.agents.size).toBe(0);
  });

  test('[M2] an importer of a file with errors loads without it', () => {
    const loaded = load({
      'a.yaml': agent('a', 'import: {tools: [./t.yaml]}'),
      't.yaml': 'kind: Tool\nname: [t\n',
    });
    expect(loaded.warnings.map(formatProblem)).toEqual([
      'a.yaml:6:18: import.tools[0]: t.yaml has errors, so the tool in it is omitted',
    ]);
    expect(loaded.catalog.agent('a')?.tools.size).toBe(0);
  });
});

describe('agents and workflows with one name in several folders', () => {
  const files = {
    'agents/one/agent.yml': agent('one', 'import: {agents: [reader]}'),
    'agents/one/agents/reader/agent.yml': agent('reader', 'description: of one\nimport: {tools: [./look.yml]}'),
    'agents/one/agents/reader/look.yml': tool('look', 'implementation: {type: builtin, entrypoint: calculator}'),
    'agents/two/agent.yml': agent('two', 'import: {agents: [./agents/reader/agent.yml], workflows: [go]}'),
    'agents/two/agents/reader/agent.yml': agent('reader', 'description: of two\nimport: {tools: [./look.yml]}'),
    'agents/two/agents/reader/look.yml': tool('look', 'implementation: {type: builtin, entrypoint: web_fetch}'),
    'agents/two/workflows/go.yml': workflow(
      'go',
      'import: {agents: [reader]}\nsteps: [{name: s, type: agent, target: reader, parameters: {message: hi}}]',
    ),
    'workflows/go.yml': workflow('go', 'steps: [{name: s, type: agent, target: reader, parameters: {message: hi}}]'),
    'reader.yml': agent('reader', 'description: of all'),
  };

  test('[M2] if the one that is called by name has errors, the next one is, and no importer gets another one', () => {
    const broken = agent('reader', 'import: {tools: [nothing]}');
    const { catalog, problems, warnings } = load({
      ...files,
      'reader.yml': broken,
      'near.yml': agent('near', 'import: {agents: [reader]}'),
    });
    expect(problems).toHaveLength(1);
    expect(warnings.map(formatProblem)).toContain(
      'agents/one/agents/reader/agent.yml:3:7: name: this one is called by name, because reader.yml has errors',
    );
    expect(catalog.agent('reader')?.agent.description).toBe('of one');
    expect(catalog.agent('reader')?.tools.get('look')?.implementation).toMatchObject({ entrypoint: 'calculator' });
    expect(catalog.agent('near')?.agents.size).toBe(0);
    const scope = catalog.agent('two')?.agents.get('reader')?.scope;
    expect(catalog.agent('reader', scope)?.agent.description).toBe('of two');
    expect(catalog.agent('one')?.agents.get('reader')?.summary).toBe('Something');
  });

  test('[M2] a definition with errors that already has its name keeps it', () => {
    const broken = agent('reader', 'import: {tools: [nothing]}');
    const isCurrent = (_kind: string, _name: string, file: string): boolean => file === 'reader.yml';
    const { catalog } = load({ ...files, 'reader.yml': broken }, { isCurrent });
    expect(catalog.agent('reader')).toBeNull();
  });

  test('[M2] each importer has its own, with its own imports; the one nearest the root is called by name', () => {
    const { catalog, problems, warnings } = load(files);
    expect(problems).toEqual([]);
    expect(warnings.map(formatProblem)).toEqual([
      'agents/one/agents/reader/agent.yml:3:7: name: another agent is already called "reader", in reader.yml:3; that one is called by name, and importers nearer to this one use this one',
      'agents/two/agents/reader/agent.yml:3:7: name: another agent is already called "reader", in reader.yml:3; that one is called by name, and importers nearer to this one use this one',
      'agents/two/agents/reader/look.yml:3:7: name: another tool is already called "look", in agents/one/agents/reader/look.yml:3; importers nearer to this one use it',
      'agents/two/workflows/go.yml:3:7: name: another workflow is already called "go", in workflows/go.yml:3; that one is called by name, and importers nearer to this one use this one',
    ]);
    expect(catalog.agent('reader')?.agent).toMatchObject({ description: 'of all' });
    const meant = ['one', 'two'].map((name) => {
      const scope = catalog.agent(name)?.agents.get('reader')?.scope;
      const found = catalog.agent('reader', scope);
      return [found?.agent.description, found?.tools.get('look')?.implementation];
    });
    expect(meant).toMatchObject([
      ['of one', { entrypoint: 'calculator' }],
      ['of two', { entrypoint: 'web_fetch' }],
    ]);
    const inner = catalog.workflow('go', catalog.agent('two')?.workflows.get('go')?.scope);
    expect(inner?.agents.get('reader')?.description).toBe('of two');
    expect(catalog.workflow('go')?.agents.get('reader')?.description).toBe('of all');
    expect(catalog.list('agent').map(({ name }) => name)).toEqual(['one', 'reader', 'two']);
  });

  test('[M2] the order of the files does not matter', () => {
    const before = load(files);
    const after = load(Object.fromEntries(Object.entries(files).toReversed()));
    expect(after.warnings).toEqual(before.warnings);
    expect(after.catalog.agent('reader')).toEqual(before.catalog.agent('reader'));
  });

  test('[M2] a definition that already has its name keeps it', () => {
    const isCurrent = (_kind: string, _name: string, file: string): boolean => file.startsWith('agents/two');
    expect(load(files, { isCurrent }).catalog.agent('reader')?.agent.description).toBe('of two');
  });

  test('[M2] an importer whose own definition has errors does not get another one with its name', () => {
    const loaded = load({ ...files, 'agents/one/agents/reader/agent.yml': agent('reader', 'loop: 7') });
    expect(loaded.catalog.agent('one')?.agents.size).toBe(0);
    expect(loaded.catalog.agent('two')?.agents.get('reader')?.description).toBe('of two');
  });
});

describe('shipped definitions', () => {
  const isShipped = (file: string): boolean => file.startsWith('shipped/');
  const shipped = {
    'shipped/helper.yaml': agent('helper', 'import: {tools: [calc]}'),
    'shipped/calc.yaml': tool('calc', 'implementation: {type: builtin, entrypoint: calculator}'),
  };

  test('[M4] a definition of the project replaces a shipped one with a warning, for every importer', () => {
    const { catalog, problems, warnings } = load({ ...shipped, 'own/deep/calc.yaml': tool('calc') }, { isShipped });
    expect(problems).toEqual([]);
    expect(warnings.map(formatProblem)).toEqual([
      'own/deep/calc.yaml:3:7: name: replaces the shipped tool "calc" (shipped/calc.yaml)',
    ]);
    expect(catalog.agent('helper')?.tools.get('calc')?.implementation).toMatchObject({ entrypoint: 'echo' });
  });

  test('[M4] without the warning where the shipped definitions are a library', () => {
    const files = { ...shipped, 'own/deep/calc.yaml': tool('calc') };
    const { catalog, warnings } = load(files, { isShipped, warnsOfReplaced: false });
    expect(warnings).toEqual([]);
    expect(catalog.agent('helper')?.tools.get('calc')?.implementation).toMatchObject({ entrypoint: 'echo' });
  });

  test('[M4] a definition with errors replaces nothing', () => {
    const { catalog, problems } = load({ ...shipped, 'own/calc.yaml': tool('calc', 'executor: 7') }, { isShipped });
    expect(problems.map(({ file }) => file)).toEqual(['own/calc.yaml']);
    expect(catalog.agent('helper')?.tools.get('calc')?.implementation).toMatchObject({ entrypoint: 'calculator' });
  });

  test('[M4] a reserved name is refused; the importers of its file use the bundled definition', () => {
    const { catalog: bundled } = load(shipped);
    const files = { 'a.yaml': agent('a', 'import: {tools: [./calc.yaml]}'), 'calc.yaml': tool('calc') };
    const loaded = load(files, { bundled });
    expect(loaded.problems).toMatchObject([{ file: 'calc.yaml', code: 'manifest_read_only' }]);
    expect(loaded.warnings.map(formatProblem)).toEqual([
      'a.yaml:6:18: import.tools[0]: the tool "calc" in calc.yaml did not load; the shipped one is used',
    ]);
    expect(loaded.catalog.agent('a')?.agent.imports.tools).toEqual(['calc']);
  });
});
