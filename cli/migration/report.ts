/** What of a folder could be converted, and what was understood how: for `cortex migrate`. */
import { MANIFEST_KINDS } from '../../src/domain/catalog.ts';
import type { ManifestFile, ManifestKind, ManifestProblem } from '../../src/domain/catalog.ts';
import type { Migration, Status } from './migrate-folder.ts';
import type { NewFolder } from './new-folder.ts';
import { protocolText } from './protocol-texts.ts';
import type { ProtocolNote, ProtocolText } from './protocol-texts.ts';

export interface MigrationReport {
  /** What was written; absent without a new folder. */
  readonly out?: NewFolder;
  readonly folder: string;
  readonly files: readonly FileReport[];
  /** Documents by kind; `other` are files without a known kind, `protocol` are protocol texts. */
  readonly counts: Readonly<Partial<Record<CountedKind, Readonly<Record<Status, number>>>>>;
}

export type CountedKind = ManifestKind | 'protocol' | 'other';

export interface FileReport {
  /** Relative to the folder. */
  readonly file: string;
  /** `fails` if anything in it fails. */
  readonly status: Status;
  readonly manifests: readonly { readonly kind: ManifestKind; readonly name: string; readonly status: Status }[];
  readonly protocol: Pick<ProtocolText, 'form' | 'actions' | 'responses'> | null;
  readonly errors: readonly Note[];
  /** What was understood how, and what has no effect. */
  readonly notes: readonly Note[];
  /** Why the file, or a document in it, is no manifest. */
  readonly skipped: readonly Note[];
}

/** Identical notes of a file are one note. */
export interface Note {
  /** Of the first one; null if it is about the whole file. */
  readonly line: number | null;
  /** The field of the first one; empty if there is none. */
  readonly field: string;
  readonly message: string;
  readonly count: number;
}

/**
 * @param folder the path of the folder, with which all paths begin
 * @param files all text files of the folder
 */
export function migrationReport(folder: string, files: readonly ManifestFile[], migration: Migration): MigrationReport {
  const prefix = folder.endsWith('/') ? folder : `${folder}/`;
  const short = (text: string): string => text.replaceAll(prefix, '');
  const byFile = (issues: readonly ManifestProblem[]): Map<string, ManifestProblem[]> =>
    Map.groupBy(issues, ({ file }) => file);
  const [errors, notes, skipped] = [migration.problems, migration.notes, migration.skipped].map(byFile);
  const documents = Map.groupBy(migration.documents, ({ file }) => file);
  const texts = new Map(files.map((file) => [file.path, file]));
  const referred = new Set([...migration.files.keys()].filter((path) => !documents.has(path)));
  const reports: FileReport[] = [];
  for (const path of [...new Set([...texts.keys(), ...(errors?.keys() ?? []), ...(skipped?.keys() ?? [])])].sort()) {
    const manifests = (documents.get(path) ?? []).map(({ kind, name, status }) => ({ kind, name, status }));
    const file = texts.get(path);
    const isManifest = manifests.length > 0 || errors?.has(path) === true;
    const protocol =
      isManifest || file === undefined ? null : protocolText({ ...file, path: short(path) }, referred.has(path));
    const report = {
      file: short(path),
      manifests,
      protocol:
        protocol === null ? null : { form: protocol.form, actions: protocol.actions, responses: protocol.responses },
      // an example in a prompt is not run
      errors: [
        ...notesOf(errors?.get(path) ?? [], short),
        ...(protocol?.form === 'program' ? grouped(protocol.rejected, '') : []),
      ],
      notes: [
        ...notesOf(notes?.get(path) ?? [], short),
        ...(protocol?.form === 'prompt' ? grouped(protocol.rejected, 'in an example, ') : []),
        ...grouped(protocol?.notes ?? [], ''),
      ],
      skipped: notesOf(skipped?.get(path) ?? [], short),
    };
    const status = statusOf(report);
    if (status !== null) reports.push({ ...report, status });
  }
  return { folder, files: reports, counts: countsOf(reports) };
}

/** The status of a file; null if it is neither a manifest nor a text with something to say. */
function statusOf({ errors, manifests, protocol, skipped, notes }: Omit<FileReport, 'status'>): Status | null {
  if (errors.length > 0) return 'fails';
  if (manifests.some(({ status }) => status === 'loads') || protocol !== null) return 'loads';
  return skipped.length > 0 || notes.length > 0 || manifests.length > 0 ? 'skipped' : null;
}

function countsOf(files: readonly FileReport[]): MigrationReport['counts'] {
  const counts: Partial<Record<CountedKind, Record<Status, number>>> = {};
  const count = (kind: CountedKind, status: Status): void => {
    const row = (counts[kind] ??= { loads: 0, fails: 0, skipped: 0 });
    row[status] += 1;
  };
  for (const kind of MANIFEST_KINDS) {
    for (const { manifests } of files) for (const one of manifests) if (one.kind === kind) count(kind, one.status);
  }
  for (const { manifests, protocol, status } of files) {
    if (protocol !== null) count('protocol', status);
    else if (manifests.length === 0) count('other', status);
  }
  return counts;
}

function notesOf(issues: readonly ManifestProblem[], short: (text: string) => string): readonly Note[] {
  const notes = issues.map(({ line, field, message }) => ({ line, field, message: short(message) }));
  return merged(notes);
}

function grouped(notes: readonly ProtocolNote[], before: string): readonly Note[] {
  return merged(notes.map(({ line, message }) => ({ line, field: '', message: `${before}${message}` })));
}

/** Counts notes that differ only in their position. */
function merged(notes: readonly Omit<Note, 'count'>[]): readonly Note[] {
  const groups = Map.groupBy(notes, ({ field, message }) => `${field.replaceAll(/\d+/g, '')} ${message}`);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first === undefined ? [] : [{ ...first, count: group.length }];
  });
}
