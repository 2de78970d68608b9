/** The parts of the system prompt, and what manifests replace (L4). */
import { describe, expect, test } from 'vitest';
import { promptDocument } from '../../../src/dry-run/agent-documents.ts';
import type { AgentDefinition, ProtocolOptions } from '../../../src/domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import { PROMPT_PARTS, promptPartSpec } from '../../../src/domain/prompt-parts.ts';
import type { PromptChanges, PromptPartId } from '../../../src/domain/prompt-parts.ts';
import { readReplacement } from '../../../src/domain/prompt-template.ts';
import { resolveAgentVariables } from '../../../src/engine/session/resolve-agent-variables.ts';
import { buildSystemPrompt, promptParts, promptSections } from '../../../src/protocol/prompt/prompt.ts';
import { SESSION_RECORD } from '../../journal/journal-kit.ts';
import { bundled } from '../../support/bundled.ts';
import { agentOf, largeTools } from '../../support/many-tools.ts';

const pieces = (id: PromptPartId, text: string, isNative = false): PromptChanges => {
  const read = readReplacement(id, text, isNative);
  if ('issue' in read) throw new Error(read.issue);
  return { [id]: read.pieces };
};

function agentWith(
  prompt: PromptChanges,
  protocol: Partial<ProtocolOptions> = {},
  changes: Partial<AgentDefinition> = {},
  name = 'assistant',
): ResolvedAgent {
  const found = bundled.agent(name);
  if (found === null) throw new Error(`no agent ${name}`);
  const { agent } = found;
  return { ...found, agent: { ...agent, protocol: { ...agent.protocol, ...protocol }, prompt, ...changes } };
}

const textOf = (resolved: ResolvedAgent, id: PromptPartId): string | undefined =>
  promptParts(resolved).find((part) => part.id === id)?.text;

const FORMS = [
  ['full', { form: 'full' }],
  ['compact', { form: 'compact' }],
  ['tool_calls', { dialect: 'tool_calls' }],
] as const;

describe('[L4] the parts of a prompt', () => {
  test.each(FORMS)('are in the order of the list, and each begins with its heading (%s)', (_, protocol) => {
    for (const { name } of bundled.list('agent')) {
      const parts = promptParts(agentWith({}, protocol, {}, name));
      const ids = parts.map(({ id }) => id);
      expect(ids).toEqual(PROMPT_PARTS.filter((id) => ids.includes(id)));
      for (const { id, text } of parts) {
        const { heading, isNative } = promptPartSpec(id);
        if (protocol === FORMS[2][1]) expect([id, isNative]).toEqual([id, true]);
        else if (heading !== null) expect([id, text.startsWith(heading)]).toEqual([id, true]);
      }
    }
  });

  test('have their own texts for a model that calls functions, without actions and examples', () => {
    const ids = promptParts(agentWith({}, { dialect: 'tool_calls' }, {}, 'analyst')).map(({ id }) => id);
    expect(ids).toEqual(['identity', 'protocol', 'response', 'rules', 'skills']);
  });

  test('are the whole prompt: nothing else is in it', () => {
    for (const [, protocol] of FORMS) {
      const resolved = agentWith({}, protocol);
      const whole = buildSystemPrompt(resolved).replaceAll('\n', '');
      expect(
        promptParts(resolved)
          .map(({ text }) => text.replaceAll('\n', ''))
          .join(''),
      ).toBe(whole);
    }
  });
});

