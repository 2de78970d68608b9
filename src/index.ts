/**
 * The package `cortex-edge` in a Worker: its handler, its object classes, and the definition of code tools.
 *
 * ```ts
 * import { createWorker } from 'cortex-edge';
 * import project from './project.generated.ts';
 *
 * export default createWorker(project);
 * export { SessionObject, … } from 'cortex-edge';
 * ```
 */
import { edge } from './durable/edge.ts';
import type { Env } from './durable/env.ts';
import { serveProject } from './durable/project.ts';
import type { Project } from './durable/project.ts';

export { defineTool, ToolError } from './code-tools/index.ts';
export { RunnerContainer } from './durable/runner-container.ts';
export { CatalogObject } from './durable/objects/catalog-object.ts';
export { CodeToolHost } from './durable/objects/code-tool-host.ts';
export { DirectoryObject } from './durable/objects/directory-object.ts';
export { OutboundHost } from './durable/objects/outbound-host.ts';
export { RelicObject } from './durable/objects/relic-object.ts';
export { ScheduleObject } from './durable/objects/schedule-object.ts';
export { SharedFeedObject } from './durable/objects/shared-feed-object.ts';
export { SessionObject } from './durable/objects/session-object.ts';
export { StatusObject } from './durable/objects/status-object.ts';

export type {
  CodeTool,
  ToolBindings,
  ToolContext,
  ToolOptions,
  ToolProgress,
  ToolRequestInit,
} from './code-tools/index.ts';
export type { Effects } from './domain/action-types.ts';
export type { AiBinding } from './llm/providers/workers-ai.ts';
export type { SettingName, WorkerSettings } from './settings/setting-table.ts';
export type { Variables } from './settings/settings.ts';
export type { Env, Project };

/**
 * The Worker's handler, which serves this project.
 *
 * @param project the default export of `src/project.generated.ts`, which `cortex build` writes
 */
export function createWorker(project: Project): ExportedHandler<Env> {
  serveProject(project);
  return edge;
}
