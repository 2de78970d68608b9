/** Bundles the code tools of a project with esbuild. None of their code runs, and no command of the project. */
import { readdirSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, sep } from 'node:path';
import { build } from 'esbuild';
import type { BuildOptions, Message, Plugin } from 'esbuild';
import { messageOf } from '../../src/domain/errors.ts';
import { parseObject } from '../../src/domain/json.ts';
import type { ToolRights } from './code-tools.ts';
import { PACKAGE_ROOT, programPath } from './folders.ts';
import { boundsOf, isWithin, projectText, readFileIn } from './real-path.ts';
import type { Bounds } from './real-path.ts';
import { TOOL_MODULE } from './tool-isolates.ts';

export interface ToolBundle {
  /** Relative to the project. */
  readonly file: string;
  /** Absolute path of the bundled module. */
  readonly module: string;
  readonly errors: readonly Message[];
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

const COMMON = { bundle: true, format: 'esm', platform: 'node', target: 'es2024', logLevel: 'silent' } as const;

/** @returns bundles one tool into one module with everything that it imports */
export function toolBundler(root: string, rights: ToolRights): (file: string, module: string) => Promise<ToolBundle> {
  const own: BuildOptions =
    rights === 'isolated'
      ? { plugins: [STANDINS, builtins(), insideOnly(root)], tsconfigRaw: compilerOptions(root) }
      : { plugins: [STANDINS] };
  return async (file, module) => {
    try {
      await build({
        ...COMMON,
        ...own,
        absWorkingDir: root,
        entryPoints: [file],
        outfile: module,
        conditions: ['workerd', 'worker'],
      });
      return { file, module, errors: [] };
    } catch (fault) {
      const { errors } = fault as { errors?: readonly Message[] };
      if (errors === undefined) throw fault;
      return { file, module, errors };
    }
  };
}

/** Of the project's tsconfig.json. esbuild would follow its member `extends` to any file. */
function compilerOptions(root: string): string {
  const text = projectText(root, 'tsconfig.json') ?? '{}';
  const json = text
    .replaceAll(/("(?:\\.|[^"\\])*")|\/\/[^\n]*|\/\*[^]*?\*\//g, '$1')
    .replaceAll(/("(?:\\.|[^"\\])*")|,(?=\s*[}\]])/g, '$1');
  return JSON.stringify({ compilerOptions: parseObject(json)?.['compilerOptions'] ?? {} });
}

/** The program of an isolate, which describes the tool next to it. */
export async function bundleDescriber(outfile: string): Promise<void> {
  const contents = `import { describeTool } from ${JSON.stringify(programPath('cli/project/describe-tool'))};
const load = () => import('${TOOL_MODULE}');
export default { fetch: async () => Response.json(await describeTool('', load)) };`;
  const stdin = { contents, resolveDir: PACKAGE_ROOT };
  await build({ ...COMMON, stdin, outfile, external: [TOOL_MODULE], tsconfigRaw: '{}' });
}

/** workerd knows modules of Node by their full names only. */
function builtins(): Plugin {
  return {
    name: 'node',
    setup({ onResolve }) {
      onResolve({ filter: /^[a-z_]+(\/[a-z_]+)?$/ }, ({ path }) =>
        isBuiltin(path) ? { path: `node:${path}`, external: true } : undefined,
      );
    },
  };
}

/** Refuses every file outside of the project, of packages, and of Cortex Edge, whatever imports it. */
function insideOnly(root: string): Plugin {
  const bounds = boundsOf(root, join(PACKAGE_ROOT, 'src'));
  const bases = boundsOf(root, PACKAGE_ROOT);
  /** In a folder `node_modules` that imports of these files can find: in them, or above the project or Cortex Edge. */
  const isPackage = (path: string, own: Bounds): boolean => {
    const at = path.indexOf(`${sep}node_modules${sep}`);
    const holder = path.slice(0, at) || sep;
    return (
      at !== -1 && (bases.some((base) => isWithin(holder, base)) || own.some((folder) => isWithin(folder, holder)))
    );
  };
  let linked: Bounds | null = null;
  return {
    name: 'inside-only',
    setup({ onLoad }) {
      onLoad({ filter: /.*/, namespace: 'file' }, ({ path }) => {
        try {
          linked ??= linkedPackages(root);
          const own = [...bounds, ...linked];
          readFileIn(isPackage(path, own) ? [dirname(path)] : own, path, 0);
          return undefined;
        } catch (fault) {
          return {
            errors: [{ text: `${path}: ${messageOf(fault)} and its packages (--trust reads it with your rights)` }],
          };
        }
      });
    },
  };
}

/** Packages of a workspace: the links in folders `node_modules` of the project and above it that lead into the same folder. */
function linkedPackages(root: string): Bounds {
  const [real = root] = boundsOf(root);
  const above: string[] = [];
  for (let at = real; dirname(at) !== at; at = dirname(at)) above.push(at);
  return above.flatMap((folder) => {
    const packages = join(folder, 'node_modules');
    return linksIn(packages)
      .flatMap((path) => boundsOf(path))
      .filter((path) => path !== folder && path.startsWith(`${folder}${sep}`));
  });
}

function linksIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isSymbolicLink()) return [path];
      return entry.isDirectory() && entry.name.startsWith('@') ? linksIn(path) : [];
    });
  } catch {
    return [];
  }
}
