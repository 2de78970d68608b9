import { expect, test } from 'vitest';
import { loadManifests } from '../../src/catalog/load.ts';
import { withSecrets } from '../../src/catalog/secrets.ts';
import { personalise } from '../../src/engine/personalise.ts';
import type { ResolvedAgent } from '../../src/domain/manifest.ts';

const SECRETS: Readonly<Record<string, string>> = {
  TOOL_KEY: 'k-${DATE}-1',
  TOOL_OTHER: 'other',
  LLM_API_KEY: 'never',
};
const secret = (name: string): string | null => SECRETS[name] ?? null;

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

test('[M5] [X3] addresses and headers of tools get variables and TOOL_ secrets, texts for the model no secret', () => {
  const resolved = agent('{variables: {CITY: Ulm}}');
  const { tools, agent: ready } = personalise(withSecrets(resolved, resolved.agent.secrets, secret), record);
  expect(tools.get('t')?.implementation).toMatchObject({
    url: 'https://api.example/Ulm/ses_1',
    // a value is not resolved again, and what does not begin with TOOL_ is no secret of a manifest
    headers: { authorization: 'Bearer k-${DATE}-1', 'x-other': 'other', 'x-model': '${LLM_API_KEY}' },
  });
  expect(ready.persona.agent).toBe('I know ${TOOL_KEY} not');
  expect(ready.feeds[0]?.source.params).toEqual({ q: ['Ulm'], n: 1 });
});

test('[X3] an agent that names secrets allows its tools those only', () => {
  const resolved = agent('{secrets: [TOOL_OTHER]}');
  const { tools } = withSecrets(resolved, resolved.agent.secrets, secret);
  expect(tools.get('t')?.implementation).toMatchObject({
    headers: { authorization: 'Bearer ${TOOL_KEY}', 'x-other': 'other' },
  });
});
