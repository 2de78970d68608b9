/** What a session learns about results, for the prompts of later runs (L4). */
import { describe, expect, test } from 'vitest';
import { bundled } from '../../support/bundled.ts';
import type { Json } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import type { LearnedShapes } from '../../../src/domain/shape.ts';
import { undescribedTargets } from '../../../src/domain/undescribed-targets.ts';
import { RunShapes } from '../../../src/engine/run/run-shapes.ts';
import { runText, say, sessionKit } from '../../support/session-kit.ts';

const echo = bundled.tool('echo');
const archivist = bundled.agent('archivist');
const keeper = bundled.agent('notes_keeper');
if (echo === null || archivist === null || keeper === null) throw new Error('a bundled manifest is missing');
const tool = (name: string, returns: ToolDefinition['returns'] = null): ToolDefinition => ({ ...echo, name, returns });
const agentWith = (tools: readonly ToolDefinition[], shapes?: LearnedShapes): ResolvedAgent => ({
  ...archivist,
  tools: new Map(tools.map((one) => [one.name, one])),
  ...(shapes === undefined ? {} : { shapes }),
});
const call = (name: string) => ({ type: 'tool' as const, name, parameters: {} });

describe('[L4] the shapes of a run', () => {
  test('are those of targets that do not say what they return', () => {
    const shapes = new RunShapes(agentWith([tool('open'), tool('described', { type: 'object' })]));
    shapes.note(call('open'), { id: 1 });
    shapes.note(call('described'), { id: 1 });
    shapes.note(call('unknown'), { id: 1 });
    expect(shapes.take()).toEqual({ 'tool/open': { 'id~': 'number' } });
    expect(shapes.take()).toEqual({});
  });

  test('are passed on only if they differ from the known ones', () => {
    const known = { 'tool/open': { hits: [{ id: 'number' }], next: 'text' } } as const;
    const learned = (output: Json): LearnedShapes => {
      const shapes = new RunShapes(agentWith([tool('open')], known));
      shapes.note(call('open'), output);
      return shapes.take();
    };
    expect(learned({ hits: [{ id: 7 }], next: 'x' })).toEqual({});
    expect(learned({ hits: [], next: null })).toEqual({});
    expect(learned({ hits: [] })).toEqual({ 'tool/open': { hits: [{ id: 'number' }], 'next?': 'text' } });
    expect(learned({ hits: [], next: null, more: 'x'.repeat(limits.storedShapeChars) })).toEqual({
      'tool/open': { hits: [{ id: 'number' }], next: 'text', 'more?~': 'text' },
    });
  });

  test('[X1] confirm the keys of earlier runs, not those of the same run', () => {
    const shapes = new RunShapes(agentWith([tool('open')], { 'tool/open': { 'id~': 'number' } }));
    shapes.note(call('open'), { at: 'x' });
    shapes.note(call('open'), { at: 'y', id: 7 });
    expect(shapes.take()).toEqual({ 'tool/open': { 'id?': 'number', 'at?~': 'text' } });
    // The run waits for a person and continues.
    shapes.note(call('open'), { at: 'z', id: 8 });
    expect(shapes.take()).toEqual({});
  });

  test('of results that are keyed by data settle', () => {
    let shapes: LearnedShapes = {};
    let writes = 0;
    for (const name of ['john_doe', 'ann_lee', 'bob', 'eve', 'zoe', 'max', 'tim', 'ida']) {
      const run = new RunShapes(agentWith([tool('open')], shapes));
      run.note(call('open'), { [name]: { age: 7 } });
      const taken = run.take();
      if (Object.keys(taken).length > 0) writes += 1;
      shapes = { 'tool/open': taken['tool/open'] ?? shapes['tool/open'] ?? 'any' };
    }
    expect([writes, shapes]).toEqual([2, { 'tool/open': { '…': { age: 'number' } } }]);
  });

  test('of a relic have the name of the endpoint, however it is called', () => {
    const relics = new Map(
      [...keeper.relics].map(([name, relic]) => {
        const endpoints = Object.entries(relic.endpoints).map(
          ([key, one]) => [key, { ...one, returns: null }] as const,
        );
        return [name, { ...relic, endpoints: Object.fromEntries(endpoints) }];
      }),
    );
    expect(undescribedTargets({ ...keeper, relics })).toContain('relic/notes.get');
    for (const named of [
      { type: 'relic' as const, name: 'notes.get', parameters: {} },
      { type: 'relic' as const, name: 'notes', parameters: { endpoint: 'get' } },
    ]) {
      const shapes = new RunShapes({ ...keeper, relics });
      shapes.note(named, 'x');
      expect(shapes.take()).toEqual({ 'relic/notes.get': 'text' });
    }
  });

  test('are limited in number', () => {
    const tools = Array.from({ length: limits.learnedShapesPerRun + 5 }, (_, index) => tool(`t${index}`));
    const shapes = new RunShapes(agentWith(tools));
    for (const { name } of tools) shapes.note(call(name), 1);
    expect(Object.keys(shapes.take())).toHaveLength(limits.learnedShapesPerRun);
  });
});

describe('[L4] a session', () => {
  const kitFor = async (): Promise<{ kit: Awaited<ReturnType<typeof sessionKit>>; learned: LearnedShapes[] }> => {
    const learned: LearnedShapes[] = [];
    const kit = await sessionKit({
      tools: [tool('open')],
      shapes: { learn: (shapes) => void learned.push(shapes) },
      script: [
        '<action name="open" id="a">{"hits":[{"id":1}]}</action><response final="true">$a.hits[0].id</response>',
      ],
    });
    return { kit, learned };
  };

  test('passes on what a run has learned when it has answered', async () => {
    const { kit, learned } = await kitFor();
    await say(kit, 'go');
    expect(learned).toEqual([{ 'tool/open': { 'hits~': [{ 'id~': 'number' }] } }]);
  });

  test('also of a program, and nothing of a failed action', async () => {
    const { kit, learned } = await kitFor();
    await runText(
      kit,
      '<action name="open" id="a" retry="1">{"fail_times":9}</action><action name="open" id="b">{"n":[]}</action>',
    );
    expect(learned).toEqual([{ 'tool/open': { 'n~': ['any'] } }]);
    await runText(kit, '<response final="true">hi</response>');
    expect(learned).toHaveLength(1);
  });
});
