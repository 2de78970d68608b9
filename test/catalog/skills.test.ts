/** Skills in the format that other agents use, and what hostile and careless ones become (C8). */
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../src/catalog/check/problem.ts';
import { graphOf } from '../../src/catalog/store/graph.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import type { LoadedManifests } from '../../src/catalog/load.ts';
import { limits } from '../../src/domain/limits.ts';
import type { SkillDefinition } from '../../src/domain/manifests/skill.ts';

const load = (files: Readonly<Record<string, string>>): LoadedManifests =>
  loadManifests(Object.entries(files).map(([path, text]) => ({ path, text })));

const skill = (front: string, body = '# Steps\n\nDo it.'): string => `---\n${front}\n---\n\n${body}\n`;
const plain = (name: string, description = 'Does a thing.'): string =>
  skill(`name: ${name}\ndescription: ${description}`);
const agent = (name: string, skills: string): string =>
  `kind: Agent\nversion: "1.0"\nname: ${name}\nsummary: Somebody\npersona: You help.\nimport: {skills: [${skills}]}\n`;

const only = (files: Readonly<Record<string, string>>): SkillDefinition => {
  const { catalog, problems } = load(files);
  expect(problems.map(formatProblem)).toEqual([]);
  const [found] = catalog.data.skills;
  if (found === undefined) throw new Error('there is no skill');
  return found;
};
const problemsOf = (files: Readonly<Record<string, string>>): string[] => load(files).problems.map(formatProblem);
const warningsOf = (files: Readonly<Record<string, string>>): string[] => load(files).warnings.map(formatProblem);

