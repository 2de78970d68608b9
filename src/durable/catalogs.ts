/** The catalogue object of a namespace, and the copies of its definitions that a session keeps. */
import { bytesToHex } from '@noble/hashes/utils.js';
import { bundled } from '../catalog/bundled.ts';
import { shapesIn } from '../catalog/store/learned-shapes.ts';
import { fromPinned, toPinned } from '../catalog/store/pinned.ts';
import { withSecrets } from '../catalog/check/secrets.ts';
import type { ResolvedAgent, ResolvedWorkflow, WorkflowDefinition } from '../domain/manifest.ts';
import type { SessionRecord } from '../domain/session.ts';
import type { LearnedShapes } from '../domain/shape.ts';
import { undescribedTargets } from '../domain/undescribed-targets.ts';
import type { ManifestHost } from '../http/manifest-host.ts';
import { scopeOf } from '../settings/secrets.ts';
import { objectName } from '../domain/owner.ts';
import type { CatalogRpc, Env, Remote } from './env.ts';
import { valueOf } from './reply.ts';
import type { Reply } from './reply.ts';

function catalogFor(env: Env, owner: string | null): Remote<CatalogRpc> {
  return env.CATALOGS.getByName(objectName(owner));
}

/**
 * After a change: updates the schedule of the namespace's own workflows; the Worker schedules the bundled ones (M6).
 */
async function changed<T>(env: Env, owner: string | null, change: Promise<Reply<T>>): Promise<T> {
  const answer = valueOf(await change);
  await env.SCHEDULES.getByName(objectName(owner)).follow(owner);
  return answer;
}

export function manifestHost(env: Env): ManifestHost {
  const of = (owner: string | null): Remote<CatalogRpc> => catalogFor(env, owner);
  return {
    list: async (owner, kind) => valueOf(await of(owner).list(owner, kind)),
    get: async (owner, ref, wanted) => valueOf(await of(owner).get(owner, ref, wanted)),
    put: (owner, ref, text) => changed(env, owner, of(owner).put(owner, ref, text)),
    remove: (owner, ref) => changed(env, owner, of(owner).remove(owner, ref)),
    upload: (owner, files) => changed(env, owner, of(owner).upload(owner, files)),
    replace: (owner, files) => changed(env, owner, of(owner).replace(owner, files)),
    validate: async (owner, files) => valueOf(await of(owner).validate(owner, files)),
    graph: async (owner) => valueOf(await of(owner).graph(owner)),
  };
}

/** A definition in the form that is stored with a run, and what was learned about the results of its targets. */
interface Current {
  readonly text: string;
  readonly shapes: string | null;
}

/**
 * Names of bundled manifests are reserved, so these are found here. Null if the name is unknown.
 *
 * @throws EngineError the catalogue's error
 */
async function current(
  env: Env,
  owner: string | null,
  kind: 'agent' | 'workflow',
  name: string,
): Promise<Current | null> {
  const common = kind === 'agent' ? bundled.agent(name) : bundled.workflow(name);
  if (common === null) return valueOf(await catalogFor(env, owner).resolve(kind, name));
  return { text: toPinned(common), shapes: await shapesOf(env, owner, undescribedTargets(common)) };
}

/** Without shapes, a prompt says less; so a message does not fail because of them. */
async function shapesOf(env: Env, owner: string | null, targets: readonly string[]): Promise<string | null> {
  if (targets.length === 0) return null;
  try {
    return valueOf(await catalogFor(env, owner).shapes(targets));
  } catch {
    return null;
  }
}

/** Stores what a run of the namespace has learned about results (L4). */
export async function learnShapes(env: Env, owner: string | null, shapes: LearnedShapes): Promise<void> {
  valueOf(await catalogFor(env, owner).learn(shapes));
}

function resolvedFrom({ text, shapes }: Current): ResolvedAgent | ResolvedWorkflow {
  return { ...fromPinned(text), ...shapesIn(shapes) };
}

export async function agentOf(env: Env, owner: string | null, name: string): Promise<ResolvedAgent | null> {
  const common = bundled.agent(name);
  if (common !== null) return { ...common, ...shapesIn(await shapesOf(env, owner, undescribedTargets(common))) };
  const found = await current(env, owner, 'agent', name);
  const resolved = found === null ? null : resolvedFrom(found);
  return resolved !== null && 'agent' in resolved ? resolved : null;
}

