/** Mistakes in the images of results. */
import type { Patch } from '../patch.ts';

const RESULT_FILES = 'src/engine/generation/result-files.ts';

export const IMAGE_PATCHES: readonly Patch[] = [
  {
    name: 'an earlier result does not remember its files',
    file: 'src/engine/actions/settlements.ts',
    find: `Object.assign(state, fileState(output));`,
    replace: `void fileState;`,
    invariant: 'images shown',
  },
  {
    name: 'the images of results are numbered from the wrong event',
    file: RESULT_FILES,
    find: 'const artifact = `art_${seq}_${index + 1}`;',
    replace: 'const artifact = `art_${seq + 1}_${index + 1}`;',
    invariant: 'images shown',
  },
  {
    name: 'only the images of the last generation of a turn are attached',
    file: 'src/engine/generation/shown-files.ts',
    find: `return [files, ...ofResults].filter(`,
    replace: `return [files, ...ofResults.slice(-1)].filter(`,
    invariant: 'images shown',
  },
  {
    name: 'a marker takes the place of base64 only in the first file list',
    file: RESULT_FILES,
    find: `if (Array.isArray(items)) shown[list]`,
    replace: `if (list === 'content' && Array.isArray(items)) shown[list]`,
    invariant: 'images shown',
  },
];
