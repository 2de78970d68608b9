import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import pc from 'picocolors';
import { afterAll, describe, expect, test } from 'vitest';
import { renderReport } from '../../../cli/migration/render.ts';
import { migrationReport } from '../../../cli/migration/report.ts';
import type { FileReport, MigrationReport } from '../../../cli/migration/report.ts';
import { PACKAGE_ROOT } from '../../../cli/project/folders.ts';
import { migrateFolder } from '../../../cli/migration/migrate-folder.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import type { LoadedManifests } from '../../../src/catalog/load.ts';
import type { ManifestFile } from '../../../src/domain/catalog.ts';
import { cortexHere } from '../../support/cortex.ts';
import type { CortexResult } from '../../support/cortex.ts';

function report(files: Readonly<Record<string, string>>): MigrationReport {
  const given = Object.entries(files).map(([path, text]) => ({ path: `old/${path}`, text }));
  const shipped = {
    path: 'manifests/tools/echo.yaml',
    text: 'kind: Tool\nversion: 1.0\nname: echo\nsummary: Shipped\nimplementation: {type: builtin, entrypoint: echo}\n',
  };
  const isShipped = (file: string): boolean => file === shipped.path;
  const load = (texts: readonly ManifestFile[]): LoadedManifests => loadManifests([shipped, ...texts], { isShipped });
  return migrationReport(
    'old',
    given,
    migrateFolder({ path: 'old', files: given }, { load, others: load([]).catalog }),
  );
}

const one = (path: string, text: string): FileReport | undefined => report({ [path]: text }).files[0];
const plain = (files: Readonly<Record<string, string>>): string =>
  renderReport(report(files), { colors: pc.createColors(false), columns: null });

const tool = (name: string): string => `kind: Tool\nversion: 1.0\nname: ${name}\nsummary: Works\nexecutor: echo\n`;
const agent = (name: string, rest: string): string =>
  `kind: Agent\nversion: 1.0\nname: ${name}\nsummary: Helps\npersona: You help.\n${rest}`;

const FOLDER = {
  'agents/clerk/agent.yml': agent('clerk', 'iteration_cap: 4\nimport:\n  tools: [stamp]\n'),
  'agents/lost/agent.yml': agent('lost', 'import:\n  tools: [nowhere, ./absent/tool.yml]\n'),
  'tools/stamp/tool.yml': tool('stamp'),
  'tools/echo.yml': tool('echo'),
  'docker-compose.yml': 'services: {}\n',
};

const OWN = `kind: Tool\nversion: "1"\nname: own\nsummary: Works\nruntime: python3\nentrypoint: run.py\n`;

describe('the report of a folder', () => {
  test('says what loads, what fails and what is skipped, with counts by kind', () => {
    const { files, counts } = report(FOLDER);
    expect(files.map(({ file, status }) => [file, status])).toEqual([
      ['agents/clerk/agent.yml', 'loads'],
      ['agents/lost/agent.yml', 'fails'],
      ['docker-compose.yml', 'skipped'],
      ['tools/echo.yml', 'loads'],
      ['tools/stamp/tool.yml', 'loads'],
    ]);
    expect(counts).toEqual({
      agent: { loads: 1, fails: 1, skipped: 0 },
      tool: { loads: 2, fails: 0, skipped: 0 },
      other: { loads: 0, fails: 0, skipped: 1 },
    });
  });

  test('[M1] says what was understood how, with the line and the field', () => {
    const [clerk] = report(FOLDER).files;
    expect(clerk).toMatchObject({
      manifests: [{ kind: 'agent', name: 'clerk', status: 'loads' }],
      errors: [],
      notes: [{ line: 6, field: 'iteration_cap', message: 'understood as loop.max_iterations', count: 1 }],
    });
  });

  test('[M4] warns that a manifest replaces a shipped one', () => {
    const echo = report(FOLDER).files.find(({ file }) => file === 'tools/echo.yml');
    expect(echo?.notes.map(({ message }) => message)).toEqual([
      'replaces the shipped tool "echo" (manifests/tools/echo.yaml)',
      'understood as implementation',
    ]);
  });

  test('every error is listed, and paths are relative to the folder', () => {
    const lost = report(FOLDER).files.find(({ file }) => file === 'agents/lost/agent.yml');
    expect(lost?.errors.map(({ message }) => message)).toEqual([
      expect.stringContaining('imports the tool "nowhere", which does not exist'),
      expect.stringContaining('but there is no file agents/lost/absent/tool.yml'),
    ]);
  });

  test('identical notes of a file are counted', () => {
    const steps = ['a', 'b', 'c']
      .map((id) => `  - { id: ${id}, tool: none, on_error: continue, if: "true" }`)
      .join('\n');
    const file = one('w.yml', `kind: Workflow\nversion: 1.0\nname: w\nsummary: Works\nsteps:\n${steps}\n`);
    const messages = [...(file?.notes ?? [])].map(({ message }) => message);
    expect(new Set(messages).size).toBe(messages.length);
    expect(file?.notes.some(({ count }) => count === 3)).toBe(true);
  });

  test('a file with a good and a bad manifest fails, and counts both', () => {
    const { files, counts } = report({ 'x.yml': `${tool('good')}---\n${agent('bad', 'import: {tools: [nope]}\n')}` });
    expect(files[0]?.manifests.map(({ name, status }) => [name, status])).toEqual([
      ['good', 'loads'],
      ['bad', 'fails'],
    ]);
    expect(files[0]?.status).toBe('fails');
    expect([counts.tool?.loads, counts.agent?.fails]).toEqual([1, 1]);
  });

  test('other files are not listed', () => {
    expect(report({ 'run.py': 'print(1)\n', 'README.md': '# <action name="x">\n', 'a.xml': '<a/>\n' }).files).toEqual(
      [],
    );
  });
});