/** The same for workflows. */
export async function workflowOf(env: Env, owner: string | null, name: string): Promise<ResolvedWorkflow | null> {
  const common = bundled.workflow(name);
  if (common !== null) return common;
  const found = await current(env, owner, 'workflow', name);
  const resolved = found === null ? null : resolvedFrom(found);
  return resolved !== null && 'workflow' in resolved ? resolved : null;
}

/** All workflows of the namespace by name, including the bundled ones. */
export async function workflowsOf(env: Env, owner: string | null): Promise<WorkflowDefinition[]> {
  const all = await catalogFor(env, owner).workflows();
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A row holds 2 MB in production; a UTF-16 code unit has at most three bytes in UTF-8. */
const PIECE_CHARS = 500_000;

/**
 * The definitions used by the runs of one session, in the session's own storage: a catalogue change, a deployment or a
 * crash does not affect a run that has started (M4, J2).
 */
export class PinnedManifests {
  readonly #env: Env;
  readonly #sql: SqlStorage;
  readonly #last = new Map<'definitions' | 'shapes', { readonly id: string; readonly text: string }>();

  constructor(env: Env, storage: DurableObjectStorage) {
    this.#env = env;
    this.#sql = storage.sql;
  }

  /**
   * Stores the current definition of the session's agent or workflow, and separately, because they are small and change
   * more often, the shapes of its results.
   *
   * @returns `definitions` or `definitions+shapes`, each the id of a text; null if there is none
   */
  async pin({ agent, workflow, owner }: Pick<SessionRecord, 'agent' | 'workflow' | 'owner'>): Promise<string | null> {
    const kind = workflow === undefined ? 'agent' : 'workflow';
    const found = await current(this.#env, owner, kind, workflow ?? agent);
    if (found === null) return null;
    const definitions = await this.#keep('definitions', found.text);
    return found.shapes === null ? definitions : `${definitions}+${await this.#keep('shapes', found.shapes)}`;
  }

  /** @returns the id of the text */
  async #keep(part: 'definitions' | 'shapes', text: string): Promise<string> {
    const last = this.#last.get(part);
    if (last?.text === text) return last.id;
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
    const id = bytesToHex(digest.subarray(0, 16));
    this.#open();
    for (let piece = 0; piece * PIECE_CHARS < text.length; piece += 1) {
      const slice = text.slice(piece * PIECE_CHARS, (piece + 1) * PIECE_CHARS);
      this.#sql.exec(`INSERT OR IGNORE INTO pinned_manifests (id, piece, text) VALUES (?, ?, ?)`, id, piece, slice);
    }
    this.#last.set(part, { id, text });
    return id;
  }

  /** @param id the result of `pin`; null means the bundled manifests of this deployment */
  agent(name: string, id: string | null, owner: string | null): ResolvedAgent | null {
    const found = id === null ? bundled.agent(name) : this.#read(id);
    if (found === null || !('agent' in found)) return null;
    return withSecrets(found, found.agent.secrets, scopeOf(this.#env, owner));
  }

  workflow(name: string, id: string | null, owner: string | null): ResolvedWorkflow | null {
    const found = id === null ? bundled.workflow(name) : this.#read(id);
    if (found === null || !('workflow' in found)) return null;
    return withSecrets(found, [], scopeOf(this.#env, owner));
  }

  #read(pin: string): ResolvedAgent | ResolvedWorkflow | null {
    const [definitions = '', shapes] = pin.split('+');
    const text = this.#text('definitions', definitions);
    if (text === null) return null;
    return resolvedFrom({ text, shapes: shapes === undefined ? null : this.#text('shapes', shapes) });
  }

  #text(part: 'definitions' | 'shapes', id: string): string | null {
    const last = this.#last.get(part);
    if (last?.id === id) return last.text;
    this.#open();
    const rows = this.#sql.exec(`SELECT text FROM pinned_manifests WHERE id = ? ORDER BY piece`, id).toArray();
    if (rows.length === 0) return null;
    const text = rows.map((row) => String(row['text'])).join('');
    this.#last.set(part, { id, text });
    return text;
  }

  #open(): void {
    this.#sql.exec(
      `CREATE TABLE IF NOT EXISTS pinned_manifests (
         id TEXT NOT NULL, piece INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, piece)
       ) WITHOUT ROWID`,
    );
  }
}
