/** The tables of requests in docs/migration.md are true: each request is made. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { SESSION_RECORD } from '../journal/journal-kit.ts';
import { edgeSystem } from './edge-system.ts';

const page = readFileSync(new URL('../../docs/migration.md', import.meta.url), 'utf8');
const section = page.slice(page.indexOf('\n## HTTP\n'), page.indexOf('\n### Events\n'));
const rows = section.split('\n').filter((line) => line.startsWith('| `'));
const requests = rows.flatMap((row) => {
  const [, first = '', served = ''] = row.split(/ ?\| ?/);
  return [...first.matchAll(/`([A-Z]+) (\/[^`]*)`/g)].map(
    ([, method = '', path = '']) => [`${method} ${path}`, served, method, path] as const,
  );
});
const having = (answer: string) => requests.filter(([, served]) => served === answer);

const PROTOCOL = { protocol_text: '<response final="true">hi</response>', context: {}, stream: false };
/** What the original's documents send. */
const BODIES: Readonly<Record<string, unknown>> = {
  'POST /agent/{name}/session': { user_id: 'user_123', initial_state: {}, metadata: { source: 'cli' } },
  'POST /agent/session/{id}/message': { content: 'What can you do?', metadata: {}, stream: false },
  'POST /execute/direct': { ...PROTOCOL },
  'POST /execute/streaming_protocol': { ...PROTOCOL, session_id: 'session_abc' },
  'POST /executions/{id}/cancel': {},
  'POST /manifests/validate': { files: { 'tools/calculator.yaml': 'kind: Tool\n' } },
  'PUT /manifests/{kind}/{name}': 'kind: Tool\n',
  'POST /v1/chat/completions': { model: 'assistant', messages: [{ role: 'user', content: 'hi' }] },
};

function filled(path: string): string {
  const name = path.includes('/manifests/') ? 'calculator' : 'assistant';
  return path
    .replace('{kind}', 'tool')
    .replace('{name}', name)
    .replace('{id}', SESSION_RECORD.session_id)
    .replaceAll(/\{\w+\}/g, 'x');
}

test('[H1] the page has every table', () => {
  expect([...section.matchAll(/^\| request \| served \| /gm)].length).toBe([...section.matchAll(/^### /gm)].length);
  expect(requests.length).toBeGreaterThan(120);
  expect(new Set(requests.map(([, served]) => served))).toEqual(new Set(['yes', 'no']));
  // A request is either served or not.
  const served = new Set(having('yes').map(([request]) => request));
  expect(having('no').filter(([request]) => served.has(request))).toEqual([]);
});

describe('[H1] is served', () => {
  test.each(having('yes'))('%s', async (request, _served, method, path) => {
    if (method === 'POST' || method === 'PUT') expect(BODIES).toHaveProperty([request]);
    const { ask } = edgeSystem();
    if (request.includes('executions/{id}')) await ask('POST', '/execute/direct', PROTOCOL);
    const response = await ask(method, filled(path), BODIES[request]);
    const text = await response.text();
    expect([response.status, text]).toEqual([expect.toSatisfy((status: number) => status < 300), text]);
    expect(response.headers.get('content-type') ?? '').not.toContain('problem');
  });
});

describe('[H4] is not served, with a problem document', () => {
  test.each(having('no'))('%s', async (_request, _served, method, path) => {
    const response = await edgeSystem().ask(method, filled(path), method === 'GET' ? undefined : {});
    expect(response.headers.get('content-type')).toContain('application/problem+json');
    expect([response.status, await response.json()]).toMatchObject(
      response.status === 405
        ? [405, { code: 'method_not_allowed' }]
        : [404, { code: 'not_found', detail: expect.stringContaining('/openapi.json') as string }],
    );
  });
});