describe('[C8] a skill', () => {
  test('of another agent loads unchanged, with nested files and allowed-tools', () => {
    const files = {
      'x/pdf-forms/SKILL.md': skill(
        `name: pdf-forms
description: |
  Fills and reads PDF forms.
  Use when the user mentions PDFs, forms, or signatures.
license: Complete terms in LICENSE.txt
compatibility: Requires python3, pypdf
allowed-tools: Bash(python3:*) Read Write
argument-hint: "[file]"
disable-model-invocation: false
metadata:
  author: somebody
  version: "2.1"
  tags: [pdf]`,
        '# PDF forms\n\nRead [the fields](references/fields.md), then run `python3 scripts/fill.py`.',
      ),
      'x/pdf-forms/LICENSE.txt': 'terms',
      'x/pdf-forms/scripts/fill.py': '#!/usr/bin/env python3\nprint(1)\n',
      'x/pdf-forms/references/deep/fields.md': '# Fields\n',
      'x/pdf-forms/assets/config.yaml': 'kind: Deployment\nname: web\n',
    };
    expect(warningsOf(files)).toEqual([]);
    expect(only(files)).toEqual({
      kind: 'Skill',
      name: 'pdf-forms',
      version: '2.1',
      summary: 'Fills and reads PDF forms. Use when the user mentions PDFs, forms, or signatures.',
      description: 'Fills and reads PDF forms.\nUse when the user mentions PDFs, forms, or signatures.',
      tags: [],
      metadata: {
        author: 'somebody',
        version: '2.1',
        tags: ['pdf'],
        license: 'Complete terms in LICENSE.txt',
        compatibility: 'Requires python3, pypdf',
        'allowed-tools': 'Bash(python3:*) Read Write',
        'argument-hint': '[file]',
        'disable-model-invocation': false,
      },
      text: '# PDF forms\n\nRead [the fields](references/fields.md), then run `python3 scripts/fill.py`.',
      files: [
        { path: 'LICENSE.txt', text: 'terms' },
        { path: 'assets/config.yaml', text: 'kind: Deployment\nname: web\n' },
        { path: 'references/deep/fields.md', text: '# Fields\n' },
        { path: 'scripts/fill.py', text: '#!/usr/bin/env python3\nprint(1)\n' },
      ],
    });
  });

  test('may begin with a byte order mark and have CRLF', () => {
    const text = `\uFEFF${plain('a')}`.replaceAll('\n', '\r\n');
    expect(only({ 's/a/SKILL.md': text })).toMatchObject({ name: 'a', text: '# Steps\n\nDo it.' });
  });

  test('may have its name in lower case only; documentation with this name is no skill', () => {
    const { catalog, problems } = load({ 'a/skill.md': plain('a'), 'docs/skill.md': '# How skills work\n' });
    expect(problems).toEqual([]);
    expect(catalog.list('skill').map(({ name }) => name)).toEqual(['a']);
  });

  test.each([
    ['name: deploy-app', 'a/deploy-app', 'deploy-app', null],
    ['name: deploy', 'a/deploy-app', 'deploy', 'differs from the name of its folder, "deploy-app"'],
    ['name: Deploy_App', 'a/Deploy_App', 'Deploy_App', 'other agents accept only lower-case letters'],
    ['name: 3d-models', 'a/3d-models', '3d-models', null],
    ['name: 2024', 'a/2024', '2024', null],
    ['license: MIT', 'a/deploy-app', 'deploy-app', 'is missing; the name of its folder is used: "deploy-app"'],
    ['name: Deploy the App', 'a/deploy-app', 'deploy-app', '"Deploy the App" is not the name of a skill'],
    ['name: [a, b]', 'a/deploy-app', 'deploy-app', '["a","b"] is not the name of a skill'],
    ['name: ../../etc/passwd', 'a/deploy-app', 'deploy-app', '"../../etc/passwd" is not the name of a skill'],
    ['name: "a\\nb"', 'a/deploy-app', 'deploy-app', 'is not the name of a skill'],
  ])('with %s in the folder %s is called %s', (line, folder, name, warning) => {
    const files = { [`${folder}/SKILL.md`]: skill(`${line}\ndescription: Does a thing.`) };
    expect(only(files).name).toBe(name);
    const found = warningsOf(files);
    if (warning === null) expect(found).toEqual([]);
    else expect(found).toEqual([expect.stringContaining(warning)]);
  });

  test('without a usable name, here or in its folder, is an issue at its name', () => {
    expect(problemsOf({ 'a/my skill/SKILL.md': plain('../x') })).toEqual([
      'a/my skill/SKILL.md:2:7: name: must be 1 to 64 lower-case letters, digits and hyphens, found string "../x"',
    ]);
  });

  test.each([
    [
      '# No front matter',
      '1:1: a skill begins with front matter: ---, the lines name: and description:, and again ---',
    ],
    [skill('name: a'), '2:1: description: is missing; it must be text'],
    [skill('name: a\ndescription: "  "'), '3:14: description: must say what the skill does'],
    [skill('name: a\ndescription: [x]'), '3:14: description: must be text, found list ["x"]'],
    [skill('name: a\ndescription: 5'), '3:14: description: must be text, found number 5'],
    [skill('name: a\nname: b\ndescription: x'), '3:1: not valid YAML: Map keys must be unique'],
    [skill('- a\n- b'), '2:1: a manifest is a map of fields'],
    [skill('name: a\ndescription: "x'), 'not valid YAML'],
    [skill('name: a\ndescription: x\n__proto__: 1'), '2:1: "__proto__" is not allowed as a field name'],
  ])('%j is an issue', (text, message) => {
    const found = problemsOf({ 'a/SKILL.md': text });
    expect(found).toEqual([expect.stringContaining(message)]);
    expect(found[0]).toMatch(/^a\/SKILL\.md:\d+:\d+: /);
  });

  test.each([
    [
      'description: Use when: the user asks, for example: "fill this"',
      'Use when: the user asks, for example: "fill this"',
    ],
    ['description: Handles channels: more #topics', 'Handles channels: more #topics'],
    ['description: x\nargument-hint: [file] [page]', 'x'],
    ['description: @mentions and `code`: both', '@mentions and `code`: both'],
  ])('whose line %j lacks its quotes is read as text, with a warning', (line, description) => {
    const files = { 'a/SKILL.md': skill(`name: a\n${line}`) };
    expect(only(files).description).toBe(description);
    expect(warningsOf(files)).toEqual([
      expect.stringContaining('not valid YAML; each line "name: value" was read as text'),
    ]);
  });

  test('is read in the same way with CRLF', () => {
    const text = skill('name: a\ndescription: Use when: asked').replaceAll('\n', '\r\n');
    expect(only({ 'a/SKILL.md': text }).description).toBe('Use when: asked');
  });

  test('keeps members of any type, and ignores metadata that is no map', () => {
    const files = { 'a/SKILL.md': skill('name: a\ndescription: x\nmetadata: none\nlicense: 5\nhooks: {a: [1]}') };
    expect(only(files).metadata).toEqual({ license: 5, hooks: { a: [1] } });
    expect(warningsOf(files)).toEqual([]);
  });

  test('has a text and a description within their limits', () => {
    const most = 'x'.repeat(limits.skillTextChars);
    expect(only({ 'a/SKILL.md': skill('name: a\ndescription: x', most) }).text).toBe(most);
    expect(problemsOf({ 'a/SKILL.md': skill('name: a\ndescription: x', `${most}y`) })).toEqual([
      expect.stringContaining(`the text has ${most.length + 1} characters (allowed: ${limits.skillTextChars})`),
    ]);
    const long = { 'a/SKILL.md': plain('a', 'd'.repeat(limits.skillDescriptionChars + 1)) };
    expect(only(long).description).toHaveLength(limits.skillDescriptionChars);
    expect(warningsOf(long)).toEqual([expect.stringContaining('is left out')]);
  });

  test('has files within their number and bytes', () => {
    const files = (count: number, text: string): Record<string, string> => ({
      'a/SKILL.md': plain('a'),
      ...Object.fromEntries(Array.from({ length: count }, (_, index) => [`a/f${index}.txt`, text])),
    });
    expect(only(files(limits.skillFiles, 'x')).files).toHaveLength(limits.skillFiles);
    expect(problemsOf(files(limits.skillFiles + 1, 'x'))).toEqual([expect.stringContaining('more than 100 files')]);
    const half = 'ä'.repeat(limits.skillFilesBytes / 4);
    expect(only(files(2, half)).files).toHaveLength(2);
    // Also if the files exceed what a manifest of any kind may name.
    for (const large of [{ 'a/z.txt': 'x' }, { 'a/f9.txt': half, 'a/z.txt': 'x'.repeat(limits.definitionChars) }]) {
      expect(problemsOf({ ...files(2, half), ...large })).toEqual([
        expect.stringContaining(`have more than ${limits.skillFilesBytes} bytes; leave out`),
      ]);
    }
  });

  test('leaves out files whose path or content a workspace cannot have, and names them', () => {
    const files = {
      'a/SKILL.md': plain('a'),
      'a/ok.txt': 'x',
      'a/a:b.txt': 'y',
      'a/bell\u0007.txt': 'x',
      'a/picture.bin': 'x\0y',
      [`a/${'n'.repeat(256)}`]: 'x',
    };
    expect(only(files).files.map(({ path }) => path)).toEqual(['a:b.txt', 'ok.txt']);
    const warnings = warningsOf(files).join('\n');
    expect(warnings).toContain('the file "bell\\u0007.txt" is left out: it contains a control character');
    expect(warnings).toContain('the file "picture.bin" is left out: it is not text');
    expect(warnings).toContain('is left out: it has a name longer than 255 bytes');
  });

  test('owns every file of its folder: none is a manifest, nor a skill of its own', () => {
    const files = {
      'a/SKILL.md': plain('a'),
      'a/agents/evil.yaml': agent('evil', ''),
      'a/templates/SKILL.md': plain('inner'),
      'a/agent.md': `---\n${agent('other', '')}---\nx`,
    };
    const { catalog } = load(files);
    expect(catalog.list('agent')).toEqual([]);
    expect(catalog.list('skill').map(({ name }) => name)).toEqual(['a']);
    expect(warningsOf(files)).toEqual(
      ['a/agent.md', 'a/agents/evil.yaml', 'a/templates/SKILL.md'].map(
        (file) => `${file}:1:1: belongs to the skill in a/SKILL.md, so it is no manifest`,
      ),
    );
  });

  test('needs a folder, so that it does not own all manifests', () => {
    const files = { 'SKILL.md': plain('a'), 'b.yaml': agent('b', '') };
    expect(problemsOf(files)).toEqual([
      'SKILL.md:1:1: a skill needs a folder of its own: its path must be <name>/SKILL.md',
    ]);
    expect(load(files).catalog.list('agent')).toHaveLength(1);
  });

  test('is not a YAML document with a kind', () => {
    expect(warningsOf({ 'a.yaml': 'kind: Skill\nname: a\n' })).toEqual([
      'a.yaml:1:7: kind: a skill is a folder with a SKILL.md, not a document with this kind; skipped',
    ]);
    expect(loadManifests([{ path: 'a.yaml', text: 'kind: Skill\n', isAlone: true }]).problems).toHaveLength(1);
  });
});

