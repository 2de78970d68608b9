import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from './folders.ts';

/** The version of Cortex Edge. Its package.json is in the clone, or above the package's `dist/`. */
export function versionOf(): string {
  const file = [PACKAGE_ROOT, join(PACKAGE_ROOT, '..')].map((folder) => join(folder, 'package.json')).find(existsSync);
  const { version } = JSON.parse(file === undefined ? '{}' : readFileSync(file, 'utf8')) as { version?: string };
  return version ?? 'unknown';
}
