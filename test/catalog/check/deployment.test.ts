import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import { agent, head, load, said, tool, workflow } from '../../support/manifests.ts';
import { deploymentOf } from '../../../src/settings/deployment.ts';
import type { Variables } from '../../../src/settings/settings.ts';

const http = (url: string, headers = '{}'): string =>
  tool('t', `implementation: {type: http, url: ${JSON.stringify(url)}, headers: ${headers}}`);
const RUNNER = { RUNNER_URLS: 'https://runner.example.com' };

/** The warnings of an upload by the key `owner`. */
function warningsOf(text: string, env: Variables, owners: readonly (string | null)[] = [null]): string[] {
  const loaded = load({ 't.yaml': text }, { bundled, deployment: deploymentOf(env, owners) });
  expect(loaded.problems).toEqual([]);
  return said(loaded);
}

describe('[X2] an address that this deployment does not reach is a warning that names ALLOW_HOSTS', () => {
  test.each([
    [
      'http://localhost:4000/t',
      'http://localhost:4000 names "localhost", a host of the local network',
      'ALLOW_HOSTS=localhost:4000',
    ],
    ['http://localhost/t', 'names "localhost", a host of the local network', 'ALLOW_HOSTS=localhost:80'],
    ['https://crm.internal/t', 'names "crm.internal", a host that is not public', 'ALLOW_HOSTS=crm.internal:443'],
    ['http://127.0.0.1:8080/', 'which is a loopback address', 'ALLOW_HOSTS=127.0.0.1:8080'],
    ['http://10.1.2.3/', 'which is a private address', 'ALLOW_HOSTS=10.1.2.3:80'],
    ['https://api.example.com:9000/', 'has the port 9000 (allowed: 80,', 'ALLOW_HOSTS=api.example.com:9000'],
    ['https://[::1]:8443/', 'which is a loopback address', 'ALLOW_HOSTS=[::1]:8443'],
    ['http://${HOST:-localhost}:4000/t', 'names "localhost"', 'ALLOW_HOSTS=localhost:4000'],
  ])('%s', (url, reason, setting) => {
    const [warning, ...others] = warningsOf(http(url), {});
    expect(others).toEqual([]);
    expect(warning).toContain('implementation.url: cannot be reached in this deployment');
    expect(warning).toContain(reason);
    expect(warning).toContain(`To allow it, set ${setting}`);
    // the setting of the warning is the remedy
    expect(warningsOf(http(url), { ALLOW_HOSTS: setting.replace('ALLOW_HOSTS=', '') })).toEqual([]);
  });

  test.each([
    'https://api.example.com/t',
    '${BASE}/t',
    'https://${HOST}/t',
    'https://a.example.com/?next=http://localhost',
  ])('%s has no warning', (url) => {
    expect(warningsOf(http(url), {})).toEqual([]);
  });

  test('with other allowed hosts, the warning does not show them', () => {
    const [warning] = warningsOf(http('http://localhost:4000/'), { ALLOW_HOSTS: 'secret.internal:80' });
    expect(warning).toContain('add localhost:4000 to ALLOW_HOSTS');
    expect(warning).not.toContain('secret.internal');
  });

  test('an agent: endpoints of models, and feeds that fetch a page', () => {
    const watcher = agent(
      'a',
      `import: {tools: [web_fetch]}
cognitive_engine:
  primary: {endpoint: "http://localhost:8000/v1", model: m}
  fallback: {endpoint: "http://10.0.0.5:8080/v1", model: m}
context_feeds: [{id: f, source: {type: tool, name: web_fetch, params: {url: "http://news.internal/"}}}]`,
    );
    expect(warningsOf(watcher, {})).toEqual([
      expect.stringMatching(/cognitive_engine\.primary\.endpoint: .*ALLOW_HOSTS=localhost:8000/),
      expect.stringMatching(/cognitive_engine\.fallback\.endpoint: .*ALLOW_HOSTS=10\.0\.0\.5:8080/),
      expect.stringMatching(/context_feeds\[0\]\.source\.params\.url: .*ALLOW_HOSTS=news\.internal:80/),
    ]);
    // the deployment's own endpoint needs no entry
    const own = warningsOf(watcher, { LLM_BASE_URL: 'http://localhost:8000/v1', ALLOW_HOSTS: 'news.internal' });
    expect(own).toEqual([expect.stringContaining('fallback.endpoint')]);
  });
});

