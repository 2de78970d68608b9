/** `cortex returns`: describes what a tool returns in its manifest, from results that were recorded (L4). */
import { existsSync, readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { isMap, parseAllDocuments } from 'yaml';
import type { Document } from 'yaml';
import { isJsonObject, parseJson } from '../../src/domain/json.ts';
import type { Json } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
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
    const [tool = '', ...named] = call.positionals;
    // The project may be above this folder.
    const given = named.map((one) => (existsSync(one) ? resolve(one) : one));
    enterProject([]);
    const manifest = isSet(call, 'print') ? null : manifestOf(tool);
    if ((manifest?.document.get('returns') ?? null) !== null && !isSet(call, 'replace')) {
      throw new UsageError(
        `${manifest?.file ?? ''} says already what "${visible(tool)}" returns; --replace replaces it`,
      );
    }
    const sources = given.length > 0 ? given : await newestSessions(call);
    const results = await resultsOf(tool, sources, call);
    if (results.length === 0) {
      const where = given.length > 0 ? 'there' : 'in the newest sessions; name a session or an export that has one';
      call.tell(`no result of "${visible(tool)}" is recorded ${where}`);
      return EXIT.failed;
    }
    const returns = schemaOfValues(results);
    if (manifest !== null) {
      manifest.document.set('returns', manifest.document.createNode(returns));
      const text = manifest.all.map((one) => one.toString({ lineWidth: 0 })).join('');
      if (readFileSync(manifest.path, 'utf8') !== manifest.text)
        throw new UsageError(`${manifest.file} has changed meanwhile`);
      if (text.length > limits.manifestBytes / 4) throw new UsageError(`${manifest.file} would be too large`);
      writeNamed(manifest.path, text);
    }
    const file = manifest?.file ?? null;
    if (call.json || file === null)
      call.print(JSON.stringify(call.json ? { tool, file, results: results.length, returns } : returns));
    else
      call.print(
        `${file}: what "${tool}" returns, from ${results.length} ${results.length === 1 ? 'result' : 'results'}`,
      );
    return EXIT.ok;
  },
};

interface Manifest {
  readonly path: string;
  readonly text: string;
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
    if (document !== undefined) {
      const file = relative(PROJECT_ROOT, path);
      if (all.some((one) => one.errors.length > 0))
        throw new UsageError(`${file} has errors: cortex validate shows them`);
      return { path, text, file, all, document };
    }
  }
  throw new UsageError(`no YAML manifest of this project defines the tool "${visible(tool.slice(0, 100))}"`);
}

async function newestSessions(call: CommandCall): Promise<readonly string[]> {
  const response = await request(connectionOf(call), `/sessions?limit=${SESSIONS}`);
  const { sessions } = (await response.json()) as { readonly sessions: readonly { readonly session_id: string }[] };
  return sessions.map(({ session_id: id }) => id);
}

/** What the tool returned in these sessions, oldest first within each; at most `MOST_RESULTS`. */
async function resultsOf(tool: string, sources: readonly string[], call: CommandCall): Promise<Json[]> {
  const results: Json[] = [];
  for (const source of sources) {
    /** Its calls: an agent or a workflow may have the same name. */
    const calls = new Set<string>();
    for await (const line of linesOfSource(source, call)) {
      if (!line.includes('"action_')) continue;
      const event = parseJson(line);
      if (!isJsonObject(event) || event['action_name'] !== tool || !isJsonObject(event['data'])) continue;
      const { type, run_id: run, iteration, action_id: action, data } = event;
      const key = JSON.stringify([run, iteration, action]);
      if (type === 'action_queued' && data['type'] === 'tool') calls.add(key);
      if (type !== 'action_completed' || !calls.has(key) || data['output'] === undefined) continue;
      results.push(data['output']);
      if (results.length >= MOST_RESULTS) return results;
    }
  }
  return results;
}
