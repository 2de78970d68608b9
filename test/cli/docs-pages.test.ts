/** Links and anchors of all pages; the commands of the pages for operators exist (H8). */
import { globSync, existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Readonly<Record<string, string>> };

const OF_OPERATORS = ['configure', 'deploy', 'runner-operations', 'observability', 'recover'];
const PAGES = [...globSync('*.md'), ...globSync('docs/**/*.md'), ...globSync('template/**/*.md')].toSorted();

const read = (path: string): string => readFileSync(path, 'utf8');
const withoutCode = (page: string): string =>
  page.replaceAll(/^(`{3,}).*\n[^]*?^\1$/gm, '').replaceAll(/`[^`\n]*`/g, '`');

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): string[] {
  const seen = new Map<string, number>();
  const headings = page.replaceAll(/^(`{3,}).*\n[^]*?^\1$/gm, '').matchAll(/^#{1,6} (.+)$/gm);
  return [...headings].map(([, heading = '']) => {
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = text.replaceAll(/[^\p{L}\p{N}\- _]/gu, '').replaceAll(' ', '-');
    const times = seen.get(anchor) ?? 0;
    seen.set(anchor, times + 1);
    return times === 0 ? anchor : `${anchor}-${times}`;
  });
}

/** What is wrong with a link in a page, or null. */
function issueOf(path: string, link: string): string | null {
  const [file = '', anchor] = link.split('#', 2);
  const target = file === '' ? path : join(dirname(path), decodeURIComponent(file));
  if (!existsSync(target)) return `${path}: ${link}: no such file`;
  if (anchor === undefined || statSync(target).isDirectory() || !target.endsWith('.md')) return null;
  return anchorsOf(read(target)).includes(anchor) ? null : `${path}: ${link}: no such section`;
}

test('[H8] every link between pages leads to a file and a section that exist', () => {
  const links = PAGES.flatMap((path) =>
    [...withoutCode(read(path)).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, link = '']) => link)
      .filter((link) => !/^[a-z]+:/.test(link))
      .map((link) => issueOf(path, link)),
  );
  expect(links.length).toBeGreaterThan(500);
  expect(links.filter((issue) => issue !== null)).toEqual([]);
});

describe.each(OF_OPERATORS)('[H8] docs/%s.md', (name) => {
  const page = read(`docs/${name}.md`);

  test('names only npm commands that exist', () => {
    const commands = [...page.matchAll(/npm run ([\w:]+)/g)].map(([, command = '']) => command);
    expect(commands.filter((command) => scripts[command] === undefined)).toEqual([]);
  });

  test('lists all of its sections at the beginning, and has no heading twice', () => {
    const [contents = ''] = page.split('\n## ', 1);
    const sections = anchorsOf(page.replaceAll(/^#{3,} .*$/gm, '')).slice(1);
    expect(sections.length).toBeGreaterThan(2);
    expect(sections.filter((anchor) => !contents.includes(`(#${anchor})`))).toEqual([]);
    expect(anchorsOf(page).filter((anchor) => /-\d+$/.test(anchor))).toEqual([]);
  });
});

test('[H8] the workflow for CI is valid, and uses commands of the project and routes of the API', () => {
  const [, text = ''] = /```yaml\n(name: deploy[\s\S]*?)```/.exec(read('docs/deploy.md')) ?? [];
  const workflow = parse(text) as { jobs: { deploy: { steps: { run?: string; uses?: string }[] } } };
  const runs = workflow.jobs.deploy.steps.map(({ run = '' }) => run).join('\n');
  expect(runs).toMatch(/npm run deploy\n[\s\S]*-X PUT "\$URL\/manifests"/);
  for (const [, name = ''] of runs.matchAll(/npm run ([\w:]+)/g)) expect(scripts).toHaveProperty([name]);
});
