/** The catalogue object of a namespace, and the copies of its definitions that a session keeps. */
import { bytesToHex } from '@noble/hashes/utils.js';
import { bundled } from '../catalog/bundled.ts';
import { fromPinned, toPinned } from '../catalog/store/pinned.ts';
import { withSecrets } from '../catalog/check/secrets.ts';
import type { ResolvedAgent, ResolvedWorkflow, WorkflowDefinition } from '../domain/manifest.ts';
import type { SessionRecord } from '../domain/session.ts';
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

/** In the form that is stored with a run; null if the name is unknown. */
async function resolve(
  env: Env,
  owner: string | null,
  kind: 'agent' | 'workflow',
  name: string,
): Promise<string | null> {
  return valueOf(await catalogFor(env, owner).resolve(kind, name));
}

/** Names of bundled manifests are reserved, so these are found here without a call. */
export async function agentOf(env: Env, owner: string | null, name: string): Promise<ResolvedAgent | null> {
  const common = bundled.agent(name);
  if (common !== null) return common;
  const found = await resolve(env, owner, 'agent', name);
  const resolved = found === null ? null : fromPinned(found);
  return resolved !== null && 'agent' in resolved ? resolved : null;
}

/** The same for workflows. */
export async function workflowOf(env: Env, owner: string | null, name: string): Promise<ResolvedWorkflow | null> {
  const common = bundled.workflow(name);
  if (common !== null) return common;
  const found = await resolve(env, owner, 'workflow', name);
  const resolved = found === null ? null : fromPinned(found);
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
  #last: { readonly id: string; readonly text: string } | null = null;

  constructor(env: Env, storage: DurableObjectStorage) {
    this.#env = env;
    this.#sql = storage.sql;
  }

  /** Stores the current definition of the session's agent or workflow. @returns its id; null if there is none */
  async pin({ agent, workflow, owner }: Pick<SessionRecord, 'agent' | 'workflow' | 'owner'>): Promise<string | null> {
    const kind = workflow === undefined ? 'agent' : 'workflow';
    const name = workflow ?? agent;
    const common = workflow === undefined ? bundled.agent(name) : bundled.workflow(name);
    const text = common === null ? await resolve(this.#env, owner, kind, name) : toPinned(common);
    if (text === null) return null;
    if (this.#last?.text === text) return this.#last.id;
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
    const id = bytesToHex(digest.subarray(0, 16));
    this.#open();
    for (let piece = 0; piece * PIECE_CHARS < text.length; piece += 1) {
      const part = text.slice(piece * PIECE_CHARS, (piece + 1) * PIECE_CHARS);
      this.#sql.exec(`INSERT OR IGNORE INTO pinned_manifests (id, piece, text) VALUES (?, ?, ?)`, id, piece, part);
    }
    this.#last = { id, text };
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

  #read(id: string): ResolvedAgent | ResolvedWorkflow | null {
    if (this.#last?.id === id) return fromPinned(this.#last.text);
    this.#open();
    const rows = this.#sql.exec(`SELECT text FROM pinned_manifests WHERE id = ? ORDER BY piece`, id).toArray();
    if (rows.length === 0) return null;
    const text = rows.map((row) => String(row['text'])).join('');
    this.#last = { id, text };
    return fromPinned(text);
  }

  #open(): void {
    this.#sql.exec(
      `CREATE TABLE IF NOT EXISTS pinned_manifests (
         id TEXT NOT NULL, piece INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, piece)
       ) WITHOUT ROWID`,
    );
  }
}
