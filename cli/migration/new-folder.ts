/** Writes a converted folder. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { makeNamedFolder } from '../project/real-path.ts';
import type { Migration } from './migrate-folder.ts';

/** What follows the name of a file that could not be converted: so it is no manifest until a person has corrected it. */
export const UNCONVERTED = '.unconverted';

/** Paths are relative to the new folder. */
export interface NewFolder {
  readonly folder: string;
  readonly files: readonly string[];
  readonly unconverted: readonly string[];
}

/**
 * @param target a folder that is empty or absent
 * @param folder the old one, with which the paths of all files begin
 * @throws Error of the file system
 */
export function writeFolder(target: string, folder: string, { files, unconverted }: Migration): NewFolder {
  makeNamedFolder(target);
  const write = (path: string, text: string): string => {
    const file = relative(folder, path);
    mkdirSync(dirname(join(target, file)), { recursive: true });
    writeFileSync(join(target, file), text, { flag: 'wx' });
    return file;
  };
  return {
    folder: target,
    files: [...files].map(([path, text]) => write(path, text)),
    unconverted: [...unconverted].map(([path, text]) => write(`${path}${UNCONVERTED}`, text)),
  };
}
