/** Files of the original, converted in memory: what was said about them, and what the new files load to. */
import { loadManifests } from '../../src/catalog/load.ts';
import type { LoadedManifests, LoadOptions } from '../../src/catalog/load.ts';
import type { ManifestFile, ManifestProblem } from '../../src/domain/catalog.ts';
import { migrateFolder } from '../../cli/migration/migrate-folder.ts';
import type { Migration } from '../../cli/migration/migrate-folder.ts';
import { filesOf } from './manifests.ts';

export interface Migrated extends Pick<LoadedManifests, 'catalog' | 'entries'> {
  readonly migration: Migration;
  /** At the places of the given text: what cannot be converted, and what was understood how. */
  readonly problems: readonly ManifestProblem[];
  readonly warnings: readonly ManifestProblem[];
}

/**
 * The definitions are those of the new files alone.
 *
 * @throws Error if the loader says that a new file is of the original's form, or has a problem with it
 */
export function migrated(
  files: readonly ManifestFile[] | Readonly<Record<string, string>>,
  options: LoadOptions = {},
): Migrated {
  const given = isList(files) ? files : filesOf(files);
  const migration = migrateFolder(
    { files: given },
    {
      load: (texts) => loadManifests(texts, options),
      ...(options.bundled === undefined || options.bundled === null ? {} : { others: options.bundled }),
    },
  );
  const written = [...migration.files].map(([path, text]) => ({ path, text }));
  const { catalog, entries, problems } = loadManifests(written, options);
  if (problems.length > 0) throw new Error(`the new files do not load: ${JSON.stringify(problems)}`);
  return { migration, catalog, entries, problems: migration.problems, warnings: migration.notes };
}

function isList(files: readonly ManifestFile[] | Readonly<Record<string, string>>): files is readonly ManifestFile[] {
  return Array.isArray(files);
}
