/** Agents, tools and workflows as tools of the Model Context Protocol (E4). */
import { describe, expect, test } from 'vitest';
import type { ExposedManifests } from '../../../src/domain/catalog.ts';
import { parseArtifactUri, toolsOf } from '../../../src/surfaces/mcp/index.ts';
import { artifactUri } from '../../../src/surfaces/mcp/uri.ts';

function exposed(agents: string[], tools: string[], workflows: string[]): ExposedManifests {
  const summary = 'A summary.';
  return {
    agents: agents.map((name) => ({ name, summary })),
    tools: tools.map((name) => ({
      name,
      summary,
      parameters: { type: 'object' },
      effects: 'pure',
      agent: 'assistant',
    })),
    workflows: workflows.map((name) => ({ name, summary, inputs: { type: 'object' } })),
  };
}

describe('[E4] names', () => {
  test.each([
    ['are those of the manifests', [['a'], ['b'], ['c']], ['a', 'b', 'c']],
    [
      'that two kinds have get the kind as a prefix',
      [['a'], ['a', 'b'], ['a', 'b']],
      ['a', 'tool_a', 'b', 'workflow_a', 'workflow_b'],
    ],
    ['with a prefix are not those of others', [['a', 'tool_a'], ['a'], []], ['a', 'tool_a', 'tool_tool_a']],
    [
      'with a prefix give way to a later one of that name',
      [['a'], ['a', 'tool_a'], []],
      ['a', 'tool_tool_a', 'tool_a'],
    ],
  ])('%s', (_, [agents = [], tools = [], workflows = []], expected) => {
    const names = toolsOf(exposed(agents, tools, workflows)).map(({ listed }) => listed.name);
    expect(names).toEqual(expected);
    expect(new Set(names).size).toBe(names.length);
  });
});

test.each([
  ['pure', [true, true, false]],
  ['idempotent', [false, true, true]],
  ['unsafe', [false, false, true]],
] as const)('[E4] effects "%s" are hints', (effects, [readOnlyHint, idempotentHint, destructiveHint]) => {
  const tool = { name: 't', summary: 's', parameters: {}, effects, agent: 'a' };
  const [listed] = toolsOf({ agents: [], tools: [tool], workflows: [] });
  expect(listed?.listed.annotations).toEqual({ readOnlyHint, idempotentHint, destructiveHint });
});

describe('[E4] the address of an artifact', () => {
  const id = `ses_${'a'.repeat(32)}`;
  test('is read as it was written', () => {
    const named = { sessionId: id, artifactId: 'art_0123456789ab_12_1' };
    expect(parseArtifactUri(artifactUri(named.sessionId, named.artifactId))).toEqual(named);
  });
  test.each([
    'file:///etc/passwd',
    `cortex://sessions/${id}/artifacts/../runs`,
    `cortex://sessions/${id}/artifacts/art_1?x=1`,
    `cortex://sessions/other/artifacts/art_1`,
    `cortex://sessions/${id}/artifacts/art_1\n`,
  ])('is not %j', (uri) => {
    expect(parseArtifactUri(uri)).toBeNull();
  });
});
