/** Relics after validation. */
import type { Effects } from '../action-types.ts';
import type { JsonObject } from '../json.ts';
import type { ManifestBase } from './base.ts';
import type { ImageBuild } from './program.ts';

/** One operation of a relic. */
export interface RelicEndpoint {
  readonly name: string;
  readonly summary: string;
  /** JSON Schema of the parameters object. */
  readonly parameters: JsonObject;
  readonly returns: JsonObject | null;
  readonly effects: Effects;
  readonly timeoutMs: number | null;
  /** The request to a container's service; ignored by edge relics. */
  readonly http: { readonly method: string; readonly path: string };
}

export type RelicImplementation =
  /** Backed by a Durable Object; needs no runner (R6). */
  | {
      readonly type: 'edge';
      readonly store: 'kv' | 'log' | 'sql';
      /** Default lifetime of an entry; null means unlimited. */
      readonly ttlMs: number | null;
      readonly quotaBytes: number;
      /** For `sql`: statements that run once, when the store is created. */
      readonly schema: readonly string[];
    }
  /** A service on the runner (R5). */
  | {
      readonly type: 'container';
      /** An image by name, or null if it is built from `build`. */
      readonly image: string | null;
      readonly build: ImageBuild | null;
      readonly command: readonly string[] | null;
      readonly port: number;
      readonly health: { readonly path: string; readonly intervalMs: number; readonly startMs: number };
      readonly memoryMb: number | null;
      readonly cpus: number | null;
      /** Environment variables of the service. */
      readonly environment?: Readonly<Record<string, string>>;
      /** Directory of the state in the container. Default: the runner's. */
      readonly state?: string;
      /** Labels that the runner must have (R7). */
      readonly labels?: readonly string[];
    };

/** A service whose state outlives a call: a store, a database, an index (R5, R6). */
export interface RelicDefinition extends ManifestBase {
  readonly kind: 'Relic';
  readonly implementation: RelicImplementation;
  /** Its owner: each session has its own, or all sessions of the namespace share one. */
  readonly scope: 'session' | 'shared';
  /** Whether its state survives a stop. */
  readonly persistent: boolean;
  /** Stopped after this time without a call. */
  readonly idleMs: number;
  readonly endpoints: Readonly<Record<string, RelicEndpoint>>;
}
