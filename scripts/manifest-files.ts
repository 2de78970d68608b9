/** Reads a manifest folder and checks it: what the bundler and `npm run validate` share. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, sep } from 'node:path';
import { loadManifests } from '../src/catalog/load.ts';
import type { LoadedManifests, ManifestFile } from '../src/catalog/load.ts';
import { formatProblem } from '../src/catalog/problem.ts';
import { limits } from '../src/domain/limits.ts';

/** Every text file under `folder` (or the one file), sorted by path; too large and binary ones are left out. */
export function readManifestFiles(folder: string): ManifestFile[] {
  const paths = statSync(folder).isDirectory()
    ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
    : [folder];
  const files: ManifestFile[] = [];
  for (const path of paths.sort()) {
    const stat = statSync(path);
    if (!stat.isFile() || stat.size > limits.manifestBytes) continue;
    const bytes = readFileSync(path);
    if (!bytes.includes(0)) files.push({ path: path.split(sep).join('/'), text: bytes.toString('utf8') });
  }
  return files;
}

/** Loads a folder and prints what is wrong with it to stderr. */
export function checkManifests(folder: string): LoadedManifests {
  const loaded = loadManifests(readManifestFiles(folder));
  for (const problem of loaded.problems) console.error(`error    ${formatProblem(problem)}`);
  for (const warning of loaded.warnings) console.error(`warning  ${formatProblem(warning)}`);
  return loaded;
}
