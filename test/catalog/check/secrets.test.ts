import { describe, expect, test } from 'vitest';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import { fromPinned, toPinned } from '../../../src/catalog/store/pinned.ts';
import { withSecrets } from '../../../src/catalog/check/secrets.ts';
import { ManifestStore } from '../../../src/catalog/store/store.ts';
import { RequestTemplate } from '../../../src/domain/request-template.ts';
import { namedSecret } from '../../../src/domain/secrets.ts';
import { resolveAgentVariables } from '../../../src/engine/session/resolve-agent-variables.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const SECRETS: Readonly<Record<string, string>> = {
  TOOL_KEY: 'k-${DATE}-{id}-1',
  TOOL_OTHER: 'other',
  LLM_API_KEY: 'never',
};
const alone = { owner: null, owners: [], lookup: (name: string): string | null => SECRETS[name] ?? null };

function agent(environment: string): ResolvedAgent {
  const { catalog, problems } = loadManifests([
    {
      path: 'a.yaml',
      text: `kind: Agent\nversion: 1\nname: a\nsummary: s\npersona: "I know \${TOOL_KEY} not"\nimport: {tools: [t]}\nenvironment: ${environment}
context_feeds: [{id: f, type: tool, source: {name: t, params: {q: ["\${CITY}"], n: 1}}}]\n`,
    },
    {
      path: 't.yaml',
      text: `kind: Tool\nversion: 1\nname: t\nsummary: s\nimplementation: {type: http, url: "https://api.example/\${CITY}/\${SESSION_ID}", headers: {authorization: "Bearer \${TOOL_KEY}", x-other: "\${TOOL_OTHER}", x-model: "\${LLM_API_KEY}"}}\n`,
    },
  ]);
  expect(problems).toEqual([]);
  const resolved = catalog.agent('a');
  if (resolved === null) throw new Error('it did not load');
  return resolved;
}

const record = {
  session_id: 'ses_1',
  agent: 'a',
  user_id: null,
  owner: null,
  kind: 'chat' as const,
  metadata: {},
  created_at: Date.UTC(2026, 0, 2),
};

test('[M5] [X3] URLs and headers of tools get variables and TOOL_ secrets; texts for the model get no secrets', () => {
  const resolved = agent('{variables: {CITY: "Ulm{id}"}}');
  const { tools, agent: ready } = resolveAgentVariables(withSecrets(resolved, resolved.agent.secrets, alone), record);
  const tool = tools.get('t')?.implementation;
  if (tool?.type !== 'http') throw new Error('t is an http tool');
  const template = new RequestTemplate({ id: 'parameter' });
  expect(template.url(tool.url)).toEqual({ ok: true, text: 'https://api.example/Ulm{id}/ses_1' });
  const sent = Object.entries(tool.headers).map(([name, text]) => [name, template.header(name, text)]);
  // a value is not resolved a second time and has no placeholders; a name without TOOL_ is not a secret of a manifest
  expect(Object.fromEntries(sent)).toMatchObject({
    authorization: { text: 'Bearer k-${DATE}-{id}-1' },
    'x-other': { text: 'other' },
    'x-model': { text: '${LLM_API_KEY}' },
  });
  expect(ready.persona.agent).toBe('I know ${TOOL_KEY} not');
  expect(ready.feeds[0]?.source.params).toEqual({ q: ['Ulm{id}'], n: 1 });
});

test('[X3] the tools of an agent that lists secrets get only those secrets', () => {
  const resolved = agent('{secrets: [TOOL_OTHER]}');
  const { tools } = withSecrets(resolved, resolved.agent.secrets, alone);
  expect(tools.get('t')?.implementation).toMatchObject({
    headers: { authorization: 'Bearer ${TOOL_KEY}', 'x-other': 'other' },
  });
});

