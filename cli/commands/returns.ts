/** `cortex returns`: describes what a tool returns in its manifest, from results that were recorded (L4). */
import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { isMap, parseAllDocuments } from 'yaml';
import type { Document } from 'yaml';
import { isJsonObject } from '../../src/domain/json.ts';
import type { Json } from '../../src/domain/json.ts';
import { EXIT, UsageError } from '../command.ts';
import type { Command, CommandCall } from '../command.ts';
import { isSet } from '../option-values.ts';
import { enterProject, PROJECT_ROOT } from '../project/folders.ts';
import { projectFolders, readManifestFiles } from '../project/manifest-files.ts';
import { writeNamed } from '../project/real-path.ts';
import { schemaOfValues } from '../project/schema-of-values.ts';
import { connectionOf, request } from '../terminal/connection.ts';
import { linesOfSource } from '../terminal/exported-lines.ts';
import { visible } from '../terminal/visible.ts';

/** Newest sessions of the system that are read, if none is named. */
const SESSIONS = 20;
const MOST_SOURCES = 100;
/** More results say nothing new. */
const MOST_RESULTS = 200;

export const command: Command = {
  name: 'returns',
  summary: 'Writes what a tool returns into its manifest, from recorded results.',
  usage: '<tool> [<session or export>]… [--print] [--replace]',
  help: `  <session or export>  where its results are; default: the newest ${SESSIONS} sessions of the system
  --print              prints the schema, and writes nothing
  --replace            replaces what the manifest says now`,
  example: 'cortex returns search_tickets',
  options: { print: { type: 'boolean' }, replace: { type: 'boolean' } },
  isRemote: true,
  positionals: [1, 1 + MOST_SOURCES],
  run: async (call) => {
    const [tool = '', ...given] = call.positionals;
    enterProject([]);
    const manifest = isSet(call, 'print') ? null : manifestOf(tool);
    if (manifest?.document.has('returns') === true && !isSet(call, 'replace')) {
      throw new UsageError(`${manifest.file} says already what "${visible(tool)}" returns; --replace replaces it`);
    }
    const sources = given.length > 0 ? given : await newestSessions(call);
    const results = await resultsOf(tool, sources, call);
    if (results.length === 0) {
      call.tell(`no result of "${visible(tool)}" is recorded in ${sources.length} sessions`);
      return EXIT.failed;
    }
    const returns = schemaOfValues(results);
    if (manifest !== null) {
      manifest.document.set('returns', manifest.document.createNode(returns));
      writeNamed(manifest.path, manifest.all.map((one) => one.toString({ lineWidth: 0 })).join(''));
    }
    const file = manifest?.file ?? null;
    if (call.json || file === null)
      call.print(JSON.stringify(call.json ? { tool, file, results: results.length, returns } : returns));
    else call.print(`${file}: what "${tool}" returns, from ${results.length} results`);
    return EXIT.ok;
  },
};

interface Manifest {
  readonly path: string;
  /** Relative to the project. */
  readonly file: string;
  /** All documents of the file. */
  readonly all: readonly Document[];
  readonly document: Document;
}

/** @throws UsageError if no manifest of the project defines the tool */
function manifestOf(tool: string): Manifest {
  for (const { path, text } of projectFolders()
    .filter((folder) => existsSync(folder))
    .flatMap(readManifestFiles)) {
    if (!/\.ya?ml$/i.test(path)) continue;
    const all = parseAllDocuments(text) as readonly Document[];
    const document = all.find(
      (one) => isMap(one.contents) && one.errors.length === 0 && one.get('kind') === 'Tool' && one.get('name') === tool,
    );
    if (document !== undefined) return { path, file: relative(PROJECT_ROOT, path), all, document };
  }
  throw new UsageError(`no YAML manifest of this project defines the tool "${visible(tool.slice(0, 100))}"`);
}

async function newestSessions(call: CommandCall): Promise<readonly string[]> {
  const response = await request(connectionOf(call), `/sessions?limit=${SESSIONS}`);
  const { sessions } = (await response.json()) as { readonly sessions: readonly { readonly session_id: string }[] };
  return sessions.map(({ session_id: id }) => id);
}

/** What the tool returned in these sessions; results that are kept as files are left out. */
async function resultsOf(tool: string, sources: readonly string[], call: CommandCall): Promise<Json[]> {
  const results: Json[] = [];
  for (const source of sources) {
    for await (const line of linesOfSource(source, call)) {
      if (!line.includes('"action_completed"')) continue;
      const event: unknown = JSON.parse(line);
      if (!isJsonObject(event) || event['type'] !== 'action_completed' || event['action_name'] !== tool) continue;
      const { data } = event;
      if (isJsonObject(data) && data['output'] !== undefined) results.push(data['output']);
      if (results.length >= MOST_RESULTS) return results;
    }
  }
  return results;
}