test('[L3] a provider without a setting is a warning that names it', () => {
  const text = agent(
    'a',
    'cognitive_engine: {primary: {provider: ollama, model: m}, fallback: {provider: gemini, model: m}}',
  );
  expect(warningsOf(text, {})).toEqual([
    expect.stringMatching(/cognitive_engine\.primary\.provider: names Ollama .*set LLM_PROVIDER=ollama/),
    expect.stringMatching(/cognitive_engine\.fallback\.provider: names Google Gemini .*LLM_API_KEY/),
  ]);
  expect(warningsOf(text, { LLM_PROVIDER: 'ollama' })).toEqual([]);
});

describe('[X3] a secret that is not set is a warning that names the variable', () => {
  const text = http('https://api.example.com/', '{authorization: "Bearer ${TOOL_CRM}"}');
  const KEYS = 'ann:admin:0123456789abcdef-a,bob:admin:0123456789abcdef-b';

  test.each<[string, Variables, string | null, string | null]>([
    ['without keys', {}, null, "TOOL_CRM is not set (set TOOL_CRM in the Worker's environment)"],
    ['without keys, set', { TOOL_CRM: 'x' } as Variables, null, null],
    ['several keys', { API_KEYS: KEYS, TOOL_CRM: 'x' } as Variables, 'ann', 'set TOOL_ANN__CRM in'],
    ["another key's", { API_KEYS: KEYS, TOOL_BOB__CRM: 'x' } as Variables, 'ann', 'set TOOL_ANN__CRM in'],
    ['its own', { API_KEYS: KEYS, TOOL_ANN__CRM: 'x' } as Variables, 'ann', null],
  ])('%s', (_title, env, owner, message) => {
    expect(warningsOf(text, env, [owner])).toEqual(
      message === null ? [] : [expect.stringContaining(`implementation.headers.authorization: TOOL_CRM is not set`)],
    );
    if (message !== null) expect(warningsOf(text, env, [owner])[0]).toContain(message);
  });

  test('the key of a model, and the secret of a webhook', () => {
    const groq = agent('a', 'cognitive_engine: {primary: {provider: groq, model: m, api_key_secret: TOOL_GROQ}}');
    expect(warningsOf(groq, {})).toEqual([expect.stringContaining('api_key_secret: TOOL_GROQ is not set')]);
    const hook = workflow(
      'w',
      'trigger: {type: webhook, secret: TOOL_HOOK}\nsteps: [{name: s, type: tool, target: echo}]',
    );
    expect(warningsOf(hook, {})).toEqual([expect.stringContaining('trigger.secret: TOOL_HOOK is not set')]);
  });

  test('if the owner is unknown, one key with the secret is enough', () => {
    const env = { API_KEYS: KEYS, TOOL_BOB__CRM: 'x' } as Variables;
    expect(warningsOf(text, env, ['ann', 'bob'])).toEqual([]);
    expect(warningsOf(text, { API_KEYS: KEYS }, ['ann', 'bob'])).toHaveLength(1);
  });
});

test.each([
  ['Tool', 'implementation: {type: script, runtime: node, script: "1"}'],
  ['Tool', 'implementation: {type: container, image: x}'],
  ['Relic', 'implementation: {type: container, image: x}\nendpoints: {get: {}}'],
])('[R7] without a runner, a %s with %s has a warning that names RUNNER_URLS', (kind, rest) => {
  expect(warningsOf(`${head(kind, 'x')}${rest}\n`, {})).toEqual([
    expect.stringContaining('implementation.type: needs a runner, but this deployment has none (RUNNER_URLS)'),
  ]);
  expect(warningsOf(`${head(kind, 'x')}${rest}\n`, RUNNER)).toEqual([]);
});
