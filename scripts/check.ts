/** `npm run check`: all static checks of the code, one line per check. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import pc from 'picocolors';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';

interface Check {
  readonly name: string;
  readonly command: readonly [program: string, ...args: string[]];
  /** Relative to the repository; default: its root. */
  readonly cwd?: string;
}

const CHECKS: readonly Check[] = [
  { name: 'manifests', command: ['node', 'cli/main.ts', 'build'] },
  { name: 'manifest schemas and fields', command: ['node', 'scripts/manifest-schemas.ts', '--check'] },
  { name: 'format', command: ['oxfmt', '--check', '.'] },
  { name: 'lint and import rules', command: ['oxlint', '--deny-warnings'] },
  { name: 'example', command: ['node', '../../cli/main.ts', 'build'], cwd: 'examples/code-tools' },
  { name: 'types: example', command: ['tsc', '-p', 'examples/code-tools'] },
  { name: 'types: core', command: ['tsc', '-p', 'tsconfig.core.json'] },
  { name: 'types: worker', command: ['tsc', '-p', 'tsconfig.worker.json'] },
  { name: 'types: console', command: ['tsc', '-p', 'tsconfig.console.json'] },
  { name: 'types: react', command: ['tsc', '-p', 'tsconfig.react.json'] },
  { name: 'types: node', command: ['tsc', '-p', 'tsconfig.node.json'] },
  { name: 'types: page tests', command: ['tsc', '-p', 'tsconfig.page-tests.json'] },
  { name: 'types: workerd tests', command: ['tsc', '-p', 'tsconfig.runtime-tests.json'] },
  { name: 'dead code', command: ['knip'] },
];

let failed = 0;
for (const { name, command, cwd = '.' } of CHECKS) {
  const [program, ...args] = command;
  const result = spawnSync(program, args, {
    cwd: join(PACKAGE_ROOT, cwd),
    encoding: 'utf8',
    env: { ...process.env, FORCE_COLOR: '0' },
  });
  if (result.status === 0) {
    console.log(`${pc.green('✓')} ${name}`);
  } else {
    failed += 1;
    console.log(`${pc.red('✗')} ${name}   ${pc.dim(command.join(' '))}`);
    console.log(`${result.stdout}${result.stderr}`.trim().split('\n').slice(0, 60).join('\n'));
  }
}
console.log(failed === 0 ? 'All checks passed.' : `${failed} of ${CHECKS.length} checks failed.`);
process.exit(failed === 0 ? 0 : 1);