describe('[C8] an agent', () => {
  test('imports skills by name and by path', () => {
    const files = {
      'skills/a/SKILL.md': plain('a'),
      'skills/b/SKILL.md': plain('b'),
      'skills/c/SKILL.md': plain('c'),
      'agents/x.yaml': agent('x', 'a, ../skills/b, ../skills/c/SKILL.md'),
    };
    const { catalog, problems } = load(files);
    expect(problems).toEqual([]);
    const found = catalog.agent('x');
    expect(found?.agent.imports.skills).toEqual(['a', 'b', 'c']);
    expect([...(found?.skills?.values() ?? [])].map(({ kind, name }) => [kind, name])).toEqual([
      ['Skill', 'a'],
      ['Skill', 'b'],
      ['Skill', 'c'],
    ]);
    expect(graphOf(catalog.data).edges).toContainEqual({ from: 'agent/x', to: 'skill/a', how: 'import' });
  });

  test('gets an issue with the nearest name for an unknown skill', () => {
    expect(problemsOf({ 's/pdf-forms/SKILL.md': plain('pdf-forms'), 'x.yaml': agent('x', 'pdf-form') })).toEqual([
      'x.yaml:6:19: import.skills[0]: agent "x" imports the skill "pdf-form", which does not exist (nearest: pdf-forms)',
    ]);
  });

  test('imports at most a number of skills', () => {
    const names = Array.from({ length: limits.agentSkills + 1 }, (_, index) => `s${index}`).join(', ');
    expect(problemsOf({ 'x.yaml': agent('x', names) })[0]).toContain('at most 32 items long');
  });

  test('imports the skill of its own folder, if two have the same name', () => {
    const { catalog, warnings } = load({
      'one/a/SKILL.md': plain('a', 'The first.'),
      'two/a/SKILL.md': plain('a', 'The second.'),
      'two/x.yaml': agent('x', 'a'),
    });
    expect(catalog.agent('x')?.skills?.get('a')?.summary).toBe('The second.');
    expect(warnings.map(({ message }) => message)).toEqual([
      'another skill is already called "a", in one/a/SKILL.md:2; importers nearer to this one use it',
    ]);
  });

  test('does not load a second skill with the same name from one folder', () => {
    expect(problemsOf({ 'a/SKILL.md': plain('a'), 'a/skill.md': plain('a') })).toEqual([]);
    expect(load({ 'a/SKILL.md': plain('a'), 'a/skill.md': plain('a') }).catalog.list('skill')).toHaveLength(1);
  });

  test('is the only kind that imports skills', () => {
    const flow = 'kind: Workflow\nversion: "1"\nname: w\nsummary: s\nimport: {skills: [a]}\nsteps: []\n';
    expect(problemsOf({ 'w.yaml': flow }).join()).toContain('import.skills: unknown field');
  });
});

