/**
 * The catalogue of one API key's namespace as an object of its own (M4). Knows the platform; what a change
 * means is the store's (catalog/store/store.ts). Answers are JSON text, refusals included: classes do not survive
 * the way between objects.
 */
import { DurableObject } from 'cloudflare:workers';
import { bundled, bundledSources } from '../../catalog/bundled.ts';
import { graphOf, renderGraph } from '../../catalog/store/graph.ts';
import type { ManifestFile } from '../../catalog/load.ts';
import { toPinned } from '../../catalog/store/pinned.ts';
import type { ManifestStore } from '../../catalog/store/store.ts';
import { EngineError } from '../../domain/errors.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { CatalogRequest } from '../../http/manifests.ts';
import { platformClock } from '../platform.ts';
import { refusedSecret } from '../secrets.ts';
import { readSettings } from '../settings.ts';
import type { Env } from '../settings.ts';
import { durableSql } from '../sql-storage.ts';

export class CatalogObject extends DurableObject<Env> {
  #opened: Promise<ManifestStore> | null = null;
  #owner: string | null = null;

  /** Reading YAML takes more code than everything else: it is set up where it is used, not when a Worker starts. */
  #store(): Promise<ManifestStore> {
    this.#opened ??= import('../../catalog/store/store.ts').then(
      (module) =>
        new module.ManifestStore(
          durableSql(this.ctx.storage),
          bundled,
          bundledSources,
          (name) => refusedSecret(this.env, this.#owner, name),
          () => scheduler.wait(limits.catalogPauseMs),
          () => readSettings(this.env).clocks,
        ),
    );
    return this.#opened;
  }

  /** @param owner the API key whose catalogue it is
   * @returns JSON `{ok}` with the answer, or `{refused: {code, message, details}}` */
  async ask(request: string, owner: string | null): Promise<string> {
    this.#owner = owner;
    try {
      const answer = await answerOf(await this.#store(), JSON.parse(request) as CatalogRequest);
      // nobody is told of a change that is not on disk
      await this.ctx.storage.sync();
      return JSON.stringify({ ok: answer ?? null });
    } catch (fault) {
      return JSON.stringify({ refused: refusalOf(fault) });
    }
  }

  /** What an agent or a workflow means now, as a run keeps it; null when there is none. */
  async resolve(kind: 'agent' | 'workflow', name: string): Promise<Resolution> {
    try {
      const store = await this.#store();
      const found = kind === 'agent' ? store.agent(name) : store.workflow(name);
      return { pinned: found === null ? null : toPinned(found) };
    } catch (fault) {
      return { refused: refusalOf(fault) };
    }
  }

  /** @returns JSON of all workflow definitions */
  async workflows(): Promise<string> {
    return JSON.stringify((await this.#store()).data.workflows);
  }
}

/** What an error of ours is on its way between objects. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export type Resolution =
  | { readonly pinned: string | null; readonly refused?: undefined }
  | { readonly refused: Refusal; readonly pinned?: undefined };

/** @throws what is no error of ours */
function refusalOf(fault: unknown): Refusal {
  if (!(fault instanceof EngineError)) throw fault;
  const { code, message, details } = fault;
  return { code, message, details };
}

async function answerOf(store: ManifestStore, request: CatalogRequest): Promise<unknown> {
  const now = platformClock.now();
  switch (request.do) {
    case 'list':
      return store.list(request.kind);
    case 'get':
      return store.get(request.ref, request.wanted);
    case 'put':
      return await store.put(request.ref, request.text, now);
    case 'remove':
      return await store.remove(request.ref, now);
    case 'upload':
      return await store.upload(request.files satisfies readonly ManifestFile[], now);
    case 'replace':
      return await store.replace(request.files, now);
    case 'validate':
      return await store.validate(request.files);
    case 'graph': {
      const graph = graphOf(store.data);
      return { graph, text: renderGraph(graph) };
    }
  }
}
