import { describe, expect, test } from 'vitest';
import { ENCODINGS } from '../../../bench/tokens/measure.ts';
import { bundled } from '../../support/bundled.ts';
import { DEFAULT_PROTOCOL } from '../../../src/domain/manifests/agent.ts';
import type { AgentDefinition, ProtocolOptions } from '../../../src/domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
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
  /** Together they have every section; what an agent's manifest changes is asserted where it is decided. */
  test.each(['assistant', 'analyst', 'archivist', 'builder', 'research_orchestrator'])(
    '[L4] the prompt of %s matches its golden file',
    async (name) => {
      await expect(`${buildSystemPrompt(resolved(name))}\n`).toMatchFileSnapshot(`golden/${name}.txt`);
    },
  );

  test('[L4] the prompt of a compact agent matches its golden file', async () => {
    const { agent, ...others } = resolved('assistant');
    const compact = { ...others, agent: { ...agent, protocol: { ...agent.protocol, form: 'compact' as const } } };
    await expect(`${buildSystemPrompt(compact)}\n`).toMatchFileSnapshot('golden/assistant-compact.txt');
  });

  test('[S5] it says how many actions may run at once', () => {
    const { loop } = resolved('assistant').agent;
    expect(buildSystemPrompt(agentWith({ loop: { ...loop, maxParallelActions: 3 } }))).toContain(
      'Up to 3 run at once;',
    );
  });

  test.each(
    (['full', 'compact'] as const).flatMap((form) =>
      Object.entries(ENCODINGS).map(([encoding, count]) => [form, encoding, count] as const),
    ),
  )('[L4] without imports it has at most 1,200 tokens, with all other capabilities: %s form, %s', (form, _, count) => {
    const bare = agentWith(
      {
        imports: NOTHING,
        summary: '',
        persona: { agent: '', user: '', examples: [] },
        capabilities: ['python', 'shell', 'docker'],
        internalActions: { enabled: true, allowed: null, blocked: [] },
      },
      { form },
    );
    const prompt = buildSystemPrompt(bare);
    expect(count(prompt)).toBeLessThanOrEqual(1_200);
    expect(estimateTokens(prompt)).toBeLessThanOrEqual(1_200);
  });

  test('[L4] it names the types of all that the agent imports', () => {
    const imports = { tools: [], agents: ['navigator'], relics: ['logbook'], workflows: ['voyage'] };
    expect(buildSystemPrompt(agentWith({ imports }))).toMatch(
      /type: tool, llm \(a separate model call: .*\), python, shell, internal, agent, relic, workflow\./,
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
    expect(full).not.toContain('<action name="weather"');
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

const ALL = {
  python: true,
  shell: true,
  variables: true,
  feeds: true,
  agents: true,
  relics: true,
  workflows: true,
} as const;

describe('the examples', () => {
  const switches = Object.keys(ALL);
  const needs = (['full', 'compact'] as const).flatMap((form) =>
    Array.from({ length: 2 ** switches.length }, (_, bits) => ({
      ...ALL,
      ...Object.fromEntries(switches.map((name, index) => [name, (bits & (1 << index)) !== 0])),
      form,
    })),
  );
  const distinct = [
    ...new Map(
      needs.flatMap((need) =>
        promptExamples(need).flatMap(({ title, outputs }) =>
          outputs.map(({ text }) => [text, { title, text, form: need.form }] as const),
        ),
      ),
    ).values(),
  ];
  const textOf = (given: Parameters<typeof promptExamples>[0]): string =>
    promptExamples(given)
      .flatMap(({ user, outputs }) => [user, ...outputs.flatMap(({ text, results = '' }) => [text, results])])
      .join('\n');

  test.each(distinct)('[L4] an output of "$title" ($form) parses without a warning', ({ text }) => {
    const parser = createParser({ json: 'strict', actInReasoning: false });
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
      promptExamples({ form, ...ALL })
        .flatMap(({ outputs }) => outputs)
        .map(({ text }) => {
          const parser = createParser({ json: 'repair', actInReasoning: false });
          return [...parser.feed(text), ...parser.end()].flatMap((event) =>
            event.type === 'action_declared' ? [{ ...event.action, span: null }] : [],
          );
        });
    expect(declared('compact')).toEqual(declared('full'));
  });

  test('[L4] they look first, mend a failure, answer from the results, and answer at once where the result is described', () => {
    const [look, plan] = promptExamples({ form: 'full', ...ALL });
    const [wrong, mended, answer] = look?.outputs ?? [];
    for (const step of [wrong, mended]) expect(step?.text).not.toContain('<response');
    expect(wrong?.results).toContain('status="failed"');
    expect(mended?.results).toContain('status="completed"');
    expect(answer?.text).toMatch(/^<response final="true">[^$]+<\/response>$/);
    expect(plan?.title).toContain('returns {celsius: number}');
    expect(plan?.outputs[0]?.text).toContain('$oslo.celsius');
  });

  test('[L4] they call an agent, a relic or a workflow only if the agent imports one', () => {
    for (const need of needs) {
      const text = textOf(need);
      expect([need, /type="agent"/.test(text)]).toEqual([need, need.agents]);
      expect([need, /type="relic"/.test(text)]).toEqual([need, need.relics]);
      expect([need, /type="workflow"/.test(text)]).toEqual([need, need.workflows]);
    }
  });

  test('[P14] code gets results in one way only: by inputs', () => {
    for (const need of needs.filter(({ python, shell }) => python || shell)) {
      const parser = createParser({ json: 'strict', actInReasoning: false });
      const code = [...parser.feed(textOf(need)), ...parser.end()].flatMap((event) =>
        event.type === 'action_declared' && ['python', 'shell'].includes(event.action.type) ? [event.action] : [],
      );
      expect(code).not.toEqual([]);
      for (const { parameters, dependsOn } of code) {
        expect(dependsOn).toBeNull();
        expect(parameters['inputs']).toEqual({ a: '$rome.celsius', b: '$oslo.celsius' });
      }
    }
  });

  test('[I] a feed is added only if add_context_feed is allowed, and a variable is set only if set_variable is', () => {
    for (const need of needs) {
      expect([need, textOf(need).includes('set_variable')]).toEqual([need, need.variables]);
      expect([need, textOf(need).includes('add_context_feed')]).toEqual([need, need.feeds && !need.variables]);
    }
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