describe('protocol texts', () => {
  const call = (attributes: string, body = '{"name":"echo","parameters":{}}'): string =>
    `<action type="tool" ${attributes}>${body}</action>\n`;

  const withX = (x: number): string => JSON.stringify({ name: 'echo', parameters: { x } });

  test('a program with all its forms loads, and rejected actions fail', () => {
    const good = one('a.protocol', `${call('id="a" mode="async"')}<response final="true">$a</response>`);
    expect(good).toMatchObject({
      status: 'loads',
      protocol: { form: 'program', actions: 1, responses: 1 },
      errors: [],
    });
    const bad = one('a.protocol', `${call('id="a"', withX(1))}${call('id="a"', withX(2))}`);
    expect(bad).toMatchObject({ status: 'fails', errors: [{ line: 2 }] });
    expect(bad?.errors[0]?.message).toContain('rejected: ');
  });

  test.each([
    ['[P6] a foreign form', '<action type="agent" name="b" id="b">{"instruction":"go"}</action>', '"instruction"'],
    ['[P10] a response without final', '<response>done</response>', 'a response without "final"'],
    ['final next to actions', `${call('id="a"')}<response final="true">x</response>`, 'final="true" next to actions'],
    ['[P9] an action in a thought', `<thought>\n${call('id="a"')}</thought>`, 'an action inside a thought'],
    [
      'depends_on of an async action',
      call('id="a"') + call('id="b" mode="async" depends_on="a"'),
      'of an async action',
    ],
    ['[P12] a whole result', `${call('id="a"')}<response final="true">\${a}</response>`, '${a} is the whole result'],
    ['only text', 'Just text.', 'neither an action nor a response'],
    ['[P8] repaired JSON', call('id="a"', '{"name":"echo","parameters":{},}'), 'repaired_json'],
  ])('%s is noted', (_what, text, message) => {
    const file = one('x.protocol', text);
    expect(file?.notes.map((note) => note.message).join('\n')).toContain(message);
  });

  test('the examples of a prompt are read one by one, with the lines of the file, and are never failures', () => {
    const block = (text: string): string => `\`\`\`xml\n${text}\n\`\`\`\n`;
    const text = `# Rules\n${block('<response>hi</response>')}\n${block('<response>hi</response>')}\n${block('<action id="x" type="tool">{}</action>')}`;
    expect(one('prompts/rules.md', text)).toMatchObject({
      status: 'loads',
      protocol: { form: 'prompt', responses: 2 },
      errors: [],
      notes: [{ line: 11 }, { line: 3, count: 2 }],
    });
  });

  test('a prompt that a manifest names is read, whatever its name', () => {
    const named = {
      'a.yml': agent('a', '').replace('You help.', '{ agent: ./a.md }'),
      'a.md': '<action name="echo"/>\n',
    };
    const { files } = report(named);
    expect(files.map(({ file }) => file)).toEqual(['a.md', 'a.yml']);
  });
});

describe('the text', () => {
  test('ends with failures, a table and the next step', () => {
    const text = plain(FOLDER);
    expect(text.indexOf('Skipped: 1 file')).toBeLessThan(text.indexOf('Loads: 3 files'));
    expect(text.indexOf('Loads: 3 files')).toBeLessThan(text.indexOf('Fails: 1 file'));
    expect(text).toMatch(/^agents +1 +1 +-$/m);
    expect(text).toContain('2 imports of something that is not there: add its file, or remove the line');
    expect(text).toContain('Nothing was written. Next:\n  npm run migrate -- old --out <new folder>');
  });

  test('escapes control characters of the files', () => {
    expect(plain({ 'a\u001B[2J.yml': 'services: {}\n' })).not.toContain('\u001B');
  });
});

