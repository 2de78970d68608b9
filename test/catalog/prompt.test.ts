/** `prompt` in the manifests of agents: parts of the system prompt that are replaced or left out (L4). */
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../src/catalog/check/problem.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import { fromPinned, toPinned } from '../../src/catalog/store/pinned.ts';
import { limits } from '../../src/domain/limits.ts';
import { PROMPT_PARTS, promptPartSpec } from '../../src/domain/prompt-parts.ts';
import { buildSystemPrompt } from '../../src/protocol/prompt/prompt.ts';

const manifest = (prompt: string, more = ''): string =>
  `kind: Agent\nversion: "1.0"\nname: a\nsummary: Something\npersona: You help.\nprompt: ${prompt}\n${more}`;
const load = (text: string, files: { path: string; text: string }[] = []) =>
  loadManifests([{ path: 'agents/a.yaml', text }, ...files]);

describe('[L4] prompt in a manifest', () => {
  test('has text, files, and false; placeholders are pieces of their own', () => {
    const { catalog, problems, warnings } = load(
      manifest(`
  actions: false
  examples: { file: ../prompts/examples.md }
  protocol: "A {{ action }} and {{response}}, {{{{literal}}."`),
      [{ path: 'prompts/examples.md', text: '# Beispiele\n\n{{content}}\n' }],
    );
    expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
    expect(catalog.agent('a')?.agent.prompt).toEqual({
      actions: false,
      examples: ['# Beispiele\n\n', { value: 'content' }],
      protocol: ['A ', { value: 'action' }, ' and ', { value: 'response' }, ', ', '{{', 'literal}}.'],
    });
  });

  test('is absent if it changes nothing', () => {
    expect(load(manifest('{}')).catalog.agent('a')?.agent).not.toHaveProperty('prompt');
  });

  test.each<[prompt: string, message: string]>([
    ['{exampels: x}', 'prompt.exampels: unknown field. Did you mean examples'],
    ['{rules: x}', 'prompt.rules: cannot be replaced or left out: it tells the model what is data'],
    ['{rules: false}', 'prompt.rules: cannot be replaced or left out'],
    ['{protocol: false}', 'prompt.protocol: must be text, or a map {file: path}, found boolean false'],
    ['{tools: false}', 'prompt.tools: must be text, or a map {file: path}'],
    ['{examples: true}', 'prompt.examples: must be text, a map {file: path}, or false'],
    ['{examples: }', 'prompt.examples: must be text, a map {file: path}, or false'],
    ['{examples: " "}', 'prompt.examples: is empty; false leaves the part out'],
    ['{user: ""}', 'prompt.user: is empty'],
    ['{examples: {file: none.md}}', 'names the file "none.md", but there is no agents/none.md'],
    [
      '{examples: "{{contents}}"}',
      'has the unknown placeholder {{contents}} (known: {{default}}, {{content}}). Did you mean {{content}}?',
    ],
    ['{response: "{{action}}"}', 'has the unknown placeholder {{action}} (known: {{default}}, {{without_final}})'],
    ['{examples: "{{default}} {{default}}"}', 'has the placeholder {{default}} more than once'],
    ['{examples: "{{default"}', 'has a "{{" without "}}"; a literal "{{" is written "{{{{"'],
    ['{protocol: "{{action}}"}', 'needs the placeholder {{response}}, or {{default}} for the built-in text'],
    ['{identity: "You are X."}', 'needs the placeholder {{persona}}'],
    ['{tools: "# Werkzeuge"}', 'needs the placeholder {{content}}'],
    [
      `{examples: ${'x'.repeat(limits.promptPartChars + 1)}}`,
      `has ${limits.promptPartChars + 1} characters (allowed: ${limits.promptPartChars})`,
    ],
  ])('a mistake is refused, and the message says what is allowed (%#)', (prompt, message) => {
    const { catalog, problems } = load(manifest(prompt));
    expect(problems.map(formatProblem).join('\n')).toContain(message);
    expect(catalog.agent('a')).toBeNull();
  });

  test('may have the built-in text of every part but the rules', () => {
    const ids = PROMPT_PARTS.filter((id) => promptPartSpec(id).change !== 'fixed');
    expect(PROMPT_PARTS.filter((id) => !ids.includes(id))).toEqual(['rules']);
    const lines = ids.map((id) => `\n  ${id}: "{{default}}"`).join('');
    const plain = load(manifest('{}')).catalog.agent('a');
    const changed = load(manifest(lines)).catalog.agent('a');
    if (plain === null || changed === null) throw new Error('the agent did not load');
    expect(Object.keys(changed.agent.prompt ?? {})).toEqual(ids);
    const words = (text: string): string[] => text.split(/\s+/);
    expect(words(buildSystemPrompt(changed))).toEqual(words(buildSystemPrompt(plain)));
  });

  test.each(['protocol: {dialect: tool_calls}', 'cognitive_engine: {dialect: tool_calls}'])(
    '[P17] parts that a model that calls functions does not have are a warning: %s',
    (dialect) => {
      const prompt = '{examples: x, actions: false, protocol: Call functions., identity: "{{persona}}"}';
      const { catalog, problems, warnings } = load(manifest(prompt, dialect));
      expect(problems).toEqual([]);
      expect(warnings.map(formatProblem)).toEqual([
        expect.stringContaining('prompt.examples: has no effect: with the dialect tool_calls'),
        expect.stringContaining('prompt.actions: has no effect'),
      ]);
      expect(catalog.agent('a')?.agent.prompt?.protocol).toEqual(['Call functions.']);
    },
  );

  test('[P17] the only words about how to answer cannot be left out', () => {
    const answering = (bareText: string): string[] => {
      const protocol = `protocol: {dialect: tool_calls, bare_text: ${bareText}}`;
      return load(manifest('{response: false}', protocol)).problems.map(formatProblem);
    };
    expect(answering('answer')).toEqual([]);
    expect(answering('reject').join('\n')).toContain('prompt.response: must stay: with protocol.bare_text reject');
  });

  test('[M4] is pinned with the agent', () => {
    const agent = load(manifest('{examples: "Mine: {{content}}", actions: false}')).catalog.agent('a');
    if (agent === null) throw new Error('the agent did not load');
    const pinned = fromPinned(toPinned(agent));
    expect('agent' in pinned && buildSystemPrompt(pinned)).toBe(buildSystemPrompt(agent));
    expect(buildSystemPrompt(agent)).toContain('Mine: ## Example:');
  });
});
