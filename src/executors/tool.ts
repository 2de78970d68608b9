/** `type="tool"`: runs a tool according to its manifest (M3). Parameters are validated before. */
import type { ActionOutcome } from '../domain/action.ts';
import { isJsonObject } from '../domain/json.ts';
import type { JsonObject } from '../domain/json.ts';
import type { BuiltinName } from '../domain/manifests/tool.ts';
import type { RunnerNeeds, ScriptLaunch } from '../domain/manifests/program.ts';
import { calculator } from './builtin/calculator.ts';
import { collect, refuse, valueOf } from './builtin/collect.ts';
import { echo } from './builtin/echo.ts';
import { jsonQuery } from './builtin/json-query.ts';
import { webExtract } from './builtin/web-extract.ts';
import { webFetch } from './builtin/web-fetch.ts';
import type { ActionCall, ActionContext, Executor } from './executor.ts';
import { failure } from '../domain/failure.ts';
import { quote } from './failure.ts';
import { callEndpoint } from './outbound/http-tool.ts';
import { callCode } from './code.ts';
import { callMcp } from './mcp/tool.ts';
import { failureReportOf } from './runner/failure-report.ts';
import { launchedScript } from './runner/launched-script.ts';
import { sandboxHint } from './runner/sandbox-hint.ts';
import { recoverJob, runJob } from './runner/job.ts';

const BUILTINS: Readonly<Record<BuiltinName, Executor>> = {
  collect,
  value: valueOf,
  refuse,
  echo,
  calculator,
  web_fetch: webFetch,
  web_extract: webExtract,
  json_query: jsonQuery,
};

export const toolExecutor: Executor = {
  async execute(call, context) {
    const { tool, parameters } = call;
    if (tool === null)
      return failure('unknown_name', `No tool is called "${call.action.name}"`, { beforeDispatch: true });
    const { implementation } = tool;
    switch (implementation.type) {
      case 'builtin':
        return await BUILTINS[implementation.entrypoint].execute(call, context);
      case 'script':
        return await runTool(call, context, {
          code: launchedScript(implementation.runtime, implementation.source, implementation.launch),
          ...textArgument(implementation.launch, parameters),
          runtime: implementation.runtime,
          memoryMb: implementation.memoryMb,
          cpus: implementation.cpus,
          ...needsOf(implementation),
        });
      case 'container':
        return await runTool(call, context, {
          code: '',
          runtime: null,
          ...(implementation.image === null ? {} : { image: implementation.image }),
          ...(implementation.build === null ? {} : { build: implementation.build }),
          memoryMb: implementation.memoryMb,
          cpus: implementation.cpus,
          ...needsOf(implementation),
        });
      case 'client':
        // Feeds and other internal calls have no client.
        return failure(
          'client_tool_unavailable',
          `The tool "${tool.name}" is executed by the client, so only an action of a message or a program can call it`,
          { beforeDispatch: true },
        );
      case 'code':
        return await callCode(implementation, call, context);
      case 'mcp':
        return await callMcp(implementation, call, context);
      case 'http':
        return await callEndpoint(implementation, call, context);
      default:
        return unsupported(tool.name, implementation);
    }
  },
  async recover(call, context) {
    const type = call.tool?.implementation.type;
    if (type === 'code' && context.isSameHost !== true)
      await context.codeTools?.lost(call.tool?.name ?? call.action.name);
    if (type !== 'script' && type !== 'container') return null;
    const outcome = await recoverJob(call, context);
    return outcome === null ? null : checkReported(outcome, call);
  },
  withdraw({ runtimeKey, tool }, { mcp }) {
    if (tool?.implementation.type === 'mcp') mcp?.withdraw(runtimeKey);
  },
};

/** Other members of the report may explain it. */
function withoutReason(output: unknown): string {
  return isJsonObject(output) && Object.keys(output).length > 1 ? quote(output) : 'no reason given';
}

/** A tool may take one parameter as text in its first argument, instead of JSON. */
function textArgument(launch: ScriptLaunch | undefined, parameters: JsonObject): { readonly args?: readonly string[] } {
  if (typeof launch?.argument !== 'object') return {};
  const value = parameters[launch.argument.parameter] ?? '';
  return { args: [typeof value === 'string' ? value : JSON.stringify(value)] };
}

/** A manifest stored by another version may have a type that this one does not run. */
function unsupported(name: string, implementation: never): ActionOutcome {
  const { type } = implementation as { readonly type: string };
  return failure(
    'unsupported_implementation',
    `The tool "${name}" is of type ${type}, which this runtime does not support (supported: builtin, code, script, container, http, mcp, client)`,
    { beforeDispatch: true },
  );
}

function needsOf({ sandbox, labels }: RunnerNeeds): RunnerNeeds {
  return { ...(sandbox === undefined ? {} : { sandbox }), ...(labels === undefined ? {} : { labels }) };
}

/** Runs a tool that is a program (R3), either a script or an image. */
async function runTool(
  call: ActionCall,
  context: ActionContext,
  program: Omit<Parameters<typeof runJob>[2], 'kind' | 'inputs'>,
): Promise<ActionOutcome> {
  const outcome = await runJob(call, context, { ...program, kind: 'tool', inputs: call.parameters });
  return checkReported(outcome, call);
}

function checkReported(outcome: ActionOutcome, { action, tool }: ActionCall): ActionOutcome {
  const checked = outcome.ok ? (reportedFailure(outcome.output, action.name) ?? outcome) : outcome;
  if (checked.ok || tool?.implementation.type !== 'script') return checked;
  const { error } = checked;
  if (error.code !== 'tool_failed' && error.code !== 'nonzero_exit') return checked;
  return { ...checked, error: { ...error, message: `${error.message}${sandboxHint(error.message)}` } };
}

/**
 * A program that exits normally may still report a failure: `{"success": false, …}` or `{"status": "error", …}` (R3).
 */
function reportedFailure(output: unknown, name: string): ActionOutcome | null {
  const report = failureReportOf(output);
  if (report === null) return null;
  return failure('tool_failed', `The tool "${name}" failed: ${report.reason ?? withoutReason(output)}`, {
    retryable: report.retryable === true,
  });
}
