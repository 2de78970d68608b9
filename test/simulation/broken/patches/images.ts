/** Mistakes in the images of results. */
import type { Patch } from '../patch.ts';

const RESULT_FILES = 'src/engine/generation/result-files.ts';

export const IMAGE_PATCHES: readonly Patch[] = [
  {
    name: 'an earlier result does not remember its files',
    file: 'src/engine/actions/settlements.ts',
    find: `Object.assign(state, fileState(output),`,
    replace: `void fileState;\n    Object.assign(state,`,
    invariant: 'images shown',
  },
  {
    name: 'the images of results are numbered from the wrong event',
    file: RESULT_FILES,
    find: 'artifactIdOf(journal.incarnation, seq, index + 1)',
    replace: 'artifactIdOf(journal.incarnation, seq + 1, index + 1)',
    invariant: 'images shown',
  },
  {
    name: 'only the images of the last generation of a turn are attached',
    file: 'src/engine/generation/shown-files.ts',
    find: `return [files, ...rest, ...before(`,
    replace: `return [files, ...rest.slice(-1), ...before(`,
    invariant: 'images shown',
  },
  {
    name: 'earlier messages have no images',
    file: 'src/engine/session/run-setup.ts',
    find: `readConversation(ports.journal, parent, ports.blobs)`,
    replace: `readConversation(ports.journal, parent)`,
    invariant: 'images shown',
  },
  {
    name: 'the images of the current message are not attached',
    file: 'src/engine/generation/generation-runner.ts',
    find: `...userTurn(source.type === 'model' ? source.content : '', blobs), generations: []`,
    replace: `user: userTurn(source.type === 'model' ? source.content : '', blobs).user, generations: []`,
    invariant: 'images shown',
  },
  {
    name: 'only the base64 of results of MCP is hidden',
    file: RESULT_FILES,
    find: `if (typeof base64 === 'string' && (name !== undefined || type !== undefined)) return 'base64';`,
    replace: `void [base64, name, type];`,
    invariant: 'images shown',
  },
];
