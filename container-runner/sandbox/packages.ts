/** Which directories the code of an npm package lives in, with everything that it depends on. */
import fs from 'node:fs';
import path from 'node:path';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** @param directory of the package itself, which comes first; optional dependencies that are absent are left out */
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

/** Where a package that is required in `from` is found: in the closest `node_modules` on the way up. */
function nearest(from: string, name: string): string | null {
  for (let at = from; ; at = path.dirname(at)) {
    const candidate = path.join(at, 'node_modules', name);
    if (fs.existsSync(path.join(candidate, 'package.json'))) return fs.realpathSync(candidate);
    if (path.dirname(at) === at) return null;
  }
}
