/** Calls a tool of an MCP server (E5). */
import type { ActionOutcome } from '../../domain/action.ts';
import { failure } from '../../domain/failure.ts';
import type { ToolImplementation } from '../../domain/manifests/tool.ts';
import type { ActionCall, ActionContext } from '../executor.ts';
import { failureOf } from '../failure.ts';

type McpImplementation = Extract<ToolImplementation, { type: 'mcp' }>;

export async function callMcp(
  { server, url, auth, bundled, tool: name, missingSecret }: McpImplementation,
  { action, tool, parameters, runtimeKey, timeoutMs, trace, answer }: ActionCall,
  { mcp, signal, progress }: Pick<ActionContext, 'mcp' | 'signal' | 'progress'>,
): Promise<ActionOutcome> {
  if (missingSecret !== undefined) {
    const message = `The MCP server "${server}" needs a secret that is not available: ${missingSecret}`;
    return failure('missing_secret', message, { beforeDispatch: true });
  }
  if (mcp == null) {
    const message = `The tool "${action.name}" is on the MCP server "${server}", which cannot be reached here`;
    return failure('not_available', message, { beforeDispatch: true });
  }
  try {
    return await mcp.call(
      {
        endpoint: { server, url, auth, bundled },
        tool: name,
        parameters,
        inputSchema: tool?.parameters ?? { type: 'object' },
        outputSchema: tool?.returns ?? null,
        key: runtimeKey,
        timeoutMs,
        ...(trace === undefined ? {} : { trace }),
        ...(answer === undefined ? {} : { answer }),
      },
      { signal, progress: (update) => progress({ stream: 'tool', ...update }) },
    );
  } catch (fault) {
    return failureOf(fault, signal, 'executor_fault');
  }
}
