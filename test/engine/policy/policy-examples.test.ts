/** The examples of docs/policies.md decide as the page says (C9). */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { PolicyRule } from '../../../src/domain/policy.ts';
import { parsePolicies } from '../../../src/settings/policies.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { toolOf } from '../../support/definitions.ts';
import { eventsOf } from '../../support/events.ts';
import { runText, sessionKit } from '../../support/session-kit.ts';

const page = readFileSync('docs/policies.md', 'utf8');
const HEAD = 'kind: Agent\nversion: "1.0"\nname: example\nsummary: An example.\npersona: You.\n';

/** The first YAML block after a heading. */
function blockOf(heading: string): string {
  const [, text = ''] = /```yaml\n([\s\S]*?)```/.exec(page.slice(page.indexOf(heading))) ?? [];
  return text;
}

function rulesOf(manifest: string): readonly PolicyRule[] {
  const { catalog, problems } = loadManifests([{ path: 'example.yaml', text: manifest }]);
  expect(problems.map(formatProblem)).toEqual([]);
  return catalog.agent('example')?.agent.policies ?? [];
}

type Call = readonly [name: string, parameters: JsonObject];

/** What becomes of each call, in one run at this time. */
async function decisions(
  policies: readonly PolicyRule[],
  calls: readonly Call[],
  at = Date.UTC(2026, 10, 25, 12),
): Promise<unknown[]> {
  const names = [...new Set(calls.map(([name]) => name))];
  const tools = names.map((name) =>
    toolOf(
      { type: 'builtin', entrypoint: 'echo' },
      { name, approval: 'never', effects: name.startsWith('read') ? 'pure' : 'unsafe' },
    ),
  );
  const kit = await sessionKit({ tools, agent: (agent) => ({ ...agent, policies }), clock: new VirtualClock(at) });
  const text = calls.map(
    ([name, parameters], index) =>
      `<action name="${name}" id="a${index}" mode="async">${JSON.stringify(parameters)}</action>`,
  );
  await runText(kit, text.join(''));
  return calls.map((_call, index) => {
    const id = `a${index}`;
    const found = eventsOf(kit.events, 'policy_applied').find(({ action_id: action }) => action === id);
    const ran = eventsOf(kit.events, 'action_completed').some(({ action_id: action }) => action === id);
    return found?.data.decision ?? (ran ? 'runs' : 'nothing');
  });
}

describe('[C9] the examples of docs/policies.md', () => {
  test('the first one', async () => {
    const rules = rulesOf(
      blockOf('# Policies').replace('import: { tools: [pay] }\n', '').replace('name: cashier', 'name: example'),
    );
    expect(
      await decisions(
        rules,
        [50, 500, 5_000].map((amount) => ['pay', { amount }]),
      ),
    ).toEqual(['runs', 'ask', 'deny']);
  });

  const long = 'text '.repeat(20_000);
  test.each<[heading: string, callsAndDecisions: readonly string[], at?: number]>([
    [
      'Spending limits',
      [
        'pay {"amount": 20} runs',
        'pay {"amount": 200} ask',
        'pay {"amount": 501} deny',
        'pay {"amount": 5} deny',
        'pay {"amount": 5} deny',
        'other {} runs',
      ],
    ],
    ['Read-only hours', ['write {} runs'], Date.UTC(2026, 10, 25, 12)],
    ['Read-only hours', ['write {} deny', 'read {} runs'], Date.UTC(2026, 10, 25, 17, 0)],
    ['Read-only hours', ['write {} deny'], Date.UTC(2026, 10, 25, 6, 59)],
    ['Read-only hours', ['write {} deny'], Date.UTC(2026, 10, 28, 12)],
    [
      'Allowed hosts for a tool',
      [
        'web_fetch {"url": "https://docs.example.com/page"} runs',
        'web_fetch {"url": "https://DOCS.example.com:443/"} runs',
        'web_fetch {"url": "https://docs.example.com@evil.example/"} deny',
        'web_fetch {"url": "not a url"} deny',
        'web_fetch {} deny',
        'other {"url": "https://evil.example/"} runs',
      ],
    ],
    [
      'A second pair of eyes for deletions',
      [
        'delete_user {} ask',
        'request {"method": "DELETE"} ask',
        'request {"method": "GET"} runs',
        'query {"sql": "Drop table t"} ask',
        'query {"sql": "SELECT 1"} runs',
      ],
    ],
    [
      'No personal data to a certain tool',
      [
        'web_search {"q": "who is ada@example.com?"} deny',
        'web_search {"q": "account DE89 3704 0044 0532 0130 00"} deny',
        'web_search {"q": "account GB29NWBK60161331926819"} deny',
        `web_search {"q": "ada@example.com ${long}"} deny`,
        'web_search {"q": {"deep": ["x", {"mail": "a@b.example"}]}} deny',
        'web_search {"q": "the weather in Rome"} runs',
        'send_mail {"to": "ada@example.com"} runs',
      ],
    ],
  ])('%s', async (heading, expected, at) => {
    const calls = expected.map((text): Call => {
      const [, name = '', parameters = ''] = /^(\w+) (\{.*\}) \w+$/.exec(text) ?? [];
      return [name, JSON.parse(parameters) as JsonObject];
    });
    const decided = await decisions(rulesOf(`${HEAD}${blockOf(`### ${heading}`)}`), calls, at);
    expect(decided).toEqual(expected.map((text) => text.split(' ').at(-1)));
  });

  test('the setting', () => {
    const [, text = ''] = /POLICIES='(.*)'/.exec(page) ?? [];
    expect(parsePolicies(text)).toEqual([
      { when: 'action.type == "docker"', do: 'deny', message: 'No containers here.' },
    ]);
  });
});
