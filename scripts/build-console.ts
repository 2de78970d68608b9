/**
 * Builds the console into console/dist/, which the Worker serves as static assets (wrangler.toml). What the first view does
 * without is in scripts of their own. The names of scripts and styles contain a hash of their content, so that browsers may
 * keep them forever. Does nothing if no source is newer than the last build.
 *
 * usage: node scripts/build-console.ts [--watch]
 */
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, context } from 'esbuild';
import type { BuildOptions, BuildResult, Plugin } from 'esbuild';
import { minifySync } from 'rolldown/utils';

const SOURCE = fileURLToPath(new URL('../console', import.meta.url));
const TARGET = join(SOURCE, 'dist');
const ASSETS = join(TARGET, 'assets');
/** What the console is made of. */
const SOURCES = ['console', 'src/client', 'src/domain', 'scripts/build-console.ts', 'package-lock.json'];
/** The least version of JavaScript that browsers must have. */
const TARGET_VERSION = 'es2023';
const isWatching = process.argv.includes('--watch');

const pages: Plugin = {
  name: 'pages',
  setup({ onEnd }) {
    onEnd((result) => {
      if (result.errors.length === 0) writeFiles(result as BuildResult<typeof options>);
    });
  },
};

const options = {
  entryPoints: { console: join(SOURCE, 'main.tsx') },
  entryNames: '[name]-[hash]',
  chunkNames: 'console-[name]-[hash]',
  outdir: ASSETS,
  metafile: true,
  bundle: true,
  splitting: true,
  write: false,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: TARGET_VERSION,
  jsx: 'transform',
  jsxFactory: 'h',
  jsxFragment: 'Fragment',
  inject: [join(SOURCE, 'parts/jsx.ts')],
  // Not of tsconfig.json, which has the automatic runtime for tests and the compiler.
  tsconfigRaw: {},
  // Names of signals for a browser extension of developers.
  define: { 'window.__PREACT_SIGNALS_DEVTOOLS__': 'false' },
  legalComments: 'none',
  logLevel: 'warning',
  plugins: [pages],
} satisfies BuildOptions;

/** The page names the files of this build. Files of earlier builds are removed last. */
function writeFiles({ outputFiles, metafile }: BuildResult<typeof options>): void {
  for (const { path, text } of outputFiles) {
    writeFileSync(path, isWatching || extname(path) !== '.js' ? text : minified(text));
  }
  const entry = Object.entries(metafile.outputs).find(([, { cssBundle }]) => cssBundle !== undefined);
  if (entry === undefined) throw new Error('console/main.tsx has no styles');
  const [script, { cssBundle = '', imports }] = entry;
  const preloads = imports
    .filter(({ kind }) => kind === 'import-statement')
    .map(({ path }) => `  <link rel="modulepreload" href="/assets/${basename(path)}" />\n  `);
  const page = readFileSync(join(SOURCE, 'index.html'), 'utf8')
    .replace('/console.css', `/assets/${basename(cssBundle)}`)
    .replace('/console.js', `/assets/${basename(script)}`)
    .replace('</head>', `${preloads.join('')}</head>`);
  writeFileSync(join(TARGET, 'index.html'), page);
  // What is made for watching is not small: the next build makes it again.
  if (isWatching) utimesSync(join(TARGET, 'index.html'), 0, 0);
  for (const file of ['_headers', 'icon.svg']) copyFileSync(join(SOURCE, file), join(TARGET, file));
  const names = new Set(outputFiles.map(({ path }) => basename(path)));
  for (const name of readdirSync(ASSETS)) if (!names.has(name)) rmSync(join(ASSETS, name), { force: true });
}

/** Once more: Rolldown gives shorter code and names that repeat more than those of esbuild, 1.5 KB gzipped. */
function minified(text: string): string {
  const { code, errors } = minifySync('console.js', text, {
    module: true,
    compress: { target: TARGET_VERSION },
    mangle: true,
  });
  const [error] = errors;
  if (error !== undefined) throw error;
  return code;
}

function isNewer(path: string, thanMs: number): boolean {
  if (!statSync(path).isDirectory()) return statSync(path).mtimeMs > thanMs;
  return readdirSync(path).some((name) => name !== 'dist' && isNewer(join(path, name), thanMs));
}

function isUpToDate(): boolean {
  const page = statSync(join(TARGET, 'index.html'), { throwIfNoEntry: false });
  return page !== undefined && !SOURCES.some((path) => isNewer(join(SOURCE, '..', path), page.mtimeMs));
}

mkdirSync(ASSETS, { recursive: true });
if (!isWatching && isUpToDate()) process.exit();
if (isWatching) await (await context({ ...options, minify: false })).watch();
else await build(options);
