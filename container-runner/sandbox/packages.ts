/** Finds the directories of an npm package and its dependencies. */
import fs from 'node:fs';
import path from 'node:path';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** @param directory of the package, which is the first result; missing optional dependencies are skipped */
export function packageTree(directory: string): string[] {
  const found = new Set<string>();
  const open = [directory];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (found.has(at)) continue;
    found.add(at);
    const manifest = JSON.parse(fs.readFileSync(path.join(at, 'package.json'), 'utf8')) as Manifest;
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      const dependency = nearest(at, name);
      if (dependency !== null) open.push(dependency);
    }
  }
  return [...found];
}

/** Resolves a package from `from`: the closest `node_modules` upwards. */
function nearest(from: string, name: string): string | null {
  for (let at = from; ; at = path.dirname(at)) {
    const candidate = path.join(at, 'node_modules', name);
    if (fs.existsSync(path.join(candidate, 'package.json'))) return fs.realpathSync(candidate);
    if (path.dirname(at) === at) return null;
  }
}
