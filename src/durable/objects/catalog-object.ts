/**
 * The catalogue of one namespace as a separate object (M4). Contains the platform code only; the store
 * implements the changes (catalog/store/store.ts).
 */
import type {
  ManifestKind,
  ManifestRef,
  ListedManifest,
  StoredManifest,
  ChangeReport,
  ReplaceReport,
  ManifestFile,
  ExposedManifests,
} from '../../domain/catalog.ts';
import { DurableObject } from 'cloudflare:workers';
import { exposedOf } from '../../catalog/store/exposed.ts';
import { graphOf, renderGraph } from '../../catalog/store/graph.ts';
import { toPinned } from '../../catalog/store/pinned.ts';
import type { ManifestGraph } from '../../catalog/store/graph.ts';
import type { ManifestStore } from '../../catalog/store/store.ts';
import { limits } from '../../domain/limits.ts';
import type { WorkflowDefinition } from '../../domain/manifests/workflow.ts';
import { platformClock } from '../platform.ts';
import { servedProject } from '../project.ts';
import { deploymentOf } from '../../settings/deployment.ts';
import { refusedSecret } from '../../settings/secrets.ts';
import { readSettings } from '../../settings/settings.ts';
import type { CatalogRpc, Changed, Env } from '../env.ts';
import { replyOf } from '../reply.ts';
import type { Reply } from '../reply.ts';
import { durableSql } from '../sql-storage.ts';

/** Storage key of the number of the last change. */
const REVISION = 'revision';

export class CatalogObject extends DurableObject<Env> implements CatalogRpc {
  #opened: Promise<ManifestStore> | null = null;
  #owner: string | null = null;

  /** Reading YAML needs a lot of code, so it is loaded on first use and not when a Worker starts. */
  #store(): Promise<ManifestStore> {
    this.#opened ??= import('../../catalog/store/store.ts').then(
      (module) =>
        new module.ManifestStore(
          durableSql(this.ctx.storage),
          servedProject().bundled,
          servedProject().sources,
          (name) => refusedSecret(this.env, this.#owner, name),
          () => scheduler.wait(limits.catalogPauseMs),
          () => readSettings(this.env).intervals,
          () => deploymentOf(this.env, [this.#owner], { ai: this.env.AI ?? null }),
          () => this.#nextRevision(),
        ),
    );
    return this.#opened;
  }

  /** The same for a change. */
  async #change<T>(owner: string | null, work: (store: ManifestStore) => T | Promise<T>): Promise<Changed<T>> {
    let revision = 0;
    const reply = await this.#answer(owner, async (store) => {
      const answer = await work(store);
      revision = this.#revision;
      return answer;
    });
    return reply.type === 'ok' ? { ...reply, revision } : reply;
  }

  get #revision(): number {
    return this.ctx.storage.kv.get<number>(REVISION) ?? 0;
  }

  /** A time, so that readers recognise a number that no catalogue has given (definition-cache.ts). */
  #nextRevision(): void {
    this.ctx.storage.kv.put(REVISION, Math.max(platformClock.now(), this.#revision + 1));
  }

  async #answer<T>(owner: string | null, work: (store: ManifestStore) => T | Promise<T>): Promise<Reply<T>> {
    this.#owner = owner;
    return await replyOf(async () => {
      const answer = await work(await this.#store());
      // A change is answered after it is durable.
      await this.ctx.storage.sync();
      return answer;
    });
  }

  async list(owner: string | null, kind: ManifestKind | null): Promise<Reply<readonly ListedManifest[]>> {
    return await this.#answer(owner, (store) => store.list(kind));
  }

  async get(
    owner: string | null,
    ref: ManifestRef,
    wanted: { readonly version?: string; readonly revision?: number },
  ): Promise<Reply<StoredManifest>> {
    return await this.#answer(owner, (store) => store.get(ref, wanted));
  }

  async put(owner: string | null, ref: ManifestRef, text: string): Promise<Changed<ChangeReport>> {
    return await this.#change(owner, (store) => store.put(ref, text, platformClock.now()));
  }

  async remove(owner: string | null, ref: ManifestRef): Promise<Changed<void>> {
    return await this.#change(owner, (store) => store.remove(ref, platformClock.now()));
  }

  async upload(owner: string | null, files: readonly ManifestFile[]): Promise<Changed<ChangeReport>> {
    return await this.#change(owner, (store) => store.upload(files, platformClock.now()));
  }

  async replace(owner: string | null, files: readonly ManifestFile[]): Promise<Changed<ReplaceReport>> {
    return await this.#change(owner, (store) => store.replace(files, platformClock.now()));
  }

  async validate(owner: string | null, files: readonly ManifestFile[]): Promise<Reply<ChangeReport>> {
    return await this.#answer(owner, (store) => store.validate(files));
  }

  async exposed(owner: string | null): Promise<Reply<ExposedManifests>> {
    return await this.#answer(owner, (store) => exposedOf(store.data));
  }

  async graph(owner: string | null): Promise<Reply<{ graph: ManifestGraph; text: string }>> {
    return await this.#answer(owner, (store) => {
      const graph = graphOf(store.data);
      return { graph, text: renderGraph(graph) };
    });
  }

  async resolve(kind: 'agent' | 'workflow', name: string, scope?: string): Promise<Reply<string | null>> {
    return await replyOf(async () => {
      const store = await this.#store();
      const found = kind === 'agent' ? store.agent(name, scope) : store.workflow(name, scope);
      return found === null ? null : toPinned(found);
    });
  }

  async workflows(): Promise<WorkflowDefinition[]> {
    return [...(await this.#store()).data.workflows];
  }
}
