/** The types of the bindings in wrangler.toml, for `ctx.env`. */
import type { LocalVectors } from './local-vectors.ts';

declare module 'cortex-edge' {
  interface ToolBindings {
    readonly SHOP: D1Database;
    readonly REPORTS: R2Bucket;
    readonly EMAILS: Queue;
    readonly PRODUCTS: Pick<VectorizeIndex, 'query'> | Service<typeof LocalVectors>;
  }
}