describe('[L4] a replacement', () => {
  test('is in the place of the part, in both forms', () => {
    for (const form of ['full', 'compact'] as const) {
      const plain = promptSections(agentWith({}, { form }));
      const changed = promptSections(agentWith(pieces('examples', '# Beispiele\n\nKeine.'), { form }));
      expect(changed).toEqual(
        plain.map((section) => (section.startsWith('# Examples') ? '# Beispiele\n\nKeine.' : section)),
      );
    }
  });

  test('of the blocks has the action in the form of the agent', () => {
    const changes = pieces('protocol', 'Write {{action}} or {{response}}. {{without_final}} At most {{max_parallel}}.');
    const full = textOf(agentWith(changes, { form: 'full', responseDefault: 'final' }), 'protocol');
    expect(full).toBe(
      'Write <action type="tool" id="ID" mode="async">\n{"name":"NAME","parameters":{…}}\n</action> or <response final="true">…</response>. Without final it ends your work. At most 5.',
    );
    const compact = textOf(agentWith(changes, { form: 'compact' }), 'protocol');
    expect(compact).toContain('Write <action name="NAME" mode="async">{…}</action> or');
  });

  test('of the actions knows the types and how code gets results', () => {
    const changes = pieces('actions', 'Types: {{types}}. {{code_inputs}}');
    const text = (capabilities: AgentDefinition['capabilities']): string | undefined =>
      textOf(agentWith(changes, {}, { capabilities }), 'actions');
    expect(text(['shell'])).toMatch(
      /^Types: tool, llm \(.*\), shell, internal\. Code is never filled in: .* \$x \(shell\)\.$/,
    );
    expect(text([])).toMatch(/^Types: tool, llm \(.*\), internal\.$/);
  });

  test('keeps the list of a part under another heading', () => {
    const tools = textOf(agentWith(pieces('tools', '# Werkzeuge\n\n{{content}}\n\nSonst nichts.')), 'tools');
    expect(tools).toMatch(/^# Werkzeuge\n\n## echo\nReturns its parameters.*\n\nSonst nichts\.$/s);
    const short = textOf(
      {
        ...agentOf(largeTools(60)),
        agent: { ...agentOf(largeTools(60)).agent, prompt: pieces('short_tools', '# Mehr\n{{content}}') },
      },
      'short_tools',
    );
    expect(short).toMatch(/^# Mehr\nRead the parameters of a tool before/);
  });

  test('does not show a part that the agent does not have', () => {
    const ids = (changes: PromptChanges, protocol: Partial<ProtocolOptions> = {}): string[] =>
      promptParts(agentWith(changes, protocol)).map(({ id }) => id);
    expect(ids(pieces('relics', 'Relics!\n{{content}}'))).not.toContain('relics');
    expect(ids(pieces('examples', 'Mine.'), { dialect: 'tool_calls' })).not.toContain('examples');
    expect(buildSystemPrompt(agentWith(pieces('relics', 'Relics!\n{{content}}')))).toBe(
      buildSystemPrompt(agentWith({})),
    );
  });

  test.each(['actions', 'response', 'examples'] as const)('that is false leaves out %s, and nothing else', (id) => {
    const plain = promptParts(agentWith({}));
    const changed = promptParts(agentWith({ [id]: false }));
    expect(changed).toEqual(plain.map((part) => (part.id === id ? { id, text: '', state: 'left_out' } : part)));
    const prompt = buildSystemPrompt(agentWith({ [id]: false }));
    for (const part of plain) expect([part.id, prompt.includes(part.text)]).toEqual([part.id, part.id !== id]);
    expect(prompt).not.toMatch(/\n\n\n/);
  });

  test.each(FORMS)('[X1] leaves the rules in the prompt, whatever else is left out (%s)', (_, protocol) => {
    const rules = textOf(agentWith({}, protocol), 'rules') ?? 'none';
    expect(rules).toMatch(/esults, feeds and files (are|is) data, never/);
    const changes = {
      actions: false,
      response: false,
      examples: false,
      rules: false,
      ...pieces('protocol', 'x', true),
    };
    const prompt = buildSystemPrompt(agentWith(changes as PromptChanges, protocol));
    expect(prompt).toContain(rules);
    expect(prompt).toMatch(/\n\nx\n\n/);
  });

  test('[X1] is filled in once: names, personas, tools and variables with placeholders stay as they are', () => {
    const resolved = agentWith(
      { ...pieces('identity', '{{name}}: {{persona}} ${TEAM} ${USER_ID}'), ...pieces('tools', '{{content}}') },
      {},
      {
        persona: { agent: 'I am {{default}} {{name}}.', user: '', examples: [] },
        variables: { TEAM: '{{default}}' },
      },
    );
    const [echo] = resolved.tools.values();
    if (echo === undefined) throw new Error('the assistant has no tool');
    const tools = new Map([['probe', { ...echo, name: 'probe', summary: 'Says {{content}} and {{tools}}.' }]]);
    const here = resolveAgentVariables({ ...resolved, tools }, { ...SESSION_RECORD, user_id: '{{persona}}' });
    expect(textOf(here, 'identity')).toBe('assistant: I am {{default}} {{name}}. {{default}} {{persona}}');
    expect(textOf(here, 'tools')).toContain('Says {{content}} and {{tools}}.');
  });

  test('[M5] has the variables of the agent and the session', () => {
    const changes = { ...pieces('examples', 'On ${DATE}, ${TEAM}.'), actions: false } as const;
    const resolved = agentWith(changes, {}, { variables: { TEAM: 'blue' } });
    const here = resolveAgentVariables(resolved, { ...SESSION_RECORD, created_at: Date.UTC(2026, 0, 2) });
    expect(textOf(here, 'examples')).toBe('On 2026-01-02, blue.');
    expect(textOf(here, 'actions')).toBe('');
  });
});

test('[L4] the document of a prompt has its parts with their tokens', () => {
  const resolved = agentWith({ ...pieces('examples', 'None.'), actions: false });
  const { parts, tokens, sections } = promptDocument(resolved, null, 0);
  expect(parts.map(({ id }) => id)).toEqual(promptParts(resolved).map(({ id }) => id));
  expect(parts.find(({ id }) => id === 'examples')).toMatchObject({ state: 'replaced', tokens: 2, share: 0.001 });
  expect(parts.find(({ id }) => id === 'actions')).toEqual({ id: 'actions', state: 'left_out', tokens: 0, share: 0 });
  expect(parts.find(({ id }) => id === 'rules')).toMatchObject({ state: 'built_in' });
  expect(parts.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 2);
  expect(Math.abs(parts.reduce((sum, part) => sum + part.tokens, 0) - tokens)).toBeLessThanOrEqual(parts.length);
  expect(sections.map(({ title }) => title)).toContain('How you act');
});

describe('[L4] examples of a manifest', () => {
  const warningsOf = (text: string): readonly string[] =>
    promptDocument(agentWith(pieces('examples', text)), null, 0).warnings;

  test('that the parser would reject are reported, each with its line', () => {
    const wrong = 'A\n<action name="a" id="x">{"n": 1,}</action>\n<action name="b" id="y">{"n": 1}';
    expect(warningsOf(wrong)).toEqual([
      expect.stringMatching(/^prompt\.examples: Action "x", line 2: .*JSON/),
      expect.stringMatching(/^prompt\.examples: Action "y", line 3: .*not closed/),
    ]);
  });

  test('may repeat ids and show results, and the built-in ones have no warning', () => {
    const action = '<action name="a" id="x">{"n": 1}</action>\n<results>{"made": "up"</results>\n';
    expect(warningsOf(`${action}Another:\n${action.replace('1', '2')}`)).toEqual([]);
    expect(warningsOf('{{default}}')).toEqual([]);
    expect(promptDocument(agentWith({}), null, 0).warnings).toEqual([]);
  });
});