test('[C8] load_skill is no step of a workflow', () => {
  const flow =
    'kind: Workflow\nversion: "1"\nname: w\nsummary: s\nsteps: [{name: a, type: internal, target: load_skill}]\n';
  expect(problemsOf({ 'w.yaml': flow })).toEqual([expect.stringContaining('"load_skill" is not an internal action')]);
});

test('[C8] a skill that changes is built again from the parsed files of an earlier load', () => {
  const files = [
    { path: 'a/SKILL.md', text: plain('a') },
    { path: 'a/x.txt', text: 'one' },
  ];
  const first = loadManifests(files);
  const second = loadManifests([...files.slice(0, 1), { path: 'a/x.txt', text: 'two' }], { read: first.read });
  expect(second.catalog.data.skills[0]?.files).toEqual([{ path: 'x.txt', text: 'two' }]);
  const without = loadManifests([{ path: 'a/agent.yaml', text: agent('b', '') }], {
    read: loadManifests([...files, { path: 'a/agent.yaml', text: agent('b', '') }]).read,
  });
  expect(without.catalog.list('agent').map(({ name }) => name)).toEqual(['b']);
});

describe('[C7] workspace: none', () => {
  const of = (value: string): LoadedManifests =>
    load({
      'a.yaml': `${agent('a', '')}${value}\n`,
      't.yaml': `kind: Tool\nversion: "1"\nname: t\nsummary: s\nimplementation: {type: builtin, entrypoint: echo}\n${value}\n`,
    });

  test.each([
    ['', undefined],
    ['workspace: session', undefined],
    ['workspace: none', false],
  ])('%j', (value, expected) => {
    const { catalog, problems } = of(value);
    expect(problems).toEqual([]);
    expect(catalog.agent('a')?.agent.workspace).toBe(expected);
    expect(catalog.tool('t')?.workspace).toBe(expected);
  });

  test.each(['shared', 'false', '{size: 5}'])('%s is refused with what is allowed', (value) => {
    const found = of(`workspace: ${value}`).problems.map(formatProblem);
    expect(found).toHaveLength(2);
    for (const line of found) expect(line).toMatch(/workspace: .*(allowed: none, session)/);
  });
});
