/** Policies in manifests and in the setting `POLICIES` (C9). */
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import { limits } from '../../../src/domain/limits.ts';
import { parsePolicies } from '../../../src/settings/policies.ts';
import { readSettings } from '../../../src/settings/settings.ts';

const AGENT = 'kind: Agent\nversion: "1.0"\nname: a\nsummary: Something\npersona: You.\n';
const WORKFLOW =
  'kind: Workflow\nversion: "1.0"\nname: w\nsummary: Something\nsteps: [{name: s, type: tool, target: t}]\n';
const TOOL = 'kind: Tool\nversion: "1.0"\nname: t\nsummary: Something\nimplementation: {type: client}\n';

const load = (policies: string, head = AGENT): ReturnType<typeof loadManifests> =>
  loadManifests([
    { path: 'a.yaml', text: `${head}policies: ${policies}\n` },
    { path: 't.yaml', text: TOOL },
  ]);
const problemsOf = (policies: string, head = AGENT): string[] => load(policies, head).problems.map(formatProblem);

describe('[C9] policies of a manifest', () => {
  test('are rules of the agent or workflow', () => {
    const rule = { when: 'action.name == "t"', do: 'ask', message: 'why' };
    expect(load(JSON.stringify([rule, { do: 'allow' }])).catalog.agent('a')?.agent.policies).toEqual([
      rule,
      { when: null, do: 'allow', message: null },
    ]);
    expect(load(JSON.stringify([rule]), WORKFLOW).catalog.workflow('w')?.workflow.policies).toEqual([rule]);
    expect(load('[]').catalog.agent('a')?.agent).not.toHaveProperty('policies');
  });

  test.each([
    ['[{wehn: "true", do: deny}]', 'unknown field. Did you mean when?'],
    ['[{do: refuse}]', 'is not allowed (allowed: allow, ask, deny)'],
    ['[{when: "true"}]', 'is missing (allowed: allow, ask, deny)'],
    ['[{when: true, do: deny}]', 'must be text'],
    ['[{when: "acton.name == \\"x\\"", do: deny}]', 'unknown name "acton" (did you mean action?)'],
    ['[{when: "action.name ==", do: deny}]', 'cannot be evaluated'],
    [`[{do: deny, message: "${'x'.repeat(limits.policyMessageChars + 1)}"}]`, 'must be at most 500 characters long'],
    [`[${'{do: allow},'.repeat(limits.policyRules + 1)}]`, 'must be at most 50 items long'],
    ['{do: deny}', 'must be a list'],
  ])('%s is an error at its line', (policies, message) => {
    for (const head of [AGENT, WORKFLOW]) {
      const problems = problemsOf(policies, head);
      expect(problems[0]).toContain(message);
      expect(problems[0]).toMatch(/^a\.yaml:\d+:\d+/);
    }
    expect(load(policies).catalog.agent('a')).toBeNull();
  });
});

describe('[C9] [H8] the setting POLICIES', () => {
  test('is a list in YAML or JSON, or unset', () => {
    const rules = [{ when: 'action.type == "docker"', do: 'deny', message: null }];
    expect(parsePolicies('[{"when": "action.type == \\"docker\\"", "do": "deny"}]')).toEqual(rules);
    expect(parsePolicies('- when: action.type == "docker"\n  do: deny\n')).toEqual(rules);
    expect(parsePolicies('\n- when: >-\n    action.type ==\n    "docker"\n  do: deny')).toEqual(rules);
    for (const unset of [undefined, '', ' \n']) expect(parsePolicies(unset)).toEqual([]);
  });

  test.each([
    ['deny everything', 'must be a list'],
    ['[{"do": "deny"', 'not valid YAML'],
    ['[{"do": "never"}]', 'is not allowed (allowed: allow, ask, deny)'],
    ['[{"do": "deny", "wenn": "x"}]', 'unknown field. Did you mean when?'],
    ['[{"do": "deny", "when": "action.nam == 1"}]', 'policies[0].when: "action" has no member "nam"'],
    ['- do: deny\n---\n- do: allow', 'POLICIES'],
  ])('%s stops the system', (text, message) => {
    expect(() => readSettings({ POLICIES: text })).toThrow(message);
    expect(() => readSettings({ POLICIES: text })).toThrow(/^POLICIES: /);
  });
});
