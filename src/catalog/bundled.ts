/** The bundled manifests (M4): shared by all tenants, read-only. */
import { bundledCatalog, bundledSources } from './bundled.generated.ts';
import { createCatalog } from './catalog.ts';
import type { Catalog } from './catalog.ts';

export { bundledSources };

export const bundled: Catalog = createCatalog(bundledCatalog, () => true);
