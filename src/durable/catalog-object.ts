/**
 * The catalogue of one API key's namespace as an object of its own (M4). Knows the platform; what a change
 * means is the store's (catalog/store.ts). Answers are JSON text, refusals included: classes do not survive
 * the way between objects.
 */
import { DurableObject } from 'cloudflare:workers';
import { bundled, bundledSources } from '../catalog/bundled.ts';
import { graphOf, renderGraph } from '../catalog/graph.ts';
import type { ManifestFile } from '../catalog/load.ts';
import { toPinned } from '../catalog/pinned.ts';
import type { ManifestStore } from '../catalog/store.ts';
import { EngineError } from '../domain/errors.ts';
import type { CatalogRequest } from '../http/manifests.ts';
import { platformClock } from './platform.ts';
import { durableSql } from './sql-storage.ts';

export class CatalogObject extends DurableObject {
  #opened: Promise<ManifestStore> | null = null;

  /** Reading YAML takes more code than everything else: it is set up where it is used, not when a Worker starts. */
  #store(): Promise<ManifestStore> {
    this.#opened ??= import('../catalog/store.ts').then(
      (module) => new module.ManifestStore(durableSql(this.ctx.storage), bundled, bundledSources),
    );
    return this.#opened;
  }

  /** @returns JSON `{ok}` with the answer, or `{refused: {code, message, details}}` */
  async ask(request: string): Promise<string> {
    try {
      const answer = answerOf(await this.#store(), JSON.parse(request) as CatalogRequest);
      // nobody is told of a change that is not on disk
      await this.ctx.storage.sync();
      return JSON.stringify({ ok: answer ?? null });
    } catch (fault) {
      if (!(fault instanceof EngineError)) throw fault;
      const { code, message, details } = fault;
      return JSON.stringify({ refused: { code, message, details } });
    }
  }

  /** What an agent or a workflow means now, as a run keeps it; null when there is none. */
  async resolve(kind: 'agent' | 'workflow', name: string): Promise<string | null> {
    const store = await this.#store();
    const found = kind === 'agent' ? store.agent(name) : store.workflow(name);
    return found === null ? null : toPinned(found);
  }

  /** @returns JSON of all workflow definitions */
  async workflows(): Promise<string> {
    return JSON.stringify((await this.#store()).data.workflows);
  }
}

function answerOf(store: ManifestStore, request: CatalogRequest): unknown {
  const now = platformClock.now();
  switch (request.do) {
    case 'list':
      return store.list(request.kind);
    case 'get':
      return store.get(request.ref, request.wanted);
    case 'put':
      return store.put(request.ref, request.text, now);
    case 'remove':
      return store.remove(request.ref, now);
    case 'upload':
      return store.upload(request.files satisfies readonly ManifestFile[], now);
    case 'replace':
      return store.replace(request.files, now);
    case 'validate':
      return store.validate(request.files);
    case 'graph': {
      const graph = graphOf(store.data);
      return { graph, text: renderGraph(graph) };
    }
  }
}
