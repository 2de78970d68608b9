/** The shipped dataset, and what a dataset is checked for. */
import { describe, expect, test } from 'vitest';
import { KINDS, readDataset } from '../../../cli/fluency/tasks/dataset.ts';
import type { Dataset } from '../../../cli/fluency/tasks/dataset.ts';
import { FORM_NAMES } from '../../../cli/fluency/tasks/forms.ts';
import { idealPlan } from '../../../cli/fluency/tasks/ideal-plan.ts';
import { checkAnswer } from '../../../cli/fluency/score/check-answer.ts';
import { BUILTIN_TOOLS, nominalMs } from '../../../cli/fluency/tasks/tools.ts';
import { nativeTools } from '../../../src/protocol/native/native-tools.ts';
import { buildSystemPrompt } from '../../../src/protocol/prompt/prompt.ts';
import { agents, dataset } from './kit.ts';

describe('[O4] the shipped dataset', () => {
  test('has at least sixty tasks, ten of each kind', () => {
    expect(dataset.tasks.length).toBeGreaterThanOrEqual(60);
    for (const kind of KINDS) {
      expect([kind, dataset.tasks.filter((task) => task.kind === kind).length >= 10]).toEqual([kind, true]);
    }
  });

  test('has at least forty tasks whose ideal plan starts calls at once', () => {
    const msOf = nominalMs(dataset.tools);
    const parallel = dataset.tasks.filter((task) => {
      const { starts } = idealPlan(task, 'full', msOf).schedule;
      return new Set(starts.values()).size < starts.size;
    });
    expect(parallel.length).toBeGreaterThanOrEqual(40);
  });

  test.each(FORM_NAMES)('tells no expected value before a tool is called (%s)', (form) => {
    const told = dataset.tasks.filter((task) => {
      const resolved = agents.agentFor(task, form, null);
      const functions = form === 'tool_calls' ? JSON.stringify(nativeTools(resolved)) : '';
      const { lacks: _, ...expected } = task.expect;
      return checkAnswer(expected, `${buildSystemPrompt(resolved)}\n${functions}\n${task.message}`) === null;
    });
    expect(told.map(({ name }) => name)).toEqual([]);
  });

  test('uses every tool', () => {
    const used = new Set(dataset.tasks.flatMap(({ plan }) => plan.map(({ tool }) => tool)));
    expect([...dataset.tools.keys()].filter((name) => !used.has(name))).toEqual([]);
  });
});

const TOOL = `tools:
  look:
    summary: Looks.
    parameters: [{ name: what, type: string, required: true }]
    returns: { type: object }
    ms: 100
    data: { a: 1 }
    result: "{found: data.a}"
`;
const TASK = {
  name: 'look-once',
  message: 'Look.',
  tools: ['look'],
  plan: [{ id: 'a', tool: 'look', parameters: { what: 'x' } }],
  answer: '$a.found',
  expect: { contains: [1] },
};

function read(task: object, tools = TOOL): Dataset {
  const yaml = JSON.stringify({ kind: 'parallel', tasks: [task] });
  return readDataset({ name: 'tools.yaml', yaml: tools }, [{ name: 'own.yaml', yaml }], BUILTIN_TOOLS);
}

test('[O4] a dataset of one task is read, with the usual slots', () => {
  expect(read(TASK).tasks).toMatchObject([{ name: 'look-once', kind: 'parallel', slots: 8 }]);
});

test('[O4] the text of a task is in its message, and its checksum is expected', () => {
  const { tasks } = read({
    ...TASK,
    message: 'Store {{text}} now',
    text: 'a $b\n',
    expect: { checksums: ['{{text}}'] },
  });
  expect(tasks).toMatchObject([
    { message: 'Store a $b\n now', expect: { contains: [expect.stringMatching(/^[0-9a-f]{8}$/)] } },
  ]);
});

test.each<[string, object, string]>([
  [
    'an unknown member of a call',
    { ...TASK, plan: [{ ...TASK.plan[0], sess: ['a'] }] },
    'tasks[0].plan[0]: "sess" is unknown (known: id, tool, parameters, after, sees, fails). Did you mean "sees"?',
  ],
  ['an unknown tool', { ...TASK, tools: ['lok'] }, 'own.yaml: task "look-once": the tool "lok" is unknown'],
  [
    'a reference to a later call',
    { ...TASK, plan: [{ id: 'a', tool: 'look', parameters: { what: '$b.x' } }] },
    'the earlier call "b" is unknown',
  ],
  ['two calls with an id', { ...TASK, plan: [TASK.plan[0], TASK.plan[0]] }, 'the call "a" is a duplicate'],
  ['no expectation', { ...TASK, expect: {} }, 'expect needs contains, labelled, checksums or json'],
  ['too many slots', { ...TASK, slots: 33 }, 'tasks[0].slots: '],
])('[O4] a dataset with %s is refused', (_, task, message) => {
  expect(() => read(task)).toThrow(message);
});

test('[O4] a tool with an unknown member is refused', () => {
  expect(() => read(TASK, TOOL.replace('ms:', 'mss: 1\n    ms:'))).toThrow(
    'tools.yaml: tools.look: "mss" is unknown (known: summary, parameters, returns, ms, data, result, digest, fails_first)',
  );
});

test('[O4] two tasks with a name are refused', () => {
  const yaml = JSON.stringify({ kind: 'repair', tasks: [TASK] });
  const files = ['a.yaml', 'b.yaml'].map((name) => ({ name, yaml }));
  expect(() => readDataset({ name: 'tools.yaml', yaml: TOOL }, files, BUILTIN_TOOLS)).toThrow(
    'the task "look-once" is a duplicate',
  );
});
