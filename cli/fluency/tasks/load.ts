/** The shipped dataset. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readDataset } from './dataset.ts';
import type { Dataset, DatasetFile } from './dataset.ts';
import { BUILTIN_TOOLS } from './tools.ts';

const FOLDER = join(import.meta.dirname, '..', 'data');

export function shippedDataset(): Dataset {
  const file = (path: string): DatasetFile => ({ name: path, yaml: readFileSync(join(FOLDER, path), 'utf8') });
  const names = readdirSync(join(FOLDER, 'tasks')).toSorted();
  return readDataset(
    file('tools.yaml'),
    names.map((name) => file(`tasks/${name}`)),
    BUILTIN_TOOLS,
  );
}
