/**
 * The client that the referee (`@modelcontextprotocol/conformance client`) judges: ours, with all that a session uses. The
 * referee starts it once for each scenario, with the URL of its server, and names the scenario in the environment.
 */
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import { mcpKit } from '../kit.ts';

const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
const url = process.argv.at(-1) ?? '';

interface Context {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: JsonObject }[];
}

// On a busy machine a step may take long.
Object.assign(limits, { mcpListWaitMs: 60_000, mcpConnectMs: 60_000 });
await play();
// Not when its idle connections end, which is later.
process.exit(0);

async function play(): Promise<void> {
  const kit = mcpKit(url);
  const { tools, problems } = await kit.define();
  if (problems.length > 0) console.error(problems.join('\n'));
  const byName = new Map(tools.map((tool) => [tool.name, tool]));

  /** Calls a tool; a person accepts each question. `meanwhile` happens between question and answer. */
  const call = async (
    tool: ToolDefinition,
    parameters: JsonObject,
    meanwhile = async (): Promise<void> => {},
  ): Promise<void> => {
    const key = `run:${tool.name}`;
    let outcome: ActionOutcome = await kit.callDefined(tool, parameters, { key });
    while (!outcome.ok && outcome.question !== undefined) {
      await meanwhile();
      const { schema, state } = outcome.question;
      outcome = await kit.callDefined(tool, parameters, { key, answer: { state, content: contentFor(schema) } });
    }
    console.error(tool.name, JSON.stringify(outcome));
  };

  if (scenario === 'json-schema-2020-12-preservation') {
    const [focal, echo] = ['json_schema_2020_12_tool', 'json_schema_echo'].map((name) => byName.get(name));
    if (focal?.parameters != null && echo !== undefined) await call(echo, { schema: focal.parameters });
    return;
  }
  const { toolCalls } = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Context;
  const calls =
    toolCalls ?? tools.map(({ name }) => ({ name, arguments: scenario === 'tools_call' ? { a: 2, b: 3 } : {} }));
  const unrelated = byName.get('test_mrtr_unrelated');
  for (const { name, arguments: parameters } of calls) {
    const tool = byName.get(name);
    if (tool === undefined) continue;
    await call(tool, parameters, async () => {
      if (unrelated !== undefined) await call(unrelated, {});
    });
  }
}

/** What a person enters: a yes for a question, and nothing where a default is offered. */
function contentFor(schema: JsonObject | null): JsonObject {
  const { properties = {} } = (schema ?? {}) as { readonly properties?: Readonly<Record<string, JsonObject>> };
  const empty = Object.entries(properties).filter(([, spec]) => spec['default'] === undefined);
  return Object.fromEntries(empty.map(([name, { type }]) => [name, type === 'boolean' ? true : 'yes']));
}
