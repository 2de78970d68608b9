/**
 * The manifests of all histories: each has its own agent, named after it, and its own helper for children. The servers
 * know a history by the name of its model, or by a header of its tools.
 */
import { IDEMPOTENT_CONCURRENCY } from '../simulation/history.ts';
import type { History } from '../simulation/history.ts';
import { POLICIES } from '../simulation/world/policies.ts';
import { CLIENT_TOOL, CLIENT_TOOL_MS, clientToolOf } from './call-client.ts';

const HELPER = '_helper';
export const helperOf = (name: string): string => `${name}${HELPER}`;
/** The history of a model or of an agent. */
export const historyOfAgent = (agent: string): string => agent.replace(HELPER, '');

/** A model that sends nothing for this long has failed. */
export const SILENT_MODEL_MS = 3_000;
const TIMEOUTS = `timeouts: { first_token: ${SILENT_MODEL_MS}ms, between_tokens: ${SILENT_MODEL_MS}ms }`;
const TOOLS = ['pure', 'idempotent', 'unsafe', 'late'] as const;

const MORE: Readonly<Record<(typeof TOOLS)[number], string>> = {
  pure: 'effects: pure',
  idempotent: `effects: idempotent\nconcurrency: ${IDEMPOTENT_CONCURRENCY}`,
  unsafe: 'effects: unsafe',
  late: 'effects: unsafe\ndispatch: after_generation',
};

const FEED = `context_feeds:
  - { id: news, type: periodic, interval: 5s, cache_ttl: 1s, max_tokens: 100, source: { type: tool, name: pure, params: { token: feed, values: [] } }, on_error: use_cached }
`;

/** @param host of the tool server */
function toolManifest(name: (typeof TOOLS)[number], host: string): string {
  return `kind: Tool
version: "1.0"
name: ${name}
summary: Does what its history says.
implementation: { type: http, method: POST, url: "http://${host}/${name}", headers: { x-agent: "\${AGENT_NAME}", x-session: "\${SESSION_ID}" } }
${MORE[name]}
timeout: 20s
parameters:
  type: object
  required: [token]
  properties: { token: { type: string }, values: { type: array } }
`;
}

const CLIENT = `kind: Tool
version: "1.0"
name: ${CLIENT_TOOL}
summary: Does what its history says.
implementation: { type: client }
effects: unsafe
timeout: ${CLIENT_TOOL_MS}ms
parameters: { type: object }
`;

function agentManifest(name: string, more: string, dialect: 'auto' | 'protocol' = 'protocol'): string {
  return `kind: Agent
version: "1.0"
name: ${name}
summary: Carries out what it is told.
persona: You carry out what you are told.
cognitive_engine: { primary: { model: ${name} }, dialect: ${dialect}, ${TIMEOUTS} }
capabilities: [python]
${more}`;
}

/** A rule without a condition always applies. */
const POLICIES_TEXT = JSON.stringify(POLICIES, (_name, value: unknown) => value ?? undefined);

function withSettings(name: string, history: History): string {
  const { maxParallelActions, maxIterations, maxActions, modelCalls, seconds, failFast, supervised, policies, feed } =
    history.agent;
  const mode = supervised ? 'supervised' : 'autonomous';
  const clientTool = clientToolOf(history);
  const hasCalls = history.messages.some(({ generations }) => generations.some(({ calls }) => calls !== null));
  const tools = clientTool === 'declared' ? [...TOOLS, CLIENT_TOOL] : TOOLS;
  return agentManifest(
    name,
    `import: { tools: [${tools.join(', ')}], agents: [${helperOf(name)}] }
loop: { mode: ${mode}, max_iterations: ${maxIterations}, max_parallel_actions: ${maxParallelActions}, fail_fast: ${failFast} }
budgets: { seconds: ${seconds}, model_calls: ${modelCalls}, actions: ${maxActions} }
${clientTool === 'passed' ? 'client_tools: allow\n' : ''}${feed ? FEED : ''}${policies ? `policies: ${POLICIES_TEXT}\n` : ''}`,
    hasCalls ? 'auto' : 'protocol',
  );
}

/** Texts by path. @param histories by name */
export function manifestsOf(
  histories: ReadonlyMap<string, History>,
  toolHost: string,
): Readonly<Record<string, string>> {
  return Object.fromEntries([
    ...TOOLS.map((name) => [`tools/${name}.yaml`, toolManifest(name, toolHost)]),
    [`tools/${CLIENT_TOOL}.yaml`, CLIENT],
    ...[...histories].flatMap(([name, history]) => [
      [`agents/${name}.yaml`, withSettings(name, history)],
      [`agents/${helperOf(name)}.yaml`, agentManifest(helperOf(name), 'import: { tools: [unsafe] }\n')],
    ]),
  ]) as Record<string, string>;
}
