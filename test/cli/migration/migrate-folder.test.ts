/** What the new folder contains, and what becomes of what cannot be converted (M1, M2). */
import { describe, expect, test } from 'vitest';
import { migrateFolder } from '../../../cli/migration/migrate-folder.ts';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import { bundled } from '../../support/bundled.ts';
import { agent, filesOf, head, tool } from '../../support/manifests.ts';
import { migrated } from '../../support/migrated.ts';

const SCRIPT = `${head('Tool', 'pulse')}runtime: python3\nentrypoint: ./run.py\n`;

describe('[M1] the new folder', () => {
  test('has the manifests and the files that they name, and nothing else', () => {
    const { migration } = migrated({
      'a/agent.yml': `${head('Agent', 'a')}context: {persona: ./p.md, system: ./none.md}\nimport: {tools: [../t/tool.yml], skills: [rhyme]}\n`,
      'a/p.md': 'I am a cook.',
      'a/other.md': 'not named',
      't/tool.yml': SCRIPT,
      't/run.py': 'import words\n',
      't/words.py': 'x = 1\n',
      't/README.md': 'not named',
      'r/relic.yml': `${head('Relic', 'r')}mode: managed\nport: 8004\nendpoints: [{name: ask}]\n`,
      'r/docker-compose.yml': 'services: {r: {build: ., ports: ["8004:80"]}}\n',
      'r/Dockerfile': 'FROM python\nCOPY app/ /app/\n',
      'r/app/main.py': 'print(1)\n',
      'skills/rhyme/SKILL.md': '---\nname: rhyme\ndescription: d\n---\nWrite pairs.\n',
      'skills/rhyme/words.txt': 'cat hat\n',
      'settings.yml': 'a: 1\n',
    });
    expect([...migration.files.keys()]).toEqual([
      'a/agent.yml',
      'a/p.md',
      'r/Dockerfile',
      'r/app/main.py',
      'r/docker-compose.yml',
      'r/relic.yml',
      'skills/rhyme/SKILL.md',
      'skills/rhyme/words.txt',
      't/run.py',
      't/tool.yml',
      't/words.py',
    ]);
    expect(migration.unconverted.size).toBe(0);
  });

  test('has manifests in our own form as they were written, and can be converted again without a change', () => {
    const own = `# mine\n${agent('own', 'tags:   [a,   b]\ncognitive_engine: { vision: true, primary: { model: m, vision: true } }')}`;
    const first = migrated({
      'own.yml': own,
      'old.yml': `${agent('old', 'iteration_cap: 3\ngrade: rare')}---\n${tool('t')}`,
    });
    expect(first.migration.files.get('own.yml')).toBe(own);
    const again = migrated(Object.fromEntries(first.migration.files));
    expect([...again.migration.files]).toEqual([...first.migration.files]);
    expect(again.warnings).toEqual([]);
  });

  test('keeps the text of a Markdown manifest, unless it became a part of the persona', () => {
    const front = `${head('Agent', 'poet')}iteration_cap: 3\n`;
    const whole = migrated({ 'poet.md': `---\n${front}---\n\n# You are a poet\n\n---\nAlways.\n` });
    expect(whole.migration.files.get('poet.md')).toBe(
      `---\n${head('Agent', 'poet')}loop:\n  max_iterations: 3\n---\n\n# You are a poet\n\n---\nAlways.\n`,
    );
    const part = migrated({ 'poet.md': `---\n${front}context: {system: "Use rhymes."}\n---\nYou are a poet.\n` });
    expect(part.catalog.agent('poet')?.agent.persona.agent).toBe('You are a poet.\n\nUse rhymes.');
  });

  test('says in a comment what was lost, without the path of the folder', () => {
    const files = filesOf({
      '/old/a.yml': agent('a', 'sandbox: {mode: process}\nimport: {tools: [./broken.yml]}'),
      '/old/broken.yml': tool('b', 'color: red'),
    });
    const { files: texts } = migrateFolder({ path: '/old', files }, { load: (all) => loadManifests(all) });
    expect(texts.get('/old/a.yml')).toContain('# migrate: without effect here: code and scripts run in the runner');
    expect(texts.get('/old/a.yml')).toContain('# migrate: broken.yml has errors, so the tool in it is omitted');
  });
});

