import { describe, expect, test } from 'vitest';
import { compiledFeed, compiledTool } from '../../../src/catalog/original/compiled-in.ts';
import { skipReason } from '../../../src/catalog/original/skipped.ts';
import { bundled } from '../../../src/catalog/bundled.ts';

describe('[M1] tools and feeds that agent-lib compiles into its program', () => {
  test.each([
    ['web_fetch', { tool: 'web_fetch' }],
    ['builtin/json', { tool: 'json_query' }],
    ['exec', { capability: 'shell' }],
    ['fs_read', null],
    ['context_pin', null],
  ])('an import of the tool %s means %j', (name, substitute) => {
    expect(compiledTool(name)).toEqual({ substitute, advice: expect.stringMatching(/^\S.+[^.]$/) });
  });

  test.each([
    ['system_clock', { type: 'internal', action: 'system_clock' }],
    ['builtin/system_stats', { type: 'tool', name: 'system_status' }],
    ['working_directory', null],
  ])('an import of the feed %s means %j', (name, substitute) => {
    expect(compiledFeed(name)).toEqual({ substitute, advice: expect.stringMatching(/^\S.+[^.]$/) });
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
