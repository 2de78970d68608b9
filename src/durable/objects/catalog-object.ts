/**
 * The catalogue of one API key's namespace as a separate object (M4). Knows the platform; what a change
 * means is the store's (catalog/store/store.ts).
 */
import { DurableObject } from 'cloudflare:workers';
import { bundled, bundledSources } from '../../catalog/bundled.ts';
import { graphOf, renderGraph } from '../../catalog/store/graph.ts';
import type { ManifestFile } from '../../catalog/load.ts';
import { toPinned } from '../../catalog/store/pinned.ts';
import type { ManifestStore } from '../../catalog/store/store.ts';
import { limits } from '../../domain/limits.ts';
import type { WorkflowDefinition } from '../../domain/manifest.ts';
import type { CatalogRequest } from '../../http/routes/manifests.ts';
import { platformClock } from '../platform.ts';
import { refusedSecret } from '../../settings/secrets.ts';
import { readSettings } from '../../settings/settings.ts';
import type { CatalogRpc, Env } from '../env.ts';
import { replyOf } from '../reply.ts';
import type { Reply } from '../reply.ts';
import { durableSql } from '../sql-storage.ts';

export class CatalogObject extends DurableObject<Env> implements CatalogRpc {
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
          () => readSettings(this.env).intervals,
        ),
    );
    return this.#opened;
  }

  async ask(request: CatalogRequest, owner: string | null): Promise<Reply<unknown>> {
    this.#owner = owner;
    return await replyOf(async () => {
      const answer = await answerOf(await this.#store(), request);
      // The answer to a change is sent once the change is on disk.
      await this.ctx.storage.sync();
      return answer ?? null;
    });
  }

  async resolve(kind: 'agent' | 'workflow', name: string): Promise<Reply<string | null>> {
    return await replyOf(async () => {
      const store = await this.#store();
      const found = kind === 'agent' ? store.agent(name) : store.workflow(name);
      return found === null ? null : toPinned(found);
    });
  }

  async workflows(): Promise<WorkflowDefinition[]> {
    return [...(await this.#store()).data.workflows];
  }
}

async function answerOf(store: ManifestStore, request: CatalogRequest): Promise<unknown> {
  const now = platformClock.now();
  switch (request.type) {
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