describe('[M1] what cannot be converted', () => {
  const files = {
    'a.yml': agent('a', '# why\nimport: {tools: [here, gone]}\niteration_cap: 3'),
    'b.yml': agent('b', 'import:\n  agents:\n    - a # the first\n    - c'),
    'c.yml': agent('c'),
    'w.yml': `${head('Workflow', 'w')}import: {agents: [a, c]}\nsteps: [{id: s, agent: c, params: {prompt: hi}}, {id: t, agent: a, params: {prompt: hi}}]\n`,
    'here.yml': tool('here'),
  };
  const { migration, problems, catalog } = migrated(files);

  test('is no manifest of the new folder; its text has the errors as comments, with the line in the old file', () => {
    expect(problems.map(formatProblem)).toEqual([
      'a.yml:7:24: import.tools[1]: agent "a" imports the tool "gone", which does not exist',
    ]);
    expect(migration.files.has('a.yml')).toBe(false);
    const text = migration.unconverted.get('a.yml') ?? '';
    expect(text).toContain('# why\n');
    expect(text).toContain('max_iterations: 3');
    expect(text).toContain('# migrate: error in line 7 at import.tools[1]: agent "a" imports the tool "gone"');
  });

  test('[M2] is no import of the others', () => {
    expect(catalog.agent('b')?.agent.imports.agents).toEqual(['c']);
    expect(catalog.workflow('w')?.workflow.imports.agents).toEqual(['c']);
    expect(migration.files.get('b.yml')).toContain('# migrate: a.yml has errors, so the agent in it is omitted\n');
  });

  test.each([
    ['a file that is not YAML', 'kind: Tool\nname: "x\n'],
    ['a document that is not YAML beside a good one', `${tool('here2')}---\nname: a\nname: b\n`],
  ])('%s is kept whole, with its errors', (_what, text) => {
    const { unconverted } = migrated({ 'x.yml': text }).migration;
    expect(unconverted.get('x.yml')).toMatch(/^# migrate: error in line \d+: /);
    expect(unconverted.get('x.yml')).toContain(text);
  });

  test('does not take the good documents of its file with it', () => {
    const both = migrated({
      'x.yml': `${head('Tool', 'good')}executor: echo\n---\n${agent('bad', 'import: {tools: [nope]}')}`,
    });
    expect(both.migration.files.get('x.yml')).toContain('name: good');
    expect(both.migration.files.get('x.yml')).not.toContain('name: bad');
    expect(both.migration.unconverted.get('x.yml')).toContain('name: bad');
    expect(both.migration.documents.map(({ name, status }) => [name, status])).toEqual([
      ['good', 'loads'],
      ['bad', 'fails'],
    ]);
  });

  test('[M6] is a step that fails when it runs, as before', () => {
    const { steps } = catalog.workflow('w')?.workflow ?? { steps: [] };
    expect(steps).toMatchObject([
      { name: 's', target: 'c' },
      { name: 't', target: 'a' },
    ]);
    expect(migration.files.get('w.yml')).toContain('omitted; the step fails when it runs\n');
  });
});

describe('[M2] imports of what the project has', () => {
  test('keep their names, also beside a folder with the same name', () => {
    const { catalog, problems } = migrated(
      { 'a.yml': agent('a', 'import: {tools: [calculator, builtin/web_fetch]}') },
      { bundled },
    );
    expect(problems).toEqual([]);
    expect(catalog.agent('a')?.agent.imports.tools).toEqual(['calculator', 'web_fetch']);
  });
});
