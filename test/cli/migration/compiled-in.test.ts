import { describe, expect, test } from 'vitest';
import { migrated } from '../../support/migrated.ts';
import { compiledFeed, compiledTool } from '../../../cli/migration/tool/compiled-in.ts';
import { skipReason } from '../../../cli/migration/tool/skipped.ts';
import { bundled } from '../../support/bundled.ts';

describe('[M1] tools and feeds that agent-lib compiles into its program', () => {
  test.each([
    ['web_fetch', { tool: 'web_fetch' }],
    ['builtin/json', { tool: 'json_query' }],
    ['exec', { capability: 'shell' }],
    ['fs_read', {}],
    ['context_pin', {}],
  ])('an import of the tool %s means %j', (name, substitute) => {
    expect(compiledTool(name)).toEqual({ ...substitute, advice: expect.stringMatching(/^\S.+[^.]$/) });
  });

  test.each([
    ['system_clock', { internal: 'system_clock' }],
    ['builtin/system_stats', { tool: 'system_status' }],
    ['working_directory', {}],
  ])('an import of the feed %s means %j', (name, substitute) => {
    expect(compiledFeed(name)).toEqual({ ...substitute, advice: expect.stringMatching(/^\S.+[^.]$/) });
  });

  test.each(['web_fetch', 'json_query', 'system_status'])('the bundled tool %s exists', (name) => {
    expect(bundled.tool(name)).not.toBeNull();
  });

  test.each(['mine', '__proto__', 'constructor', 'builtin/mine'])('%s is no such name', (name) => {
    expect([compiledTool(name), compiledFeed(name)]).toEqual([null, null]);
  });

  test.each([
    [
      'a compiled tool',
      { kind: 'Tool', name: 'exec', input_schema: {} },
      /^"exec" has no script: .* <action type="shell">/,
    ],
    ['one that says builtin', { kind: 'Tool', name: 'ask_tool', runtime: 'builtin' }, /^"ask_tool" has no script/],
    ['a feed without a script', { kind: 'Feed', name: 'own' }, /^"own" has no script: .* give it a runtime/],
    ['a compiled feed', { kind: 'Feed', name: 'system_clock' }, /internal source system_clock$/],
    ['a tool of another name', { kind: 'Tool', name: 'own' }, null],
    ['a tool with a script', { kind: 'Tool', name: 'exec', runtime: 'bash', entrypoint: 'a.sh' }, null],
    ['a tool with an implementation', { kind: 'Tool', name: 'json', implementation: {} }, null],
  ])('%s', (_what, document, expected) => {
    const reason = skipReason('tool', document);
    if (expected === null) expect(reason).toBeNull();
    else expect(reason).toMatch(expected);
  });
});

test('[M1] a manifest of a compiled tool is skipped with a warning, and the others load', () => {
  const { entries, problems, warnings } = migrated([
    { path: 'm/exec.yml', text: 'kind: Tool\nname: exec\nversion: "3.0"\nsummary: Runs commands\ninput_schema: {}\n' },
    { path: 'm/clock.yml', text: 'kind: Feed\nname: system_clock\nversion: "1.0"\nsummary: The time\n' },
    {
      path: 'm/own.yml',
      text: 'kind: Tool\nname: own\nversion: "1"\nsummary: s\nimplementation: { type: script, runtime: shell, script: ls }\n',
    },
  ]);
  expect(entries.map(({ definition }) => definition.name)).toEqual(['own']);
  expect(problems).toEqual([]);
  expect(warnings).toMatchObject([
    { file: 'm/clock.yml', line: 2, field: 'name', message: expect.stringMatching(/^"system_clock" has no script/) },
    { file: 'm/exec.yml', line: 2, field: 'name', message: expect.stringMatching(/^"exec" has no script/) },
  ]);
});
