/** What files in `tools/` import from `cortex-edge`, without the rest of the Worker. */
export { defineTool, ToolError } from './define-tool.ts';
export type { CodeTool, ToolBindings, ToolContext, ToolOptions, ToolProgress, ToolRequestInit } from './define-tool.ts';
