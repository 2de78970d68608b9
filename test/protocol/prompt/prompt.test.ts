import { describe, expect, test } from 'vitest';
import { bundled } from '../../../src/catalog/bundled.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import { DEFAULT_PROTOCOL } from '../../../src/domain/manifest.ts';
import type { AgentDefinition, ProtocolOptions, ResolvedAgent } from '../../../src/domain/manifest.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';
import { estimateTokens } from '../../../src/domain/tokens.ts';
import { buildSystemPrompt } from '../../../src/protocol/prompt/prompt.ts';
import { promptExamples } from '../../../src/protocol/prompt/examples.ts';

function resolved(name: string): ResolvedAgent {
  const found = bundled.agent(name);
  if (found === null) throw new Error(`no agent ${name}`);
  return found;
}

function agentWith(overrides: Partial<AgentDefinition>, protocol: Partial<ProtocolOptions> = {}): ResolvedAgent {
  const { agent } = resolved('assistant');
  const knownNames = { tool: [], agent: [], relic: [], workflow: [] };
  return {
    agent: { ...agent, protocol: { ...DEFAULT_PROTOCOL, ...protocol }, ...overrides },
    tools: new Map(),
    relics: new Map(),
    workflows: new Map(),
    agents: new Map(),
    knownNames,
  };
}

const NOTHING = { tools: [], agents: [], relics: [], workflows: [] };

describe('the prompt', () => {
  test.each(bundled.list('agent').map(({ name }) => name))(
    '[L4] the prompt of %s matches its golden file',
    async (name) => {
      await expect(`${buildSystemPrompt(resolved(name))}\n`).toMatchFileSnapshot(`golden/${name}.txt`);
    },
  );

  test('[L4] the prompt of a compact agent matches its golden file', async () => {
    const base = resolved('assistant');
    const compact = {
      ...base,
      agent: { ...base.agent, protocol: { ...base.agent.protocol, form: 'compact' as const } },
    };
    await expect(`${buildSystemPrompt(compact)}\n`).toMatchFileSnapshot('golden/assistant-compact.txt');
  });

  test('[L4] it is short', () => {
    const bare = agentWith({ imports: NOTHING, persona: { agent: '', user: '', examples: [] } });
    expect(estimateTokens(buildSystemPrompt(bare))).toBeLessThan(1_500);
  });

  test('[L4] it contains the persona, every tool with its parameters, and the other types of actions', () => {
    const base = resolved('assistant');
    const manifest = (kind: string, name: string, rest: string): { path: string; text: string } => ({
      path: `${name}.yaml`,
      text: `kind: ${kind}\nversion: 1\nname: ${name}\nsummary: The ${name} on board.\n${rest}\n`,
    });
    const { catalog } = loadManifests([
      manifest('Agent', 'pirate', 'persona: x\nimport: {agents: [navigator], relics: [logbook], workflows: [voyage]}'),
      manifest('Agent', 'navigator', 'persona: x'),
      manifest('Relic', 'logbook', 'implementation: {type: edge, store: log}'),
      manifest('Workflow', 'voyage', 'inputs: {port: string}\nsteps: [{name: a, type: llm, parameters: {prompt: x}}]'),
    ]);
    const pirate = catalog.agent('pirate');
    if (pirate === null) throw new Error('the pirate did not load');
    const prompt = buildSystemPrompt({
      ...pirate,
      tools: base.tools,
      agent: {
        ...base.agent,
        persona: { agent: 'Be a pirate.', user: 'The user is a sailor.', examples: ['Ahoy!'] },
        imports: pirate.agent.imports,
      },
    });
    const parts = ['Be a pirate.', 'The user is a sailor.', 'Ahoy!', '- navigator: The navigator on board.'];
    for (const part of [...parts, '## logbook\nThe logbook on board.', '- logbook.append: ', '- entry (any, required)'])
      expect(prompt).toContain(part);
    expect(prompt).toContain('## voyage\nThe voyage on board.\n- port (string, required)');
    for (const { name, parameters } of base.tools.values()) {
      expect(prompt).toContain(`## ${name}\n`);
      const properties = parameters['properties'];
      for (const parameter of Object.keys(typeof properties === 'object' ? (properties ?? {}) : {}))
        expect(prompt).toContain(`- ${parameter} (`);
    }
    expect(prompt).toContain(
      'type: tool, llm (a separate model call: {prompt, system?}), python, shell, internal, agent, relic, workflow.',
    );
  });

  test('[X4] python, shell and internal actions are taught only if they are allowed', () => {
    const bare = buildSystemPrompt(
      agentWith({
        capabilities: [],
        imports: NOTHING,
        internalActions: { enabled: false, allowed: null, blocked: [] },
      }),
    );
    expect(bare).not.toMatch(/type="(?:python|shell|internal)"/);
    const all = buildSystemPrompt(
      agentWith({
        capabilities: ['python', 'shell', 'docker'],
        internalActions: { enabled: true, allowed: null, blocked: ['clear_context'] },
      }),
    );
    for (const type of ['python', 'shell', 'docker', 'internal']) expect(all).toContain(`type="${type}"`);
    expect(all).toContain('- add_context_feed');
    expect(all).not.toContain('- clear_context');
  });

  test('[P18] only the compact form is taught if the manifest selects it', () => {
    const compact = buildSystemPrompt(agentWith({}, { form: 'compact' }));
    expect(compact).toContain('<action name="NAME" mode="async">{…}</action>');
    expect(compact).not.toContain('"parameters"');
    // attributes with default values would waste tokens
    expect(compact).not.toMatch(/<action[^>]* (?:type="tool"|mode="sync")/);
    const full = buildSystemPrompt(agentWith({}, { form: 'full' }));
    expect(full).toContain('{"name":"NAME","parameters":{…}}');
    expect(full).not.toContain(' name="weather"');
  });

  test.each([
    ['auto', 'unless an action is still open'],
    ['final', 'Without final it ends your work.'],
    ['continue', 'Without final you go on.'],
  ] as const)('[P10] the default "%s" for a response without final is explained', (responseDefault, words) => {
    expect(buildSystemPrompt(agentWith({}, { responseDefault }))).toContain(words);
  });

  test('[L4] the same manifests give the same prompt, without any time or random value', () => {
    expect(buildSystemPrompt(resolved('assistant'))).toBe(buildSystemPrompt(resolved('assistant')));
    expect(buildSystemPrompt(resolved('assistant'))).not.toMatch(new RegExp(`${new Date().getFullYear()}|ses_|run_`));
  });
});

