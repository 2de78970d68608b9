/** The commands of docs/operations.md exist, and its links lead somewhere. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

const page = readFileSync('docs/operations.md', 'utf8');
const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Readonly<Record<string, string>> };

const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

test('[H8] every npm command of the page exists', () => {
  const commands = [...page.matchAll(/npm run ([\w:]+)/g)].map(([, name = '']) => name);
  expect(new Set(commands)).toContain('stage');
  expect(commands.filter((name) => scripts[name] === undefined)).toEqual([]);
});

test('[H8] every link to a section of the page has its section, and the table of contents has all sections', () => {
  const headings = [...page.matchAll(/^#{2,4} (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));
  const anchors = new Set(headings);
  expect(headings).toHaveLength(anchors.size);
  const links = [...page.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor = '']) => anchor);
  expect(links.length).toBeGreaterThan(5);
  expect(links.filter((anchor) => !anchors.has(anchor))).toEqual([]);
  const [contents = ''] = page.split('\n## ', 1);
  const listed = new Set([...contents.matchAll(/\(#([\w-]+)\)/g)].map(([, anchor = '']) => anchor));
  const sections = [...page.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));
  expect(sections.filter((anchor) => !listed.has(anchor))).toEqual([]);
  const deployment = page.slice(page.indexOf('## Deploy to Cloudflare'), page.indexOf('## Work limits'));
  const parts = [...deployment.matchAll(/^### (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));
  expect(parts.length).toBeGreaterThan(5);
  expect(parts.filter((anchor) => !listed.has(anchor))).toEqual([]);
});

test('[H8] the workflow for CI is valid, and uses commands of the project and routes of the API', () => {
  const [, text = ''] = /```yaml\n(name: deploy[\s\S]*?)```/.exec(page) ?? [];
  const workflow = parse(text) as { jobs: { deploy: { steps: { run?: string; uses?: string }[] } } };
  const runs = workflow.jobs.deploy.steps.map(({ run = '' }) => run).join('\n');
  expect(runs).toMatch(/npm run deploy\n[\s\S]*-X PUT "\$URL\/manifests"/);
  for (const [, name = ''] of runs.matchAll(/npm run ([\w:]+)/g)) expect(scripts).toHaveProperty([name]);
});
