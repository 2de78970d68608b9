/** Which endpoint gets the key. */
import { describe, expect, test } from 'vitest';
import { endpointOf } from '../../../cli/fluency/run/endpoint.ts';
import { against } from './command-kit.ts';
import { perfect } from './models.ts';

describe('[O4] the key', () => {
  const args = ['--tasks', 'two-stations', '--forms', 'full'];

  test('is that of LLM_API_KEY, and never printed', async () => {
    const { keys, out, err } = await against(perfect, args, { environment: { LLM_API_KEY: 'sk-1234567' } });
    expect(new Set(keys)).toEqual(new Set(['Bearer sk-1234567']));
    expect(out + err).not.toContain('sk-1234567');
  });

  test('is not sent to another endpoint than LLM_BASE_URL', async () => {
    const environment = { LLM_API_KEY: 'sk-1234567', LLM_BASE_URL: 'https://api.example.com/v1' };
    const { keys, err } = await against(perfect, args, { environment });
    expect(keys.filter((key) => String(key).includes('sk-1234567'))).toEqual([]);
    expect(err).toContain('LLM_API_KEY is not sent, because it belongs to LLM_BASE_URL');
  });

  test.each<[string, Record<string, string>, Record<string, string>, string | null]>([
    ['the address of the preset', { LLM_PROVIDER: 'OpenAI' }, {}, 'sk-1234567'],
    ['the same address', { LLM_PROVIDER: 'openai' }, { 'base-url': 'https://api.openai.com/v1/' }, 'sk-1234567'],
    ['the address of another preset', { LLM_PROVIDER: 'openai' }, { provider: 'groq' }, null],
    ['a preset without an address', { LLM_PROVIDER: 'workers-ai' }, { 'base-url': 'https://x.example/v1' }, null],
    [
      'LLM_BASE_URL, which takes precedence',
      { LLM_PROVIDER: 'openai', LLM_BASE_URL: 'https://x.example/v1' },
      { 'base-url': 'https://api.openai.com/v1' },
      null,
    ],
    ['an endpoint, and no variable names the owner', {}, { 'base-url': 'https://x.example/v1' }, 'sk-1234567'],
  ])('for %s', (_, environment, values, key) => {
    const call = { values: { model: 'm', ...values }, environment: { LLM_API_KEY: 'sk-1234567', ...environment } };
    const told: string[] = [];
    expect(endpointOf({ ...call, tell: (line) => void told.push(line) }).config.apiKey).toBe(key);
    const owner = 'LLM_BASE_URL' in environment ? 'LLM_BASE_URL' : 'LLM_PROVIDER';
    expect(told.join()).toContain(key === null ? `LLM_API_KEY is not sent, because it belongs to ${owner}` : '');
  });

  test('is another one with --key-env', async () => {
    const environment = {
      LLM_API_KEY: 'sk-1234567',
      OTHER_KEY: 'sk-7654321',
      LLM_BASE_URL: 'https://api.example.com/v1',
    };
    const { keys } = await against(perfect, [...args, '--key-env', 'OTHER_KEY'], { environment });
    expect(new Set(keys)).toEqual(new Set(['Bearer sk-7654321']));
  });
});

test.each<[string, string, number]>([
  ['another machine', 'http://models.example/v1', 1],
  ['another machine, encrypted', 'https://models.example/v1', 0],
  ['this machine', 'http://127.0.0.1:8080/v1', 0],
])('[O4] a key for %s: a warning if it is sent in plain text', (_, url, warnings) => {
  const told: string[] = [];
  const values = { 'base-url': url, model: 'm' };
  endpointOf({ values, environment: { LLM_API_KEY: 'sk-1234567' }, tell: (line) => void told.push(line) });
  endpointOf({ values, environment: {}, tell: (line) => void told.push(line) });
  expect(told.filter((line) => line.includes('without encryption'))).toHaveLength(warnings);
});
