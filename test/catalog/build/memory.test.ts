/** `memory` of an agent's manifest (M8, C10). */
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { MemoryPolicy } from '../../../src/domain/manifests/agent.ts';
import { SUMMARY_TEMPLATE, fillTemplate, templateIssue } from '../../../src/domain/summary-template.ts';

function read(
  memory: string,
  files: Readonly<Record<string, string>> = {},
): { memory: MemoryPolicy | undefined; problems: string[] } {
  const agent = `kind: Agent\nversion: "1.0"\nname: a\nsummary: Something\npersona: You help.\nmemory: ${memory}\n`;
  const all = Object.entries({ 'agents/a/agent.yaml': agent, ...files }).map(([path, text]) => ({ path, text }));
  const { catalog, problems, warnings } = loadManifests(all);
  return { memory: catalog.agent('a')?.agent.memory, problems: [...problems, ...warnings].map(formatProblem) };
}

describe('[C10] [M8] memory.summary', () => {
  const usual = { by: 'model', tokens: limits.summaryTokens, template: null };
  test.each<[string, MemoryPolicy]>([
    ['{max_turns: 5}', { maxTurns: 5, summarizeAfter: null }],
    ['{summarize_after: 6}', { maxTurns: null, summarizeAfter: 6, summary: usual as MemoryPolicy['summary'] & object }],
    [
      '{summarize_after: 6, summary: {by: lines}}',
      { maxTurns: null, summarizeAfter: 6, summary: { by: 'lines', tokens: limits.summaryTokens, template: null } },
    ],
    [
      '{summarize_after: 6, summary: {tokens: 300, template: "{{previous}} {{ turns }}"}}',
      {
        maxTurns: null,
        summarizeAfter: 6,
        summary: { by: 'model', tokens: 300, template: '{{previous}} {{ turns }}' },
      },
    ],
  ])('%s', (written, expected) => {
    expect(read(written)).toEqual({ memory: expected, problems: [] });
  });

  test('the template may be a file', () => {
    const { memory, problems } = read('{summarize_after: 6, summary: {template: {file: ./summary.txt}}}', {
      'agents/a/summary.txt': 'So far: {{previous}}\nThen: {{turns}}',
    });
    expect(problems).toEqual([]);
    expect(memory?.summary?.template).toBe('So far: {{previous}}\nThen: {{turns}}');
  });

  test.each([
    ['{summary: {by: lines}}', 'no effect without memory.summarize_after'],
    ['{summarize_after: 6, summary: {by: someone}}', 'memory.summary.by'],
    ['{summarize_after: 6, summary: {tokens: 50}}', 'memory.summary.tokens'],
    ['{summarize_after: 6, summary: {token: 500}}', 'unknown field. Did you mean tokens?'],
    ['{summarize_after: 6, summary: {template: "{{previous}}"}}', 'needs the placeholder {{turns}}'],
    ['{summarize_after: 6, summary: {template: "{{turns}}"}}', 'needs the placeholder {{previous}}'],
    ['{summarize_after: 6, summary: {template: "{{previuos}} {{turns}}"}}', 'Did you mean {{previous}}?'],
    ['{summarize_after: 6, summary: {template: {file: ./none.txt}}}', 'none.txt'],
  ])('%s is reported', (written, why) => {
    expect(read(written).problems.join('\n')).toContain(why);
  });
});

describe('[C10] the template of a summary', () => {
  test('the usual one is valid', () => {
    expect(templateIssue(SUMMARY_TEMPLATE)).toBeNull();
    expect(templateIssue(`{{previous}}{{turns}}${'x'.repeat(limits.summaryTemplateChars)}`)).toContain('allowed:');
  });

  test('each placeholder is filled in once: a value is data', () => {
    const values = { previous: '{{turns}} $& $1', turns: '{{tokens}}', tokens: '9' };
    expect(fillTemplate('{{previous}}|{{ turns }}|{{tokens}}|{other}', values)).toBe(
      '{{turns}} $& $1|{{tokens}}|9|{other}',
    );
  });
});
