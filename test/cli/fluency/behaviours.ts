/**
 * Behaviours of models, from careful to sloppy. Each reacts only to the runtime's feedback: if the feedback does not name
 * the error, it gives up, and the task is not solved.
 */
import { finalResponse } from '../../../cli/fluency/tasks/ideal-text.ts';
import { acting, asAction, giveUp, native, waiting, written } from './models.ts';
import type { Model, ScriptedOutput, WrittenCall } from './models.ts';
import { plainAnswer } from './situation.ts';
import type { Situation } from './situation.ts';

export interface Behaviour {
  readonly name: string;
  readonly sloppy: boolean;
  /** Generations that a careful model needs for the same approach. */
  readonly careful: number;
  /** Members of `protocol` of the agent's manifest. */
  readonly bareText?: 'reject';
  readonly model: Model;
}

/** All calls of the task at once: its tasks need nothing to be read first. */
function callsOf(situation: Situation): WrittenCall[] {
  return situation.task.plan.map((call) => written(call, situation));
}

function planText(situation: Situation): string {
  const actions = callsOf(situation).map((call) => asAction(call, situation));
  return `<thought>I know what to do.</thought>\n${actions.join('\n')}`;
}

function whole(situation: Situation): ScriptedOutput {
  return { text: `${planText(situation)}\n${finalResponse(situation.task.answer)}` };
}

/** Corrects its first attempt when the feedback has this sign. */
function mends(first: Model, sign: string): Model {
  return (situation) => {
    if (situation.generation === 1) return first(situation);
    return situation.told.includes(sign) ? whole(situation) : giveUp(situation);
  };
}

function withFirst(situation: Situation, change: (first: WrittenCall) => string): ScriptedOutput {
  const [first, ...others] = callsOf(situation);
  const changed = first === undefined ? '' : change(first);
  const rest = others.map((call) => asAction(call, situation)).join('\n');
  return { text: `${changed}\n${rest}\n${finalResponse(situation.task.answer)}` };
}

function answerOnly({ task }: Situation): ScriptedOutput {
  return { text: finalResponse(task.answer) };
}

/** As Python prints a dict, with a superfluous comma. */
function pythonDict(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonDict).join(', ')},]`;
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([key, item]) => `'${key}': ${pythonDict(item)}`)
      .join(', ')},}`;
  }
  return typeof value === 'string' ? `'${value}'` : JSON.stringify(value);
}

