/** The manifests of this repository, as its Worker bundles them. */
import { createCatalog } from '../../src/catalog/catalog.ts';
import type { Catalog } from '../../src/catalog/catalog.ts';
import project from '../../src/project.generated.ts';

export const bundled: Catalog = createCatalog(project.catalog, () => true);
