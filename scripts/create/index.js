#!/usr/bin/env node
/** `npm create cortex-edge <folder>`: makes a new project from the template in this package. */
import { fileURLToPath } from 'node:url';
import { newProject, nextSteps } from './new-project.js';

const args = process.argv.slice(2);
const at = args.indexOf('--name');
const name = at < 0 ? undefined : args.splice(at, 2)[1];
const [folder, ...others] = args;

if (folder === undefined || folder.startsWith('-') || others.length > 0) {
  console.error('usage: npm create cortex-edge <folder> [-- --name <name>]');
  process.exit(folder === '--help' ? 0 : 2);
}
try {
  const made = newProject(fileURLToPath(new URL('template', import.meta.url)), folder, name);
  console.log(`${made.name} is ready in ${made.folder}.\n\n${nextSteps(made.folder).join('\n')}`);
} catch (fault) {
  console.error(fault instanceof Error ? fault.message : String(fault));
  process.exit(1);
}
