/** `npm run check`: all static checks of the code, one line per check. */
import { spawnSync } from 'node:child_process';
import pc from 'picocolors';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';

/** A project is where its build runs. */
const EXAMPLE =
  "process.chdir('examples/code-tools'); const { buildProject } = await import('./cli/project/build.ts'); process.exitCode = await buildProject()";

const CHECKS: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ['manifests', 'node', 'cli/main.ts', 'build'],
  ['manifest schemas and fields', 'node', 'scripts/manifest-schemas.ts', '--check'],
  ['format', 'oxfmt', '--check', '.'],
  ['lint and import rules', 'oxlint', '--deny-warnings'],
  ['example', 'node', '--eval', EXAMPLE],
  ['types: example', 'tsc', '-p', 'examples/code-tools'],
  ['types: core', 'tsc', '-p', 'tsconfig.core.json'],
  ['types: worker', 'tsc', '-p', 'tsconfig.worker.json'],
  ['types: console', 'tsc', '-p', 'tsconfig.console.json'],
  ['types: react', 'tsc', '-p', 'tsconfig.react.json'],
  ['types: node', 'tsc', '-p', 'tsconfig.node.json'],
  ['types: page tests', 'tsc', '-p', 'tsconfig.page-tests.json'],
  ['types: workerd tests', 'tsc', '-p', 'tsconfig.runtime-tests.json'],
  ['dead code', 'knip'],
];

let failed = 0;
for (const [name, command, ...args] of CHECKS) {
  const result = spawnSync(command, args, {
    cwd: PACKAGE_ROOT,
    encoding: 'utf8',
    env: { ...process.env, FORCE_COLOR: '0' },
  });
  if (result.status === 0) {
    console.log(`${pc.green('✓')} ${name}`);
  } else {
    failed += 1;
    console.log(`${pc.red('✗')} ${name}   ${pc.dim([command, ...args].join(' '))}`);
    console.log(`${result.stdout}${result.stderr}`.trim().split('\n').slice(0, 60).join('\n'));
  }
}
console.log(failed === 0 ? 'All checks passed.' : `${failed} of ${CHECKS.length} checks failed.`);
process.exit(failed === 0 ? 0 : 1);
