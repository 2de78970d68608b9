/** What concerns the whole system: each method against the routes of the Worker, whose answers are declared (K3, U4, U5). */
import { beforeEach, describe, expect, test } from 'vitest';
import { bundled } from '../support/bundled.ts';
import { Client } from '../../src/client/index.ts';
import type { ClientOptions } from '../../src/client/index.ts';
import type { ListedManifest } from '../../src/domain/catalog.ts';
import type { WorkflowDefinition } from '../../src/domain/manifests/workflow.ts';
import type { ManifestHost } from '../../src/http/manifest-host.ts';
import { Tokens } from '../../src/http/tokens.ts';
import { edgeApp, noManifests, noWorkflows } from '../http/edge-app.ts';
import { SESSION_ID } from '../journal/journal-kit.ts';
import { checkedFetch, checkedKit } from '../support/response-check.ts';
import { sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { promptClock } from './client-kit.ts';

const TOOL: ListedManifest = {
  kind: 'tool',
  name: 'a b',
  version: '1.0.0',
  revision: 2,
  summary: 'a tool',
  tags: [],
  common: false,
  updatedAt: 5,
};
const ISSUE = { file: 'tools/u.yaml', line: 2, column: 3, field: 'name', message: 'is missing' };
const WORKFLOW: WorkflowDefinition = {
  kind: 'Workflow',
  name: 'by hand',
  version: '1.0',
  summary: 'Adds.',
  description: '',
  tags: [],
  metadata: {},
  trigger: { type: 'manual' },
  inputs: { type: 'object', properties: { n: { type: 'number' } } },
  imports: { tools: [], agents: [], relics: [], workflows: [] },
  steps: [],
  outputs: {},
  failFast: true,
  maxParallelSteps: 5,
};
const DEFINITIONS = { tools: new Map(), relics: new Map(), workflows: new Map(), agents: new Map() };
const NAMES = { tool: [], agent: [], relic: [], workflow: [] };

const RUN = `run_${'b'.repeat(32)}_1`;
const RUN_HEADERS = { 'x-session-id': SESSION_ID, 'x-run-id': RUN };
const ENDED = {
  seq: 9,
  type: 'agent_completed',
  run_id: RUN,
  iteration: 1,
  data: { response: 'x', iterations: 1 },
};
const WORKFLOW_EVENTS = `id: 9\ndata: ${JSON.stringify(ENDED)}\n\n`;

/** What reached the parts of the Worker. */
let asked: unknown[];
let kit: SessionKit;
let client: Client;
let requests: number;
let lose: boolean;

const catalogue: ManifestHost = {
  ...noManifests,
  list: async (_owner, kind) => (kind === 'agent' ? [{ ...TOOL, kind: 'agent' }] : [TOOL]),
  get: async (_owner, ref, wanted) => {
    asked.push([ref, wanted]);
    return { ...TOOL, definition: {}, source: 'kind: Tool\n', file: null, versions: [] };
  },
  validate: async (_owner, files) => {
    asked.push(files);
    return { manifests: [TOOL], problems: [ISSUE], warnings: [], skipped: [] };
  },
  graph: async () => ({
    graph: { nodes: [], edges: [{ from: 'agent/a', to: 'tool/b', how: 'import' }] },
    text: 'not this',
  }),
};

beforeEach(async () => {
  asked = [];
  requests = 0;
  lose = false;
  kit = await sessionKit({ script: ['<response final="true">Hello</response>'] });
  const session = checkedKit(kit);
  const app = edgeApp({
    newSessionId: async () => SESSION_ID,
    tokens: new Tokens(
      () => 's'.repeat(32),
      () => 0,
    ),
    agent: async (name) => bundled.agent(name),
    manifests: catalogue,
    createSession: async () => undefined,
    forward: async (_id, path, request) => {
      if (path !== '/-/workflow?format=compact') return await session(new Request(`http://session${path}`, request));
      asked.push(await request.json());
      return new Response(WORKFLOW_EVENTS, { headers: { 'content-type': 'text/event-stream', ...RUN_HEADERS } });
    },
    workflows: {
      ...noWorkflows,
      newSessionId: async () => SESSION_ID,
      list: async () => [WORKFLOW],
      find: async (name) => (name === WORKFLOW.name ? { ...DEFINITIONS, knownNames: NAMES, workflow: WORKFLOW } : null),
      create: async (record) => void asked.push(record.workflow),
      schedules: async (_owner, count) => [
        { workflow: 'nightly', cron: '0 3 * * *', timezone: 'UTC', inputs: {}, next: [1, 2, 3].slice(0, count) },
      ],
    },
    executions: async (_owner, page) => {
      asked.push(page);
      return { entries: [], next: null };
    },
    approvals: async (_owner, page) => {
      asked.push(page);
      return { approvals: [], next: 'apr_2' };
    },
    status: async () => ({
      executors: [{ type: 'docker', available: false, reason: 'no engine' }],
      model: 'demo',
      runner: { status: 'healthy' },
    }),
  });
  const checked = checkedFetch(app);
  // What the session answers is checked there.
  const isOfSession = (url: string): boolean => url.includes('/agent/session/') && !url.endsWith('/tokens');
  const fetch: ClientOptions['fetch'] = async (url, init) => {
    requests += 1;
    if (lose) throw new TypeError('fetch failed');
    return await (isOfSession(url) ? app.fetch : checked)(new Request(url, init));
  };
  client = new Client({ url: 'http://127.0.0.1:8787', fetch, clock: promptClock, random: () => 0 });
});

describe('[K3] the client reads', () => {
  test('the state of the system, and its action types', async () => {
    expect(await client.health()).toMatchObject({ status: 'healthy', model: 'demo', runner: { status: 'healthy' } });
    expect(await client.executors()).toEqual([{ type: 'docker', available: false, reason: 'no engine' }]);
  });

  test('agents, and a prompt with its tokens', async () => {
    expect(await client.agents()).toEqual([{ name: 'a b', summary: 'a tool' }]);
    expect(await client.prompt('assistant')).toMatchObject({
      agent: 'assistant',
      prompt: expect.stringContaining('You are assistant'),
      sections: expect.arrayContaining([{ title: 'How you act', tokens: expect.any(Number) }]),
    });
    await expect(client.prompt('a/../b')).rejects.toMatchObject({ code: 'unknown_agent' });
  });

  test('manifests, one of them in a version of its own, and what uses what', async () => {
    expect(await client.manifests()).toMatchObject([{ kind: 'tool', name: 'a b', revision: 2 }]);
    expect(await client.manifest('tool', 'a b', { version: '1.0.0' })).toMatchObject({ source: 'kind: Tool\n' });
    await client.manifest('tool', 'a b', { revision: 1 });
    expect(asked).toEqual([
      [{ kind: 'tool', name: 'a b' }, { version: '1.0.0' }],
      [{ kind: 'tool', name: 'a b' }, { revision: 1 }],
    ]);
    expect((await client.manifestGraph()).edges).toEqual([{ from: 'agent/a', to: 'tool/b', how: 'import' }]);
  });

  test('what is wrong with manifests that are not stored', async () => {
    const files = { 'tools/u.yaml': 'kind: Tool\n' };
    expect(await client.validateManifests(files)).toMatchObject({ valid: false, problems: [ISSUE] });
    expect(asked).toMatchObject([[{ path: 'tools/u.yaml', text: 'kind: Tool\n' }]]);
  });

  test('pages of executions and of approvals', async () => {
    expect(await client.executions({ status: 'failed', kind: 'chat', limit: 2, before: `5-${RUN}` })).toEqual({
      executions: [],
      next: null,
    });
    expect(await client.approvals({ after: `7-apr_${'c'.repeat(32)}`, limit: 3 })).toEqual({
      approvals: [],
      next: 'apr_2',
    });
    expect(asked).toMatchObject([
      { status: 'failed', kind: 'chat', limit: 2, before: { at: 5, id: RUN } },
      { limit: 3, after: { at: 7 } },
    ]);
  });

  test('workflows and their schedules', async () => {
    expect(await client.workflows()).toMatchObject([{ name: 'by hand', trigger: { type: 'manual' }, steps: [] }]);
    expect(await client.schedules({ count: 2 })).toMatchObject([{ workflow: 'nightly', next: [1, 2] }]);
  });
});

describe('[K3] protocol text', () => {
  const TEXT = '<action type="tool" mode="async" id="a">{"name":"echo","parameters":{"x":1}}</action>';

  test('is planned for an agent', async () => {
    const unknown = TEXT.replace('echo', 'nothing');
    expect(await client.plan(unknown)).toMatchObject({ waves: [['a']], warnings: [] });
    expect((await client.plan(unknown, { agent: 'assistant' })).warnings).toMatchObject([{ code: 'unknown_name' }]);
  });

  test('is run in a session of its own, whose run is read like that of a message', async () => {
    const run = await client.execute(TEXT, { agent: 'assistant' });
    expect(run.sessionId).toBe(SESSION_ID);
    expect(await run.result()).toMatchObject({ status: 'completed', actions: [{ id: 'a', status: 'completed' }] });
    await expect(client.execute(TEXT, { agent: 'nobody' })).rejects.toMatchObject({ code: 'unknown_agent' });
  });

  test('is not sent again when its answer is lost, because it may be running', async () => {
    lose = true;
    await expect(client.execute(TEXT)).rejects.toMatchObject({ code: 'connection_lost' });
    await expect(client.runWorkflow('by hand')).rejects.toMatchObject({ code: 'connection_lost' });
    expect(requests).toBe(2);
  });
});

test('[K3] a workflow is run with its inputs', async () => {
  await expect(client.runWorkflow('by hand', { n: 'x' })).rejects.toMatchObject({ status: 400 });
  await expect(client.runWorkflow('nothing')).rejects.toMatchObject({ code: 'unknown_workflow' });
  expect(asked).toEqual([]);
  const run = await client.runWorkflow('by hand', { n: 1 });
  expect(asked).toMatchObject(['by hand', { inputs: { n: 1 } }]);
  expect([run.sessionId, run.id, await run.text()]).toEqual([SESSION_ID, RUN, 'x']);
});

describe('[K3] of a session, the client reads', () => {
  test('its runs, and what a run has sent to the model', async () => {
    const session = client.session(SESSION_ID);
    const run = await session.send('Hi');
    await run.result();
    expect(await session.runs({ limit: 1 })).toMatchObject({
      runs: [{ run_id: run.id, status: 'completed' }],
      next: null,
    });
    const { generations } = await run.prompt();
    expect(generations[0]?.messages).toMatchObject([
      { role: 'system', content: expect.stringContaining('You are assistant') },
      { role: 'user', content: 'Hi' },
    ]);
  });

  test('its feeds and variables, and it creates tokens for it', async () => {
    const session = client.session(SESSION_ID);
    expect(await session.feeds()).toEqual([]);
    expect(await session.variables()).toEqual({});
    expect(await session.createToken({ scopes: ['view'], expiresIn: 60 })).toMatchObject({
      token: expect.any(String),
      scopes: ['view'],
      expires_at: 60_000,
    });
  });
});
