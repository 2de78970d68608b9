/** The routes of the Worker with a catalogue, and with real sessions behind them. A request starts at most one session. */
import { bundled } from '../support/bundled.ts';
import type { ListedManifest } from '../../src/domain/catalog.ts';
import type { ResolvedWorkflow } from '../../src/domain/manifests/resolved.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import type { ManifestHost } from '../../src/http/manifest-host.ts';
import { SESSION_RECORD } from '../journal/journal-kit.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { checkedFetch } from '../support/response-check.ts';
import { createSessionApp, sessionRoutes } from '../../src/http/session-app.ts';
import { sessionKit } from '../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../support/session-kit.ts';
import { edgeApp, noWorkflows } from './edge-app.ts';

/** A manifest of the catalogue: the calculator, as if it had been uploaded. */
const TOOL: ListedManifest = {
  kind: 'tool',
  name: 'calculator',
  version: '1.0',
  revision: 1,
  summary: 'calculates',
  tags: [],
  common: false,
  updatedAt: 5,
};
const AGENT: ListedManifest = { ...TOOL, kind: 'agent', name: 'assistant', updatedAt: null, revision: null };
const REPORT = { manifests: [TOOL], problems: [], warnings: [], skipped: [] };
const STORED = { definition: {}, source: 'kind: Tool\n', file: 'tools/calculator.yaml', versions: [] };

const manifests: ManifestHost = {
  list: async (_owner, kind) => [AGENT, TOOL].filter((one) => kind === null || one.kind === kind),
  get: async (_owner, ref) => ({ ...TOOL, ...ref, ...STORED }),
  put: async () => REPORT,
  remove: async () => undefined,
  upload: async () => REPORT,
  replace: async () => ({ ...REPORT, removed: [] }),
  validate: async () => REPORT,
  exposed: async () => ({ agents: [], tools: [], workflows: [] }),
  graph: async () => ({
    graph: {
      nodes: [AGENT, TOOL].map(({ kind, name, version }) => ({ id: `${kind}/${name}`, kind, name, version })),
      edges: [
        { from: 'agent/assistant', to: 'tool/calculator', how: 'import' },
        { from: 'agent/assistant', to: 'relic/notes', how: 'feed' },
        { from: 'agent/assistant', to: 'tool/system_status', how: 'feed' },
        { from: 'workflow/daily', to: 'tool/system_status', how: 'import' },
        { from: 'agent/system_monitor', to: 'tool/system_status', how: 'import' },
      ],
    },
    text: '',
  }),
};

/** A workflow without steps, whose output is its input. */
const WORKFLOW: ResolvedWorkflow = {
  tools: new Map(),
  relics: new Map(),
  workflows: new Map(),
  agents: new Map(),
  knownNames: { tool: [], agent: [], relic: [], workflow: [] },
  workflow: {
    kind: 'Workflow',
    name: 'daily',
    version: '1.0',
    summary: '',
    description: '',
    tags: [],
    metadata: {},
    trigger: { type: 'manual' },
    inputs: { type: 'object', properties: { n: { type: 'number' } } },
    imports: { tools: [], agents: [], relics: [], workflows: [] },
    steps: [],
    outputs: { same: 'trigger.n' },
    failFast: true,
    maxParallelSteps: 5,
  },
};

export interface EdgeSystem {
  ask(method: string, path: string, body?: unknown): Promise<Response>;
}

export function edgeSystem(): EdgeSystem {
  const kits: SessionKit[] = [];
  const create = async (record: SessionRecord, more: KitOptions): Promise<void> => {
    kits.push(await sessionKit({ kind: record.kind, ...more }));
  };
  const app = edgeApp({
    newSessionId: async () => SESSION_RECORD.session_id,
    agent: async (name) => bundled.agent(name),
    manifests,
    createSession: async (record, variables) => await create(record, { variables }),
    openSession: async (record, variables) => {
      await create(record, { variables });
      return record;
    },
    forward: async (_id, path, request) => {
      const session = (kits.at(-1) ?? (await sessionKit({}))).session;
      const surface = createSessionApp({
        session,
        clock: new VirtualClock(),
        destroy: async () => undefined,
        log: () => undefined,
      });
      return await surface.fetch(new Request(`http://session${path}`, request));
    },
    workflows: {
      ...noWorkflows,
      newSessionId: async () => SESSION_RECORD.session_id,
      find: async (name) => (name === 'daily' ? WORKFLOW : null),
      create: async (record) => await create(record, { workflow: WORKFLOW }),
    },
    executions: async () => ({ entries: [], next: null }),
    status: async () => ({ executors: [], model: 'm', runner: null }),
  });
  const inSession = sessionRoutes.routes.map((route) => {
    const path = `/agent/session/:id${route.path === '/' ? '' : route.path}`;
    return { ...route, path };
  });
  const routes = [...app.routes, ...inSession];
  const fetch = checkedFetch({ fetch: (request) => app.fetch(request), routes });
  return {
    // without a content type, as `curl -d` sends it
    ask: async (method, path, body) => {
      const init = { method, body: body === undefined ? null : JSON.stringify(body) };
      return await fetch(new Request(`http://localhost${path}`, init));
    },
  };
}
