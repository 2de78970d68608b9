/** The form of the package: publint, and how TypeScript resolves its types in every way that ESM users import it (K1). */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

interface Report {
  readonly analysis: { readonly entrypoints: object };
  readonly problems: Readonly<Record<string, readonly { readonly resolutionKind?: string }[]>>;
}

const run = (program: string, ...args: readonly string[]): string =>
  execFileSync(process.execPath, [join(PACKAGE_ROOT, program), ...args], { cwd: PACKAGE_ROOT, encoding: 'utf8' });

beforeAll(() => void run('scripts/build-package.ts'));

test('[K1] publint has nothing to say', () => {
  expect(run('node_modules/publint/src/cli.js', 'dist/package', '--strict')).toContain('All good!');
});

test('[K1] are-the-types-wrong finds the types of every entry point', () => {
  const program = 'node_modules/@arethetypeswrong/cli/dist/index.js';
  const report = run(program, '--pack', 'dist/package', '--profile', 'esm-only', '--format', 'json');
  const { analysis, problems } = JSON.parse(report) as Report;
  expect(Object.keys(analysis.entrypoints).sort()).toEqual(
    ['.', './client', './package.json', './runner', './testing', './testing/vitest'].sort(),
  );
  // CommonJS users import the package dynamically.
  const others = Object.values(problems).flat();
  expect(others.filter(({ resolutionKind: kind }) => kind !== 'node10' && kind !== 'node16-cjs')).toEqual([]);
});
