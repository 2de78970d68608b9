/**
 * `npm run package`: makes the npm packages `dist/package` (cortex-edge) and `dist/create-cortex-edge`. The JavaScript has
 * the folders of the sources, so that programs and data find each other as they do in a clone.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { LEAST_NODE } from '../cli/project/least-node.ts';
import { isOfTemplate } from '../cli/project/new-project.ts';

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly description: string;
  readonly exports: Readonly<Record<string, string | { readonly node?: string; readonly default: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const PACKAGE = join(PACKAGE_ROOT, 'dist/package');
const CODE = join(PACKAGE, 'dist');
const CREATE = join(PACKAGE_ROOT, 'dist/create-cortex-edge');

/** Folders whose files that are not TypeScript are copied as they are. */
const DATA = ['cli', 'container-runner', 'manifests', 'console/dist'];
const NO_DATA =
  /(^|\/)(node_modules|test|__pycache__)(\/|$)|\.tsx?$|^container-runner\/(compose\.yaml|cortex-runner\.service)$/;

/** Programs of the package use these while they run; the versions are those of the repository. */
const FURTHER = ['esbuild', 'open', 'picocolors'];
/** The user's copy is used: its schemas and types meet the package's. */
const PEERS = ['wrangler', 'zod'];
const OPTIONAL_PEERS = ['react', 'vitest'];

function read(file: string): Manifest {
  return JSON.parse(readFileSync(join(PACKAGE_ROOT, file), 'utf8')) as Manifest;
}

function run(program: string, args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: PACKAGE_ROOT, encoding: 'utf8' });
  if (status === 0) return;
  console.error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`);
  process.exit(1);
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** TypeScript rewrites the names of imported files in JavaScript, but not in declarations. */
function rewriteDeclarations(): void {
  for (const file of filesBelow(CODE)) {
    if (!file.endsWith('.d.ts')) continue;
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replaceAll(/((?:from|import\()\s*['"]\.{1,2}\/[^'"]+)\.ts(['"])/g, '$1.js$2'));
  }
}

function copyData(): void {
  for (const folder of DATA) {
    for (const file of filesBelow(join(PACKAGE_ROOT, folder))) {
      const path = relative(PACKAGE_ROOT, file);
      if (NO_DATA.test(path)) continue;
      mkdirSync(dirname(join(CODE, path)), { recursive: true });
      cpSync(file, join(CODE, path));
    }
  }
  for (const file of ['LICENSE', 'CHANGELOG.md']) cpSync(join(PACKAGE_ROOT, file), join(PACKAGE, file));
}

/** npm leaves `.gitignore` out of packages; `cortex init` gives the file its name. */
function copyTemplate(to: string): void {
  const template = join(PACKAGE_ROOT, 'template');
  cpSync(template, to, { recursive: true, filter: (file) => isOfTemplate(relative(template, file)) });
  const ignored = join(to, '.gitignore');
  if (existsSync(ignored)) {
    cpSync(ignored, join(to, '_gitignore'));
    rmSync(ignored);
  }
}

function built(source: string, ending: '.js' | '.d.ts'): string {
  return `./dist/${source.replace(/^\.\//, '').replace(/\.ts$/, ending)}`;
}

/** The entry points of the repository, built. In Node, where tests run, `.` is only what tools need: no Worker runs there. */
function entryPoints(sources: Manifest['exports']): Record<string, unknown> {
  const entries = Object.entries(sources).map(([name, source]) => {
    if (typeof source === 'string' && !source.endsWith('.ts')) return [name, source];
    const { node, default: main } = typeof source === 'string' ? { default: source } : source;
    return [
      name,
      {
        types: built(main, '.d.ts'),
        ...(node === undefined ? {} : { node: built(node, '.js') }),
        default: built(main, '.js'),
      },
    ];
  });
  return Object.fromEntries(entries) as Record<string, unknown>;
}

function packageManifest(): Record<string, unknown> {
  const root = read('package.json');
  const runner = read('container-runner/package.json');
  const version = (name: string): string => {
    const pinned = root.dependencies[name] ?? root.devDependencies[name];
    if (pinned === undefined) throw new Error(`package.json has no version of ${name}`);
    return pinned;
  };
  const dependencies = { ...root.dependencies, ...runner.dependencies };
  for (const name of FURTHER) dependencies[name] = version(name);
  for (const name of PEERS) delete dependencies[name];
  const major = (name: string): string => `>=${version(name)} <${Number(version(name).split('.')[0]) + 1}`;
  return {
    name: 'cortex-edge',
    version: root.version,
    description: root.description,
    license: root.license,
    keywords: ['agents', 'cloudflare', 'workers', 'durable-objects', 'llm'],
    type: 'module',
    engines: { node: `>=${LEAST_NODE}` },
    bin: { cortex: './dist/cli/main.js' },
    exports: entryPoints(root.exports),
    files: ['dist', 'CHANGELOG.md'],
    dependencies: Object.fromEntries(Object.entries(dependencies).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    peerDependencies: Object.fromEntries([...PEERS, ...OPTIONAL_PEERS].map((name) => [name, major(name)])),
    peerDependenciesMeta: Object.fromEntries(OPTIONAL_PEERS.map((name) => [name, { optional: true }])),
  };
}

function createManifest(): Record<string, unknown> {
  const { version, license } = read('package.json');
  return {
    name: 'create-cortex-edge',
    version,
    description: 'npm create cortex-edge my-agent: a new project with an agent, a tool and tests.',
    license,
    type: 'module',
    engines: { node: '>=18' },
    bin: { 'create-cortex-edge': './index.js' },
    files: ['index.js', 'new-project.js', 'template'],
  };
}

function write(folder: string, file: string, text: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, file), text);
}

for (const folder of [PACKAGE, CREATE]) rmSync(folder, { recursive: true, force: true });
run(process.execPath, [join(PACKAGE_ROOT, 'scripts/build-console.ts')]);
run('tsc', ['-p', 'tsconfig.package.json']);
rewriteDeclarations();
copyData();
copyTemplate(join(CODE, 'template'));
chmodSync(join(CODE, 'cli/main.js'), 0o755);
write(PACKAGE, 'package.json', `${JSON.stringify(packageManifest(), null, 2)}\n`);
// The page of the package on npm.
cpSync(join(PACKAGE_ROOT, 'scripts/package/README.md'), join(PACKAGE, 'README.md'));

write(CREATE, 'package.json', `${JSON.stringify(createManifest(), null, 2)}\n`);
copyTemplate(join(CREATE, 'template'));
cpSync(join(CODE, 'cli/project/new-project.js'), join(CREATE, 'new-project.js'));
cpSync(join(PACKAGE_ROOT, 'scripts/create/index.js'), join(CREATE, 'index.js'));
chmodSync(join(CREATE, 'index.js'), 0o755);
cpSync(join(PACKAGE_ROOT, 'LICENSE'), join(CREATE, 'LICENSE'));
console.log(
  `${relative(PACKAGE_ROOT, PACKAGE)} and ${relative(PACKAGE_ROOT, CREATE)}: ${read('package.json').version}`,
);