describe('[X3] several API keys', () => {
  const tool = (name: string, url: string, header = 'Bearer ${TOOL_KEY}'): string =>
    `kind: Tool\nversion: 1\nname: ${name}\nsummary: s\nimplementation: {type: http, url: "${url}", headers: {authorization: "${header}"}}\n`;
  const agentOf = (name: string, tools: string, variables: string): string =>
    `kind: Agent\nversion: 1\nname: ${name}\nsummary: s\npersona: p\nimport: {tools: [${tools}]}\nenvironment: {variables: ${variables}}\n`;
  const env: Readonly<Record<string, string>> = {
    TOOL_KEY: 'of-the-operator',
    TOOL_ANN__KEY: 'of-ann',
    TOOL_BOB__KEY: 'of-bob',
  };
  const scope = (owner: string) => ({
    owner,
    owners: ['ann', 'bob', 'zoe'],
    lookup: (variable: string) => env[variable] ?? null,
  });
  const { data } = loadManifests([
    { path: 'shared.yaml', text: tool('shared', 'https://${HOST:-api.example}/${USER_ID}/x') },
  ]).catalog;
  const common = createCatalog(data, () => true);
  const owners = ['ann', 'bob', 'zoe'];

  function storeOf(owner: string): ManifestStore {
    return new ManifestStore(openNodeSql(), common, {}, (name) => {
      const named = namedSecret(name, { owner, owners, bundled: false });
      return named.ok ? null : named.reason;
    });
  }

  function requestOf(owner: string, store: ManifestStore, name: string, userId: string | null = null) {
    const found = store.agent('mine');
    if (found === null) throw new Error('it did not load');
    // as it is pinned to a run
    const kept = fromPinned(toPinned(found)) as ResolvedAgent;
    const { tools } = resolveAgentVariables(withSecrets(kept, [], scope(owner)), { ...record, owner, user_id: userId });
    return tools.get(name)?.implementation;
  }

  test('a tool of one key gets that key’s secret, and never the secret of another key or the operator', async () => {
    for (const [owner, expected] of [
      ['ann', 'Bearer of-ann'],
      ['bob', 'Bearer of-bob'],
      ['zoe', 'Bearer ${TOOL_KEY}'],
    ] as const) {
      const store = storeOf(owner);
      await store.upload(
        [
          { path: 't.yaml', text: tool('own', 'https://x.example/') },
          { path: 'a.yaml', text: agentOf('mine', 'own', '{}') },
        ],
        0,
      );
      expect(requestOf(owner, store, 'own')).toMatchObject({ headers: { authorization: expected } });
    }
  });

  test.each([
    ['t', tool('t', 'https://x.example/', '${TOOL_BOB__KEY}'), 'implementation.headers.authorization'],
    ['t', tool('t', 'https://x.example/?k=${TOOL_NOT__THERE}'), 'implementation.url'],
    [
      'a',
      'kind: Agent\nversion: 1\nname: a\nsummary: s\npersona: p\ncognitive_engine: {primary: {provider: groq, model: m, api_key_secret: TOOL_BOB__KEY}}\n',
      'cognitive_engine.primary.api_key_secret',
    ],
    [
      'w',
      'kind: Workflow\nversion: 1\nname: w\nsummary: s\ntrigger: {type: webhook, secret: TOOL_BOB__KEY}\nimport: {tools: [shared]}\nsteps: [{name: s, type: tool, target: shared}]\n',
      'trigger.secret',
    ],
  ])('a manifest that names the secret of another key is refused (%s)', async (_name, text, field) => {
    const report = await storeOf('ann').upload([{ path: 'x.yaml', text }], 0);
    expect(report.manifests).toEqual([]);
    expect(report.problems[0]).toMatchObject({ field });
    expect(report.problems[0]?.message).toContain('yours is ANN');
    expect((await storeOf('ann').validate([{ path: 'x.yaml', text }])).problems).toHaveLength(1);
  });

  test('a manifest from before the second key does not get the second key’s secret, and does not block other changes', async () => {
    const sql = openNodeSql();
    const before = new ManifestStore(sql, common, {});
    await before.upload(
      [
        { path: 't.yaml', text: tool('own', 'https://x.example/', '${TOOL_BOB__KEY}') },
        { path: 'a.yaml', text: agentOf('mine', 'own', '{}') },
      ],
      0,
    );
    const store = new ManifestStore(sql, common, {}, () => 'refused');
    expect(requestOf('ann', store, 'own')).toMatchObject({
      headers: { authorization: '${TOOL_BOB__KEY}' },
      missingSecret: expect.stringContaining('another namespace') as string,
    });
    expect((await store.upload([{ path: 'n.yaml', text: agentOf('next', 'own', '{}') }], 0)).problems).toEqual([]);
  });

  test('the operator’s tool sends the operator’s secret, and only to the operator’s host', async () => {
    for (const variables of [
      '{HOST: evil.example}',
      '{HOST: "evil.example/?", USER_ID: "@evil.example/"}',
      '{TOOL_KEY: x}',
    ]) {
      const store = storeOf('zoe');
      await store.upload([{ path: 'a.yaml', text: agentOf('mine', 'shared', variables) }], 0);
      for (const user of [null, '../..', '..', '.', 'a/../../y?z#', '@evil.example', '\\evil', '💥\ud800']) {
        const request = requestOf('zoe', store, 'shared', user);
        expect(request).toMatchObject({ headers: { authorization: 'Bearer of-the-operator' } });
        const { url } = request as { url: string };
        expect(new URL(url).origin).toBe('https://api.example');
        expect(new URL(url).pathname).toMatch(/^\/[^/]*\/x$/);
      }
    }
  });

  test('a key’s tool with the name of an operator’s tool does not get the operator’s secret', async () => {
    const text = tool('shared', 'https://evil.example/');
    expect((await storeOf('zoe').upload([{ path: 's.yaml', text }], 0)).problems[0]?.message).toContain(
      'is the name of a bundled tool',
    );
    // it was stored before the operator's tool existed
    const sql = openNodeSql();
    await new ManifestStore(sql, createCatalog({ ...data, tools: [] }), {}).upload(
      [
        { path: 's.yaml', text },
        { path: 'a.yaml', text: agentOf('mine', 'shared', '{}') },
      ],
      0,
    );
    const request = requestOf('zoe', new ManifestStore(sql, common, {}), 'shared');
    expect(JSON.stringify(request)).not.toContain('of-the-operator');
  });
});
