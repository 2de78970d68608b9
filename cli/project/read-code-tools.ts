/**
 * A program: bundles the code tools of a project, loads them, and writes what they define to a file. It is a process of its
 * own because the code of the tools runs in it, in threads, or in isolates that it ends.
 *
 * usage: read-code-tools <project> <file for the answer> <rights> <tool> …
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Message } from 'esbuild';
import type { ManifestProblem } from '../../src/domain/catalog.ts';
import type { DescribedTool } from '../../src/domain/code-tool.ts';
import { messageOf } from '../../src/domain/errors.ts';
import { bundleDescriber, toolBundler } from './bundle-tools.ts';
import type { ToolBundle } from './bundle-tools.ts';
import { nameOfFile } from './code-tools.ts';
import type { ProjectTools, ToolRights } from './code-tools.ts';
import { UNLOADED } from './describe-tool.ts';
import { TOOLS } from './folders.ts';
import { isolatesIn } from './tool-isolates.ts';
import { loadTools } from './tool-loader.ts';
import type { LoadedTools } from './tool-loader.ts';

const [root = '', answer = '', given = '', ...files] = process.argv.slice(2);
const rights: ToolRights = given === 'of the user' ? given : 'isolated';
const folder = mkdtempSync(join(tmpdir(), 'cortex-tools-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

async function readTools(): Promise<ProjectTools> {
  const problems: ManifestProblem[] = [];
  const tools: DescribedTool[] = [];
  const hash = createHash('sha256');
  const bundled = toolBundler(root, rights);
  const modules = await Promise.all(files.map((file, at) => bundled(file, join(folder, `${at}.mjs`))));
  const results = await load(modules.filter(({ errors }) => errors.length === 0));
  for (const { file, module, errors } of modules) {
    problems.push(...errors.map((message) => problemOf(file, message)));
    const found = results.get(file);
    if (found === undefined) continue;
    hash.update(readFileSync(module));
    const issue = typeof found === 'string' ? withAdvice(found) : nameIssue(found, file, tools);
    if (issue !== null) problems.push({ file, line: 1, column: 1, field: '', message: issue });
    else if (typeof found !== 'string') tools.push(found);
  }
  const named = new Set(tools.map(({ file }) => file));
  return { tools, problems, faulty: files.filter((file) => !named.has(file)), hash: hash.digest('hex') };
}

async function load(modules: readonly ToolBundle[]): Promise<LoadedTools> {
  if (rights === 'of the user' || modules.length === 0) return await loadTools(modules);
  await bundleDescriber(join(folder, 'main.mjs'));
  return await loadTools(modules, isolatesIn(folder));
}

function withAdvice(issue: string): string {
  if (rights === 'of the user' || !issue.startsWith(UNLOADED)) return issue;
  return `${issue} (in an isolate without files, network and variables; --trust loads it with your rights)`;
}

function nameIssue({ name }: DescribedTool, file: string, others: readonly DescribedTool[]): string | null {
  if (nameOfFile(file) !== name) return `defines the tool "${name}", so the file must be called ${TOOLS}/${name}.ts`;
  const other = others.find((tool) => tool.name === name);
  return other === undefined ? null : `defines the tool "${name}", as ${other.file} does`;
}

function problemOf(file: string, { text, location }: Message): ManifestProblem {
  const { file: place = file, line = 1, column = 0 } = location ?? {};
  return { file: place, line, column: column + 1, field: '', message: text };
}

try {
  writeFileSync(answer, JSON.stringify(await readTools()));
  process.exit(0);
} catch (fault) {
  console.error(messageOf(fault));
  process.exit(1);
}
