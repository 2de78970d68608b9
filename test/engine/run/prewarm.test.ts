/** A sandbox is requested as soon as the opening tag of an action determines it (R2). */
import { describe, expect, test } from 'vitest';

import { bundled } from '../../support/bundled.ts';
import { plainDeclaration } from '../../../src/domain/action.ts';
import type { ActionType } from '../../../src/domain/action.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import type { PrewarmHint, RunnerClient } from '../../../src/domain/ports/runner.ts';
import type { ProtocolEvent } from '../../../src/domain/protocol-event.ts';
import { prewarmHint } from '../../../src/engine/actions/prewarm-hint.ts';
import { SESSION_ID } from '../../journal/journal-kit.ts';
import { toolOf } from '../../support/definitions.ts';
import { say, sessionKit } from '../../support/session-kit.ts';

function spyingRunner(hints: PrewarmHint[]): RunnerClient {
  const unexpected = (): Promise<never> => Promise.reject(new Error('not part of this test'));
  return {
    run: unexpected,
    lookup: unexpected,
    callRelic: unexpected,
    stopRelics: () => Promise.resolve(),
    forgetWorkspace: () => Promise.resolve(),
    prewarm: (hint) => void hints.push(hint),
    health: () => Promise.resolve(null),
  };
}

async function hintsOf(pieces: readonly string[], capabilities: readonly ('python' | 'shell')[] = ['python', 'shell']) {
  const hints: PrewarmHint[] = [];
  const kit = await sessionKit({
    runner: spyingRunner(hints),
    agent: (agent) => ({ ...agent, capabilities }),
    executors: {
      python: async () => ({ ok: true, output: 1 }),
      shell: async () => ({ ok: true, output: 1 }),
    },
    async *stream(): AsyncGenerator<ModelDelta> {
      for (const text of pieces) {
        yield { type: 'text', text };
        // each piece is a separate turn
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
      yield { type: 'finish', reason: 'stop' };
    },
  });
  await say(kit, 'go');
  expect(hints.every(({ session }) => session === SESSION_ID)).toBe(true);
  return hints.map(({ kind, runtime }) => ({ kind, runtime }));
}

const END = '<response final="true">done</response>';

test('[R2] python and shell are prewarmed while their body streams', async () => {
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

test('[R2] an action that arrives whole gives no hint', async () => {
  expect(await hintsOf([`<action type="python" id="a">{"code": "1"}</action>${END}`])).toEqual([]);
});

test('[X4] an action that the agent cannot run is not prewarmed', async () => {
  expect(await hintsOf(['<action type="python" id="a">', '{"code": "1"}</action>', END], ['shell'])).toEqual([]);
});

describe('[R2] the hint of an opening tag', () => {
  const script = { type: 'script', runtime: 'node', source: '', memoryMb: null, cpus: null } as const;
  const needs = { sandbox: 'docker', labels: ['gpu'] } as const;
  const found = bundled.agent('assistant');
  if (found === null) throw new Error('the bundled catalogue has no assistant');
  const agent: ResolvedAgent = {
    ...found,
    agent: { ...found.agent, capabilities: ['python', 'shell', 'docker'], runner: needs },
    tools: new Map([
      ['plain', toolOf(script)],
      ['needy', toolOf({ ...script, runtime: 'shell', ...needs })],
    ]),
  };
  const opened = (actionType: ActionType | null, name: string | null): ProtocolEvent => ({
    type: 'action_opened',
    actionType,
    name,
    mode: null,
  });
  const action = plainDeclaration({ id: 'a', type: 'shell', mode: 'async', name: 'shell' });
  const declared: ProtocolEvent = { type: 'action_declared', action };
  const rejected: ProtocolEvent = {
    type: 'action_rejected',
    rejection: { ...action, code: 'unclosed', message: '', line: 1, column: 1, excerpt: '' },
  };
  const shell = opened('shell', null);
  const text: ProtocolEvent = { type: 'text', delta: 'x' };

  test.each<[string, ProtocolEvent, ReturnType<typeof prewarmHint>]>([
    ['python, with the needs of the agent', opened('python', null), { kind: 'python', runtime: null, ...needs }],
    ['shell, with the needs of the agent', shell, { kind: 'shell', runtime: null, ...needs }],
    ['docker, which runs in its own container', opened('docker', null), { kind: 'docker', runtime: null }],
    ['a tool, with its own needs', opened('tool', 'needy'), { kind: 'tool', runtime: 'shell', ...needs }],
    ['a tool without needs', opened('tool', 'plain'), { kind: 'tool', runtime: 'node' }],
    ['a tool without a type', opened(null, 'plain'), { kind: 'tool', runtime: 'node' }],
    ['a tag without a name', opened('tool', null), null],
    ['a tag without a type and a name', opened(null, null), null],
    ['another type with the name of a tool', opened('agent', 'plain'), null],
    ['a name that the agent does not have', opened('tool', 'other'), null],
  ])('%s', (_name, event, hint) => {
    expect(prewarmHint([event], agent)).toStrictEqual(hint);
  });

  test.each<[string, ProtocolEvent[], boolean]>([
    ['no event', [], false],
    ['no action', [text], false],
    ['text after the tag', [shell, text], true],
    ['an action that is complete', [shell, declared], false],
    ['an action that was rejected', [shell, rejected], false],
    ['another one after a complete one', [shell, declared, shell], true],
    ['another one after a rejected one', [rejected, shell], true],
  ])('is given while the action is open: %s', (_name, events, given) => {
    expect(prewarmHint(events, agent) !== null).toBe(given);
  });
});
