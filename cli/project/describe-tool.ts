/** Describes the tool that a loaded module exports. Runs next to the module: in a thread of Node, or in an isolate. */
import { parsedIssue, schemaOf } from '../../src/code-tools/define-tool.ts';
import type { CodeTool } from '../../src/code-tools/define-tool.ts';
import type { DescribedTool } from '../../src/domain/code-tool.ts';
import { messageOf } from '../../src/domain/errors.ts';

/** How every issue of a module begins that cannot be loaded. */
export const UNLOADED = 'cannot be loaded';

/**
 * @param file of the tool, relative to the project
 * @param load loads its module
 * @returns the tool, or what is wrong with the module
 */
export async function describeTool(file: string, load: () => Promise<unknown>): Promise<DescribedTool | string> {
  try {
    const { default: tool } = (await load()) as { default?: unknown };
    if (!isTool(tool)) return 'must export a tool by default: export default defineTool({…})';
    const { name, description, effects, example } = tool;
    const parameters = schemaOf(tool);
    if (parameters['type'] !== 'object') return '"parameters" must be a zod object';
    const issue = parsedIssue(tool);
    if (issue !== null) return issue;
    const shown = example === undefined ? {} : { example };
    // a schema or an example may have members that cannot be sent to another thread
    return JSON.parse(JSON.stringify({ file, name, description, effects, parameters, ...shown })) as DescribedTool;
  } catch (fault) {
    return `${UNLOADED}: ${messageOf(fault)}`;
  }
}

function isTool(value: unknown): value is CodeTool {
  return typeof value === 'object' && value !== null && 'run' in value && 'parameters' in value && 'name' in value;
}