describe('the examples', () => {
  const yesNo = [true, false];
  const needs = (['full', 'compact'] as const).flatMap((form) =>
    yesNo.flatMap((python) =>
      yesNo.flatMap((shell) =>
        yesNo.flatMap((variables) => yesNo.map((feeds) => ({ form, python, shell, variables, feeds }))),
      ),
    ),
  );
  const distinct = [
    ...new Map(
      needs.flatMap((need) =>
        promptExamples(need).map(({ title, text }) => [text, { title, text, form: need.form }] as const),
      ),
    ).values(),
  ];

  test.each(distinct)('[L4] "$title" ($form) parses without a warning', ({ text }) => {
    const parser = createParser({ json: 'repair', actInReasoning: false });
    const events = [...parser.feed(text), ...parser.end()];
    expect(events.filter(({ type }) => type === 'warning' || type === 'action_rejected')).toEqual([]);
    expect(events.some(({ type }) => type === 'action_declared' || type === 'response_completed')).toBe(true);
    for (const event of events) {
      if ('unclosed' in event) expect(event.unclosed).toBe(false);
      if (event.type === 'text') expect(event.delta.trim()).toBe('');
    }
  });

  test('[P18] both forms declare the same actions', () => {
    const declared = (form: 'full' | 'compact'): unknown[] =>
      promptExamples({ form, python: true, shell: true, variables: true, feeds: true }).map(({ text }) => {
        const parser = createParser({ json: 'repair', actInReasoning: false });
        return [...parser.feed(text), ...parser.end()].flatMap((event) =>
          event.type === 'action_declared' ? [{ ...event.action, span: null }] : [],
        );
      });
    expect(declared('compact')).toEqual(declared('full'));
  });

  test('[L4] they show parallel work, a dependency, a partial response, a feed, an internal action and an answer in one generation', () => {
    const text = promptExamples({ form: 'full', python: true, shell: true, variables: true, feeds: true })
      .map((example) => example.user + example.text)
      .join('\n');
    for (const shown of [
      'mode="async"',
      '"depends_on"',
      'final="false"',
      '<context_feed',
      'set_variable',
      'add_context_feed',
      'final="true"',
      '$difference',
    ])
      expect(text).toContain(shown);
  });

  test('[L4] every example is in the prompt of an agent that can use it', () => {
    const prompt = buildSystemPrompt(resolved('assistant'));
    for (const { text } of promptExamples({ form: 'full', python: true, shell: true, variables: true, feeds: false }))
      expect(prompt).toContain(text);
  });
});

test('[L4] sizes are estimated at four bytes a token', () => {
  expect([
    estimateTokens(''),
    estimateTokens('abcd'),
    estimateTokens('abcde'),
    estimateTokens('€'),
    estimateTokens('😀😀'),
  ]).toEqual([0, 1, 2, 1, 2]);
});