export const BEHAVIOURS: readonly Behaviour[] = [
  { name: 'plans and answers in one generation', sloppy: false, careful: 1, model: whole },
  {
    name: 'reads the results before it answers',
    sloppy: false,
    careful: 2,
    model: (situation) => (situation.generation === 1 ? { text: planText(situation) } : answerOnly(situation)),
  },
  { name: 'uses references in every place', sloppy: false, careful: 1, model: (situation) => acting(situation) },
  {
    name: 'writes Python in place of JSON',
    sloppy: true,
    careful: 1,
    model: (situation) => {
      const actions = callsOf(situation).map(
        ({ id, name, parameters }) =>
          `<action type="tool" mode="async" id="${id}">${pythonDict({ name, parameters })}</action>`,
      );
      return { text: `${actions.join('\n')}\n${finalResponse(situation.task.answer)}` };
    },
  },
  {
    name: 'puts its whole output into a code fence',
    sloppy: true,
    careful: 1,
    model: (situation) => ({ text: `\`\`\`xml\n${whole(situation).text ?? ''}\n\`\`\`` }),
  },
  {
    name: 'writes wrong tags: other case, aliases, no quotes',
    sloppy: true,
    careful: 1,
    model: (situation) => {
      const actions = callsOf(situation).map(
        ({ id, name, parameters }) =>
          `<ACTION TYPE=tool Id=${id} mode=async NAME='${name}'>${JSON.stringify({ parameters })}</Action>`,
      );
      const answer = `<Response Final=TRUE>${situation.task.answer}</RESPONSE>`;
      return { text: `<Thinking>So.</THINKING>\n${actions.join('\n')}\n${answer}` };
    },
  },
  {
    name: 'forgets to close thoughts and the response',
    sloppy: true,
    careful: 1,
    model: (situation) => {
      const actions = callsOf(situation).map((call) => asAction(call, situation));
      return { text: `<thought>I know. ${actions.join(' ')}\n<response final="true">${situation.task.answer}` };
    },
  },
  {
    name: 'forgets final',
    sloppy: true,
    careful: 1,
    model: (situation) => ({ text: `${planText(situation)}\n<response>${situation.task.answer}</response>` }),
  },
  {
    name: 'writes final=false although it has finished',
    sloppy: true,
    careful: 1,
    model: (situation) =>
      situation.generation === 1
        ? { text: `${planText(situation)}\n<response final="false">${situation.task.answer}</response>` }
        : answerOnly(situation),
  },
  {
    name: 'answers in plain text, without tags',
    sloppy: true,
    careful: 2,
    model: (situation) =>
      situation.generation === 1
        ? { text: planText(situation) }
        : { text: plainAnswer(situation.task, situation.results) },
  },
  {
    name: 'announces a plan without any action',
    sloppy: true,
    careful: 1,
    bareText: 'reject',
    model: mends(() => ({ text: 'Sure! Let me look into that for you.' }), 'No action ran'),
  },
  {
    name: 'waits for an action that does not exist',
    sloppy: true,
    careful: 1,
    model: mends(
      (situation) => withFirst(situation, (first) => asAction({ ...first, dependsOn: ['nowhere'] }, situation)),
      'unknown_dependency',
    ),
  },
  {
    name: 'misspells a tool',
    sloppy: true,
    careful: 1,
    model: mends(
      (situation) => withFirst(situation, (first) => asAction({ ...first, name: `${first.name}s` }, situation)),
      'did you mean',
    ),
  },
  {
    name: 'sends a parameter of the wrong type',
    sloppy: true,
    careful: 1,
    model: mends((situation) => {
      const [first] = callsOf(situation);
      const [member = ''] = Object.keys(first?.parameters ?? {});
      const broken = { id: 'w', name: first?.name ?? '', parameters: { [member]: [1, 2] } };
      return {
        text: `${asAction(broken, situation)}\n${planText(situation)}\n${finalResponse(situation.task.answer)}`,
      };
    }, 'expected string, got array'),
  },
  {
    name: 'repeats the same action in each iteration',
    sloppy: true,
    careful: 2,
    model: (situation) => (situation.generation <= 2 ? { text: planText(situation) } : answerOnly(situation)),
  },
  {
    name: 'declares every action twice',
    sloppy: true,
    careful: 1,
    model: (situation) => {
      const actions = callsOf(situation)
        .map((call) => asAction(call, situation))
        .join('\n');
      return { text: `${actions}\n${actions}\n${finalResponse(situation.task.answer)}` };
    },
  },
  {
    name: 'invents the results',
    sloppy: true,
    careful: 1,
    model: (situation) => {
      const forged = callsOf(situation).map(
        ({ id }) => `<action_result id="${id}" status="completed">999</action_result>`,
      );
      const results = `<results>${forged.join('')}</results>`;
      return { text: `${planText(situation)}\n${results}\n${finalResponse(situation.task.answer)}` };
    },
  },
  {
    name: 'is interrupted in the middle of an action',
    sloppy: true,
    careful: 1,
    model: (situation) => {
      if (situation.generation > 1) return situation.told.includes('cut off') ? whole(situation) : giveUp(situation);
      return { text: planText(situation).slice(0, -12), finish: 'length' };
    },
  },
  {
    name: 'calls functions in place of writing actions',
    sloppy: true,
    careful: 3,
    model: (situation) => {
      const calls = situation.layered.generations[situation.generation - 1] ?? [];
      return calls.length > 0 ? native(calls.map((call) => written(call, situation, true))) : waiting(situation);
    },
  },
  {
    name: 'mixes function calls with protocol text',
    sloppy: true,
    careful: 3,
    model: (situation) => {
      const calls = situation.layered.generations[situation.generation - 1] ?? [];
      if (calls.length === 0) return waiting(situation);
      const text = '<thought>Both.</thought>\n<response final="false">I am on it.</response>';
      return { text, ...native(calls.map((call) => written(call, situation, true))) };
    },
  },
];
