/** A sandbox is asked for as soon as an action's opening tag says what it needs (R2). */
import { expect, test } from 'vitest';

import type { RunnerNeeds } from '../../../src/domain/manifest.ts';
import type { ModelDelta, PrewarmHint, RunnerClient } from '../../../src/domain/ports.ts';
import { say, sessionKit } from '../../support/session-kit.ts';

function spyingRunner(hints: PrewarmHint[]): RunnerClient {
  const unexpected = (): Promise<never> => Promise.reject(new Error('not part of this test'));
  return {
    run: unexpected,
    lookup: unexpected,
    callRelic: unexpected,
    stopRelics: () => Promise.resolve(),
    prewarm: (hint) => void hints.push(hint),
    health: () => Promise.resolve(null),
  };
}

async function hintsOf(
  pieces: readonly string[],
  capabilities: readonly ('python' | 'shell')[] = ['python', 'shell'],
  needs: RunnerNeeds = {},
) {
  const hints: PrewarmHint[] = [];
  const kit = await sessionKit({
    runner: spyingRunner(hints),
    agent: (agent) => ({ ...agent, capabilities, runner: needs }),
    executors: {
      python: async () => ({ ok: true, output: 1 }),
      shell: async () => ({ ok: true, output: 1 }),
      tool: async () => ({ ok: true, output: 1 }),
    },
    async *stream(): AsyncGenerator<ModelDelta> {
      for (const text of pieces) {
        yield { type: 'text', text };
        // each piece is a turn of its own
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
      yield { type: 'finish', reason: 'stop' };
    },
  });
  await say(kit, 'go');
  return hints.map(({ kind, runtime, sandbox, labels }) => ({
    kind,
    runtime,
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(labels === undefined ? {} : { labels }),
  }));
}

const END = '<response final="true">done</response>';

test('[R2] python and shell are prewarmed while their body is being written', async () => {
  const text = [
    '<action type="python" id="a">',
    '{"code": "1"}</action><action type="shell"',
    ' id="b">',
    '{"command":"ls"}</action>',
    END,
  ];
  expect(await hintsOf(text)).toEqual([
    { kind: 'python', runtime: null },
    { kind: 'shell', runtime: null },
  ]);
});

test('[R2] the level and the labels that the manifest asks for are those of the hint', async () => {
  const needs = { sandbox: 'docker', labels: ['gpu'] } as const;
  const text = ['<action type="python" id="a">', '{"code": "1"}</action>', END];
  expect(await hintsOf(text, ['python'], needs)).toEqual([{ kind: 'python', runtime: null, ...needs }]);
});

test('[R2] an action that comes whole needs no hint', async () => {
  expect(await hintsOf([`<action type="python" id="a">{"code": "1"}</action>${END}`])).toEqual([]);
});

test('[X4] what the agent may not run is not prewarmed', async () => {
  expect(await hintsOf(['<action type="python" id="a">', '{"code": "1"}</action>', END], ['shell'])).toEqual([]);
});

test('[R2] a script tool is prewarmed with its interpreter once its name is known, a built-in never', async () => {
  const call = (name: string): string[] => [
    `<action type="tool" name="${name}" id="a">`,
    '{"text": "x"}</action>',
    END,
  ];
  expect(await hintsOf(call('text_stats'))).toEqual([{ kind: 'tool', runtime: 'python3' }]);
  expect(await hintsOf(call('calculator'))).toEqual([]);
  expect(await hintsOf(call('nobody'))).toEqual([]);
});