describe('cortex migrate', () => {
  const root = mkdtempSync(join(tmpdir(), 'cortex-migrate-'));
  afterAll(() => rmSync(root, { recursive: true }));
  const run = async (files: Readonly<Record<string, string>>, ...more: string[]): Promise<CortexResult> => {
    const folder = mkdtempSync(join(root, 'folder-'));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    return await cortexHere(['migrate', `${folder}/`, ...more], { cwd: PACKAGE_ROOT });
  };

  test('exits with 1 if a file fails, with 0 if all load or are skipped, and with 2 for wrong usage', async () => {
    const bad = await run(FOLDER);
    expect([bad.code, bad.err]).toEqual([1, '']);
    expect(bad.out).toContain('replaces the shipped tool "echo" (manifests/tools/echo.yaml)');
    expect(bad.out).not.toContain('\u001B');
    const { 'agents/lost/agent.yml': _, ...rest } = FOLDER;
    const good = await run(rest, '--json');
    expect(good.code).toBe(0);
    expect(JSON.parse(good.out)).toMatchObject({ counts: { agent: { loads: 1, fails: 0 } } });
    const wrong = await run({}, '--nope');
    expect([wrong.code, wrong.out]).toEqual([2, '']);
    expect(wrong.err).toContain('usage: cortex migrate <folder> [--out <new folder>] [--trust] [--json]');
  });

  test('[M1] --out writes a new folder, which validate accepts and which migrates without a change', async () => {
    const out = join(root, 'new');
    const first = await run({ ...FOLDER, 'tools/own/run.py': 'print(1)\n', 'tools/own/tool.yml': OWN }, '--out', out);
    expect([first.code, first.err]).toEqual([1, '']);
    expect(first.out).toContain(`Wrote 5 files to ${out}.`);
    expect(first.out).toContain('What fails is in 1 file that ends in .unconverted');
    const names = readdirSync(out, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(names.map(({ name, parentPath }) => relative(out, join(parentPath, name))).sort()).toEqual([
      'agents/clerk/agent.yml',
      'agents/lost/agent.yml.unconverted',
      'tools/echo.yml',
      'tools/own/run.py',
      'tools/own/tool.yml',
      'tools/stamp/tool.yml',
    ]);
    const valid = await cortexHere(['validate', out, '--json'], { cwd: PACKAGE_ROOT });
    expect(valid.code).toBe(0);
    expect(valid.out).not.toContain('understood');
    const again = await cortexHere(['migrate', out, '--out', `${out}-2`, '--json'], { cwd: PACKAGE_ROOT });
    expect(JSON.parse(again.out)).toMatchObject({
      out: { unconverted: [], files: expect.arrayContaining(['tools/echo.yml']) as string[] },
    });
    for (const file of ['agents/clerk/agent.yml', 'tools/own/tool.yml']) {
      expect(readFileSync(join(`${out}-2`, file), 'utf8')).toBe(readFileSync(join(out, file), 'utf8'));
    }
  });

  test('--out replaces nothing: the folder must be empty, and outside of the old one', async () => {
    const full = mkdtempSync(join(root, 'full-'));
    writeFileSync(join(full, 'mine.txt'), 'x');
    const refused = await run(FOLDER, '--out', full);
    expect([refused.code, refused.out]).toEqual([2, '']);
    expect(refused.err).toContain('is not empty: nothing is replaced; name a new folder');
    expect(readdirSync(full)).toEqual(['mine.txt']);
    const old = mkdtempSync(join(root, 'old-'));
    const inside = await cortexHere(['migrate', old, '--out', join(old, 'new')], { cwd: PACKAGE_ROOT });
    expect([inside.code, inside.err]).toEqual([2, expect.stringContaining('is in the folder that is converted')]);
    symlinkSync(old, join(full, 'link'));
    const linked = await cortexHere(['migrate', old, '--out', join(full, 'link', 'new')], { cwd: PACKAGE_ROOT });
    expect([linked.code, linked.err]).toEqual([2, expect.stringContaining('is in the folder that is converted')]);
    rmSync(join(full, 'link'));
    const file = await run(FOLDER, '--out', join(full, 'mine.txt'));
    expect([file.code, file.err]).toEqual([2, expect.stringContaining('is not a folder')]);
  });
});
