/**
 * The project that this Worker serves: manifests and code tools, bundled at build time. Object classes get no arguments
 * from the platform, so the Worker's entry registers the project once, while its modules load.
 */
import { createCatalog } from '../catalog/catalog.ts';
import type { Catalog, CatalogData } from '../catalog/catalog.ts';
import type { CodeTool } from '../code-tools/define-tool.ts';

/** What `cortex build` writes to `src/project.generated.ts`. */
export interface Project {
  /** Hash of everything below: changes with every manifest and every code tool. */
  readonly version: string;
  /** The validated manifests, as plain data. */
  readonly catalog: CatalogData;
  /** The sources of the manifests by kind and name (`agent/assistant`). */
  readonly sources: Readonly<Record<string, string>>;
  /** The code tools by name. */
  readonly tools: Readonly<Record<string, CodeTool>>;
}

interface Served extends Project {
  /** The bundled manifests (M4): shared by all tenants, read-only. */
  readonly bundled: Catalog;
}

let served: Served | null = null;

/** @throws Error if the Worker serves another project already */
export function serveProject(project: Project): void {
  if (served !== null && served.version !== project.version) throw new Error('a Worker serves one project');
  served = { ...project, bundled: createCatalog(project.catalog, () => true) };
}

/** @throws Error if the Worker's entry never called `createWorker` */
export function servedProject(): Served {
  if (served !== null) return served;
  throw new Error('no project: the entry of the Worker must call createWorker(project)');
}

/** The bundled manifests of the project. */
export function bundled(): Catalog {
  return servedProject().bundled;
}
