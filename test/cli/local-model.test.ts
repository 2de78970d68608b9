import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { findLocalModel } from '../../cli/system/local-model.ts';

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

async function serve(answers: Record<string, unknown>): Promise<string> {
  const server = createServer(({ url = '' }, response) => {
    const answer = answers[url];
    if (answer === 'silence') return;
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const NOBODY = 'http://127.0.0.1:1';

test('an Ollama server with a model is found, with the first model of its list', async () => {
  const ollama = await serve({ '/api/tags': { models: [{ name: 'qwen2.5:14b' }, { name: 'other' }] } });
  expect(await findLocalModel(null, { ollama, llamaCpp: NOBODY })).toEqual({
    server: 'Ollama',
    vars: { LLM_PROVIDER: 'ollama', LLM_BASE_URL: `${ollama}/v1`, LLM_MODEL: 'qwen2.5:14b' },
  });
});

test('an Ollama server without the configured model is ignored', async () => {
  const ollama = await serve({ '/api/tags': { models: [{ name: 'small:latest' }] } });
  expect((await findLocalModel('small', { ollama, llamaCpp: NOBODY }))?.vars['LLM_MODEL']).toBe('small:latest');
  expect(await findLocalModel('large', { ollama, llamaCpp: NOBODY })).toBeNull();
});

test('a llama.cpp server is identified by its owned_by field', async () => {
  const llamaCpp = await serve({ '/v1/models': { data: [{ id: '/models/tiny.gguf', owned_by: 'llamacpp' }] } });
  expect(await findLocalModel(null, { ollama: NOBODY, llamaCpp })).toEqual({
    server: 'llama.cpp server',
    vars: { LLM_PROVIDER: 'llama.cpp', LLM_BASE_URL: `${llamaCpp}/v1`, LLM_MODEL: 'tiny.gguf' },
  });
});

test.each([
  ['nobody', {}],
  ['an Ollama without models', { '/api/tags': { models: [] } }],
  ['another server', { '/v1/models': { data: [{ id: 'x', owned_by: 'somebody' }] } }],
  ['a web page', { '/api/tags': '<html>', '/v1/models': '<html>' }],
  ['a server that does not answer', { '/api/tags': 'silence', '/v1/models': 'silence' }],
])('%s is ignored', async (_, answers) => {
  const url = await serve(answers);
  expect(await findLocalModel(null, { ollama: url, llamaCpp: url })).toBeNull();
});
