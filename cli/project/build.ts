import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { EXIT } from '../command.ts';
import type { ExitCode } from '../command.ts';
import { nameOfFile, readCodeTools } from './code-tools.ts';
import { bundleOf, withEarlier, writtenNames } from './bundle.ts';
import { enterProject, GENERATED, PROJECT_ROOT } from './folders.ts';
import { earlierBundle, generatedModule } from './generated-module.ts';
import { checkManifests, projectFolders } from './manifest-files.ts';
import { projectText, writeProjectFile } from './real-path.ts';

/**
 * Checks the project's manifests and code tools, and writes them as plain data and imports to `src/project.generated.ts`, so
 * that the Worker parses no YAML at start-up. The folders are `manifests/`, those of the setting CORTEX_MANIFESTS, and
 * `further`, relative to the current one.
 *
 * If a manifest has errors, nothing is written and the exit code is 1. With CORTEX_KEEP_BUNDLE=1, as `cortex dev` sets
 * it, the others are written, and a manifest that no longer loads keeps its earlier version; a code tool has none.
 */
export async function buildProject(
  further: readonly string[] = [],
  print: (line: string) => void = console.log,
): Promise<ExitCode> {
  const given = enterProject(further).map((folder) => relative(PROJECT_ROOT, resolve(folder)) || '.');
  const folders = [...new Set([...projectFolders(), ...given])];
  const missing = folders.filter((folder) => !existsSync(folder));
  for (const folder of missing) console.error(`error    ${folder}: no such folder`);
  const code = readCodeTools(PROJECT_ROOT, 'of the user');
  const loaded = checkManifests(
    folders.filter((folder) => existsSync(folder)),
    null,
    code,
  );
  const errors = loaded.problems.length + missing.length;
  const isKept = process.env['CORTEX_KEEP_BUNDLE'] === '1';
  if (errors > 0 && !isKept) {
    console.error(`${folders.join(', ')}: ${errors} ${errors === 1 ? 'error' : 'errors'}, nothing written`);
    return EXIT.failed;
  }
  const before = projectText(PROJECT_ROOT, GENERATED);
  const earlier = errors > 0 && before !== null ? earlierBundle(before) : null;
  const bundle = bundleOf(loaded);
  // The earlier version of a code tool's file is gone.
  const lost = new Set(code.faulty.map((file) => `tool/${nameOfFile(file)}`));
  const isWritten = writtenNames(loaded);
  const text = generatedModule(
    earlier === null ? bundle : withEarlier(bundle, earlier, (id) => isWritten(id) && !lost.has(id)),
    code,
    folders,
  );
  // keep the timestamp of an unchanged file, so that watchers do not react
  if (before !== text) writeProjectFile(PROJECT_ROOT, GENERATED, text);
  const { agents, tools } = bundle.data;
  print(`${GENERATED}: ${agents.length} agents, ${tools.length} tools`);
  return EXIT.ok;
}
