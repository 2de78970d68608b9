/** Imports in the forms of the original (M2). */
import { describe, expect, test } from 'vitest';
import { migrated as load } from '../../support/migrated.ts';
import { agent, tool } from '../../support/manifests.ts';

describe('forms of an import', () => {
  test.each([
    ['./tools/look', 'understood as the file agents/a/tools/look/tool.yml'],
    ['./tools/look/tool', 'understood as the file agents/a/tools/look/tool.yml'],
    ['tools/look/tool.yml', null],
    ['shared/plain', 'understood as the file shared/plain.yaml'],
    ['shared/plain.yaml', 'understood as the file shared/plain.yaml'],
    ['plain.yml', 'understood as the tool "plain"'],
    ['builtin/plain', 'builtin/ is not part of the name'],
    ['look', 'understood as the tool in agents/a/tools/look/tool.yml'],
    ['/home/somebody/project/agents/a/tools/look/tool.yml', null],
  ])('[M2] %s', (written, note) => {
    const loaded = load({
      'agents/a/agent.yml': agent('a', `import: {tools: ["${written}"]}`),
      'agents/a/tools/look/tool.yml': tool('look_around'),
      'shared/plain.yaml': tool('plain'),
    });
    expect(loaded.problems).toEqual([]);
    expect(loaded.warnings.map(({ message }) => message)).toEqual(note === null ? [] : [note]);
    expect(loaded.catalog.agent('a')?.tools.size).toBe(1);
  });

  test('[M2] a bare name is also the folder of an agent beside the importer, or above it', () => {
    const loaded = load({
      'x/agents/lead/agent.yml': agent('lead', 'import: {agents: [reader, writer]}'),
      'x/agents/lead/agents/reader/agent.yml': agent('Reader-1'),
      'x/agents/writer/agent.yml': agent('Writer-1'),
    });
    expect(loaded.problems).toEqual([]);
    expect([...(loaded.catalog.agent('lead')?.agents.keys() ?? [])]).toEqual(['Reader-1', 'Writer-1']);
  });
});
