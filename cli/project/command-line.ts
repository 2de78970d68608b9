/** Command lines in messages, as the user can run them. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { IS_OWN_PROJECT, PROJECT_ROOT } from './folders.ts';

/** Commands with an npm script of their own in this repository. */
const SCRIPTS: ReadonlySet<string> = new Set([
  'validate',
  'migrate',
  'prompt',
  'grammar',
  'plan',
  'chat',
  'demo',
  'deploy',
  'stage',
  'export',
  'scripted-llm',
]);

/** Without the package, npx would offer another one with the name `cortex`. */
function program(): readonly string[] {
  return existsSync(join(PROJECT_ROOT, 'node_modules/.bin/cortex')) ? ['npx', 'cortex'] : ['cortex'];
}

/** How a command is run here: by an npm script in this repository, else from the installed package. */
export function commandLine(name: string, ...args: readonly string[]): string {
  if (!IS_OWN_PROJECT) return [...program(), name, ...args].join(' ');
  const [script, own] = name === 'dev' ? ['npm start', []] : ownScript(name);
  const all = [...own, ...args];
  return [script, ...(all.length === 0 ? [] : ['--', ...all])].join(' ');
}

function ownScript(name: string): [script: string, args: readonly string[]] {
  return SCRIPTS.has(name) ? [`npm run ${name}`, []] : ['npm run cortex', [name]];
}
