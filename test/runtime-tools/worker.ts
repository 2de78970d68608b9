/** The example project, with further tools that misbehave. */
import { createWorker, defineTool, ToolError } from 'cortex-edge';
import type { CodeTool } from 'cortex-edge';
import { z } from 'zod';
import project from '../../examples/code-tools/src/project.generated.ts';
import { schemaOf } from '../../src/code-tools/define-tool.ts';
import type { AgentDefinition } from '../../src/domain/manifests/agent.ts';
import type { ToolDefinition } from '../../src/domain/manifests/tool.ts';
import { TOOL_DEFAULTS } from '../../src/domain/tool-defaults.ts';

export * from 'cortex-edge';
export { LocalVectors } from '../../examples/code-tools/src/local-vectors.ts';

const nothing = z.object({});
const tool = (name: string, run: CodeTool['run']): CodeTool =>
  defineTool({ name, description: name, parameters: nothing, effects: 'idempotent', run });

/** Calls by tool, aborts that tools have seen, and whether somebody reads what they report. */
const seen = { calls: 0, aborts: [] as string[], isRead: false };

const TOOLS: readonly CodeTool[] = [
  tool('throws', () => {
    throw new Error('the disk is full');
  }),
  tool('says_why', () => {
    throw new ToolError('out of stock', { code: 'out_of_stock' });
  }),
  tool('busy_once', () => {
    seen.calls += 1;
    if (seen.calls === 1) throw new ToolError('busy', { code: 'busy', retryable: true });
    return { calls: seen.calls };
  }),
  tool('never_returns', async (_input, { signal }) => {
    signal.addEventListener('abort', () => seen.aborts.push(String((signal.reason as Error).message)));
    await new Promise(() => undefined);
  }),
  tool('what_aborts', () => ({ aborts: seen.aborts })),
  tool('returns_cycle', () => {
    const value: Record<string, unknown> = {};
    value['self'] = value;
    return value;
  }),
  tool('too_large', () => 'x'.repeat(9_000_000)),
  tool('returns_nothing', () => undefined),
  tool('returns_date', () => ({ at: new Date(0), missing: undefined })),
  tool('lists_bindings', (_input, { env, secrets }) => ({ env: Object.keys(env), secrets: Object.keys(secrets) })),
  tool('reaches_inside', async (_input, { fetch }) => (await fetch('http://127.0.0.1:1/')).status),
  tool('writes_too_much', (_input, { artifacts }) => {
    for (let n = 0; n < 17; n += 1) artifacts.write(`${n}.txt`, 'x');
  }),
  tool('has_reader', () => (seen.isRead = true)),
  tool('reports', async (_input, { progress }) => {
    // Live output is for those who read at the moment.
    while (!seen.isRead) await new Promise((resolve) => setTimeout(resolve, 5));
    progress('half way');
    progress({ percent: 80 });
    return 'done';
  }),
  defineTool({
    name: 'doubles',
    description: 'doubles',
    parameters: z.object({ n: z.coerce.number().max(10), word: z.string().trim().default('x') }),
    effects: 'pure',
    run: ({ n, word }) => ({ doubled: n * 2, word }),
  }),
  defineTool({
    name: 'shouts',
    description: 'shouts',
    parameters: z.object({
      word: z.string().transform((word) => `${word}!`),
      id: z.string().default(() => crypto.randomUUID()),
    }),
    effects: 'idempotent',
    run: (input, { attempt }) => {
      if (attempt === 1) throw new ToolError(JSON.stringify(input), { code: 'busy', retryable: true });
      return input;
    },
  }),
  defineTool({
    name: 'takes_date',
    description: 'takes_date',
    parameters: z.object({ at: z.string().transform((at) => new Date(at)) }),
    effects: 'pure',
    run: ({ at }) => at.getTime(),
  }),
  defineTool({
    name: 'even_only',
    description: 'even_only',
    parameters: z.object({ n: z.number().refine((n) => n % 2 === 0, 'must be even') }),
    effects: 'pure',
    run: ({ n }) => n,
  }),
];

const GRANTS: Readonly<Record<string, { bindings?: string[]; secrets?: string[] }>> = {
  lists_bindings: { bindings: ['SHOP'], secrets: ['TOOL_WEATHER_KEY'] },
  returns_nothing: { bindings: ['NO_SUCH_BINDING'] },
  returns_date: { secrets: ['TOOL_NOT_SET'] },
};

const definitions = TOOLS.map((one): ToolDefinition => ({
  ...TOOL_DEFAULTS,
  tags: [],
  examples: [],
  name: one.name,
  summary: one.description,
  parameters: schemaOf(one),
  effects: one.effects,
  implementation: { type: 'code', bindings: [], secrets: [], ...GRANTS[one.name] },
}));
const [clerk] = project.catalog.agents as readonly AgentDefinition[];
if (clerk === undefined) throw new Error('the example has no agent');
const names = [...clerk.imports.tools, ...TOOLS.map(({ name }) => name)];

export default createWorker({
  version: 'test',
  sources: project.sources,
  catalog: {
    ...project.catalog,
    tools: [...project.catalog.tools, ...definitions],
    agents: [...project.catalog.agents, { ...clerk, name: 'tester', imports: { ...clerk.imports, tools: names } }],
  },
  tools: { ...project.tools, ...Object.fromEntries(TOOLS.map((one) => [one.name, one])) },
});
