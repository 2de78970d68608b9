/**
 * A program: bundles the code tools of a project, loads them in a thread, and writes what they define to a file. It is a
 * process of its own because the code of the tools runs in it.
 *
 * usage: read-code-tools <project> <file for the answer> <tool> …
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { Message, Plugin } from 'esbuild';
import type { ManifestProblem } from '../../src/domain/catalog.ts';
import type { DescribedTool } from '../../src/domain/code-tool.ts';
import { nameOfFile } from './code-tools.ts';
import type { ProjectTools } from './code-tools.ts';
import { programPath, TOOLS } from './folders.ts';
import { loadTools } from './tool-loader.ts';

const [root = '', answer = '', ...files] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'cortex-tools-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

async function readTools(): Promise<ProjectTools> {
  const problems: ManifestProblem[] = [];
  const tools: DescribedTool[] = [];
  const hash = createHash('sha256');
  const modules = await Promise.all(files.map((file, at) => bundled(file, join(folder, `${at}.mjs`))));
  const results = await loadTools(modules.filter(({ errors }) => errors.length === 0));
  for (const { file, module, errors } of modules) {
    problems.push(...errors.map((message) => problemOf(file, message)));
    const found = results.get(file);
    if (found === undefined) continue;
    hash.update(readFileSync(module));
    const issue = typeof found === 'string' ? found : nameIssue(found, file, tools);
    if (issue !== null) problems.push({ file, line: 1, column: 1, field: '', message: issue });
    else if (typeof found !== 'string') tools.push(found);
  }
  const named = new Set(tools.map(({ file }) => file));
  return { tools, problems, faulty: files.filter((file) => !named.has(file)), hash: hash.digest('hex') };
}

function nameIssue({ name }: DescribedTool, file: string, others: readonly DescribedTool[]): string | null {
  if (nameOfFile(file) !== name) return `defines the tool "${name}", so the file must be called ${TOOLS}/${name}.ts`;
  const other = others.find((tool) => tool.name === name);
  return other === undefined ? null : `defines the tool "${name}", as ${other.file} does`;
}

/** `cortex-edge` without the Worker, and the platform's modules as objects that may be named but not used. */
const STANDINS: Plugin = {
  name: 'cortex-edge',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^cortex-edge$/ }, () => ({ path: programPath('src/code-tools/index') }));
    onResolve({ filter: /^cloudflare:/ }, ({ path }) => ({ path, namespace: 'platform' }));
    onLoad({ filter: /.*/, namespace: 'platform' }, () => ({ contents: PLATFORM, loader: 'js' }));
  },
};
const PLATFORM = `const standIn = new Proxy(class {}, { get: (_, name) => (name === 'prototype' ? {} : standIn) });
module.exports = standIn;`;

/** One module with everything that the tool imports. */
async function bundled(
  file: string,
  module: string,
): Promise<{ readonly file: string; readonly module: string; readonly errors: readonly Message[] }> {
  try {
    await build({
      absWorkingDir: root,
      entryPoints: [file],
      outfile: module,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'es2024',
      conditions: ['workerd', 'worker'],
      plugins: [STANDINS],
      logLevel: 'silent',
    });
    return { file, module, errors: [] };
  } catch (fault) {
    const { errors } = fault as { errors?: readonly Message[] };
    if (errors === undefined) throw fault;
    return { file, module, errors };
  }
}

function problemOf(file: string, { text, location }: Message): ManifestProblem {
  const { file: place = file, line = 1, column = 0 } = location ?? {};
  return { file: place, line, column: column + 1, field: '', message: text };
}

writeFileSync(answer, JSON.stringify(await readTools()));
process.exit(0);
