/**
 * What is stored in place of a new file with errors: documents with its kinds and names that never load. Importers find
 * them and omit them, as when the whole folder is loaded; no later change can make them load.
 */
import type { ManifestFile } from '../../domain/catalog.ts';
import type { ReadFile } from '../read/read-file.ts';

export function placeholderOf({ path, documents }: Pick<ReadFile, 'path' | 'documents'>): ManifestFile {
  const written = documents.map(({ kind, name }) => `kind: ${kind}\nname: ${JSON.stringify(name)}\nversion: []\n`);
  // an unclosed list: not valid YAML
  const text = written.length === 0 ? 'kind: [\n' : written.join('---\n');
  return { path, text: /\.ya?ml$/i.test(path) ? text : `---\n${text}---\n` };
}
