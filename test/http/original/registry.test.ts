/** The original's registry, and agent-lib-cpp's agents, as other names of routes of this system. */
import type { ExecutionsOf } from '../../../src/http/routes/executions.ts';
import { describe, expect, test } from 'vitest';
import { edgeSystem, TOOL } from './edge-system.ts';

describe('[M4] the registry', () => {
  const { json, ask } = edgeSystem();

  test('counts manifests', async () => {
    expect(await json('/registry/status')).toEqual({
      total_manifests: 2,
      by_type: { agents: 1, tools: 1, relics: 0, workflows: 0 },
      last_updated: 5,
    });
  });

  test('lists names and entries', async () => {
    expect(await json('/registry/tools')).toMatchObject({
      Tool: ['calculator'],
      manifests: [{ name: 'calculator', updated_at: 5 }],
    });
    expect(await json('/registry/relics')).toEqual({ Relic: [], manifests: [] });
  });

  test('has the same document as the catalogue', async () => {
    expect(await json('/registry/manifest/Tool/calculator')).toEqual(await json('/manifests/tool/calculator'));
    expect((await ask('GET', '/registry/manifest/Amulet/x')).status).toBe(404);
  });

  test('names what a manifest imports, not what it only has a feed from', async () => {
    expect(await json('/registry/dependencies/Agent/assistant')).toEqual({
      dependencies: { agents: [], tools: ['calculator'], relics: [], workflows: [] },
    });
    expect((await ask('GET', '/registry/dependencies/Agent/nobody')).status).toBe(404);
  });

  test('takes a file', async () => {
    const form = new FormData();
    form.append('file', new File(['kind: Tool\n'], 'tool.yml'));
    const response = await ask('POST', '/manifests/upload', form);
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { status: 'success', manifest_type: 'Tool', manifest_name: 'calculator', manifests: [{ name: 'calculator' }] },
    ]);
  });

  test('validates a text', async () => {
    expect(await json('/manifests/parse', { content: 'kind: Tool\n' })).toMatchObject({
      status: 'success',
      valid: true,
      manifest_type: 'Tool',
    });
  });

  test('reports a text and a file that do not load', async () => {
    const problem = { file: 'a.yaml', line: 1, column: 1, field: 'name', message: 'is missing' };
    const broken = async (): Promise<object> => ({ manifests: [], problems: [problem], warnings: [], skipped: [] });
    const manifests = { upload: broken, validate: broken } as never;
    const system = edgeSystem({}, { manifests });
    expect(await system.json('/manifests/parse', { content: 'kind: Tool\n' })).toMatchObject({
      status: 'error',
      valid: false,
      manifest_type: null,
      problems: [problem],
    });
    const refused = await system.ask('POST', '/manifests/upload', { files: { 'a.yaml': 'kind: Tool\n' } });
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'invalid_manifest' }]);
  });

  test('[H5] takes a file from admin keys only, and shows one namespace', async () => {
    const keys = [{ name: 'bob', role: 'run', key: 'k', namespace: 'n', owner: 'n' }] as const;
    const asked: (string | null)[] = [];
    const list = async (owner: string | null): Promise<[typeof TOOL]> => {
      asked.push(owner);
      return [TOOL];
    };
    const options = { auth: { keys, allowedOrigins: [] }, manifests: { list } as never };
    const keyed = edgeSystem({}, options);
    const headers = { authorization: 'Bearer k' };
    expect((await keyed.ask('POST', '/manifests/upload', { files: {} }, headers)).status).toBe(403);
    for (const path of ['/registry/status', '/registry/tools', '/api/v1/agents']) {
      expect((await keyed.ask('GET', path, undefined, headers)).status).toBe(200);
    }
    expect(asked).toEqual(['n', 'n', 'n']);
  });
});

describe('[H1] GET /executions', () => {
  test.each([
    ['entity_type=agent', 'chat'],
    ['entity_type=tool', 'execution'],
    ['entity_type=workflow', 'workflow'],
    ['kind=chat', 'chat'],
    ['limit=50', null],
  ])('%s lists the kind %s', async (query, kind) => {
    const asked: unknown[] = [];
    const executions = async (_owner: unknown, page: { readonly kind: unknown }): ReturnType<ExecutionsOf> => {
      asked.push(page.kind);
      return { entries: [], next: null };
    };
    const { ask } = edgeSystem({}, { executions });
    expect((await ask('GET', `/executions?${query}`)).status).toBe(200);
    expect((await ask('GET', '/executions?kind=chat&entity_type=agent')).status).toBe(400);
    expect(asked).toEqual([kind]);
  });
});

describe('[H1] agents of agent-lib-cpp', () => {
  const script = ['<response final="true">one</response>', '<response final="true">two</response>'];

  test('are listed by name', async () => {
    expect(await (await edgeSystem().ask('GET', '/api/v1/agents')).json()).toEqual(['assistant']);
  });

  test('answer a prompt, and continue its session', async () => {
    const { json, created } = edgeSystem({ script });
    const first = await json('/api/v1/agents/assistant/prompt', { prompt: 'hi' });
    expect(first).toMatchObject({ response: 'one', chunks: [{ type: 'content', data: 'one' }, { type: 'done' }] });
    const body = { prompt: 'again', session_id: first['session_id'] };
    expect(await json('/api/v1/agents/assistant/prompt', body)).toMatchObject({ response: 'two' });
    expect(created).toHaveLength(1);
  });

  test('stream their events', async () => {
    const response = await edgeSystem({ script }).ask('POST', '/api/v1/agents/assistant/stream', { prompt: 'hi' });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    expect(await response.text()).toMatch(/event: agent_completed\n[^]*"event_type":"agent_completed"/);
  });

  test('do not continue a session of another agent, nor one that does not exist', async () => {
    const { json, ask } = edgeSystem({ script });
    const { session_id } = await json('/api/v1/agents/assistant/prompt', { prompt: 'hi' });
    const other = await ask('POST', '/api/v1/agents/research_orchestrator/prompt', { prompt: 'hi', session_id });
    const none = await ask('POST', '/api/v1/agents/assistant/prompt', { prompt: 'hi', session_id: 'mine' });
    expect([other.status, none.status]).toEqual([404, 404]);
  });
});
