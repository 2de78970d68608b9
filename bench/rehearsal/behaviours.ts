/**
 * Behaviours of models, from careful to sloppy. Each behaviour is a script that reacts only to the runtime's
 * feedback: if the feedback does not name the error, it gives up, and the task fails.
 */
import type { Task } from './tasks.ts';

/** The output of the model in one generation. */
export interface ScriptedOutput {
  readonly text?: string;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly arguments: unknown }[];
  readonly finish?: string;
}

export interface Behaviour {
  readonly name: string;
  readonly sloppy: boolean;
  /** Generations that a careful model needs for the same approach. */
  readonly careful: number;
  /** Fields of the agent's manifest. */
  readonly bareText?: 'reject';
  /** @param told everything since the model's last output */
  readonly say: (task: Task, generation: number, told: string) => ScriptedOutput;
}

type Action = Task['actions'][number];

function action({ id, name, parameters }: Action, attributes = ''): string {
  return `<action type="tool" mode="async" id="${id}"${attributes}>${JSON.stringify({ name, parameters })}</action>`;
}

function plan(task: Task): string {
  return `<thought>I know what to do.</thought>\n${task.actions.map((one) => action(one)).join('\n')}`;
}

function final(text: string): string {
  return `<response final="true">${text}</response>`;
}

const whole = (task: Task): ScriptedOutput => ({ text: `${plan(task)}\n${final(task.answer)}` });
const giveUp: ScriptedOutput = { text: final('I do not know.') };

/** A model that corrects its first attempt when the feedback names the error. */
function mends(first: (task: Task) => ScriptedOutput, sign: string): Behaviour['say'] {
  return (task, generation, told) => {
    if (generation === 1) return first(task);
    return told.includes(sign) ? whole(task) : giveUp;
  };
}

function withFirst(task: Task, change: (first: Action) => string): ScriptedOutput {
  const [first, ...others] = task.actions;
  const changed = first === undefined ? '' : change(first);
  return { text: `${changed}\n${others.map((one) => action(one)).join('\n')}\n${final(task.answer)}` };
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

/** The reported output of the last action; an answer in plain words can contain it only from there. */
function lastResult(task: Task, told: string): string | null {
  const id = task.actions.at(-1)?.id ?? '';
  return new RegExp(`<action_result id="${id}"[^>]*>\\n([\\s\\S]*?)\\n</action_result>`).exec(told)?.[1] ?? null;
}

export const BEHAVIOURS: readonly Behaviour[] = [
  { name: 'careful: plans and answers in one generation', sloppy: false, careful: 1, say: whole },
  {
    name: 'careful: waits for the results',
    sloppy: false,
    careful: 2,
    say: (task, generation) => ({ text: generation === 1 ? plan(task) : final(task.answer) }),
  },
  {
    name: 'Python instead of JSON',
    sloppy: true,
    careful: 1,
    say: (task) => {
      const actions = task.actions.map(
        ({ id, name, parameters }) =>
          `<action type="tool" mode="async" id="${id}">${pythonDict({ name, parameters })}</action>`,
      );
      return { text: `${actions.join('\n')}\n${final(task.answer)}` };
    },
  },
  {
    name: 'puts its whole output into a code fence',
    sloppy: true,
    careful: 1,
    say: (task) => ({ text: `\`\`\`xml\n${plan(task)}\n${final(task.answer)}\n\`\`\`` }),
  },
  {
    name: 'wrong tags: other case, aliases, no quotes',
    sloppy: true,
    careful: 1,
    say: (task) => {
      const actions = task.actions.map(
        ({ id, name, parameters }) =>
          `<ACTION TYPE=tool Id=${id} mode=async NAME='${name}'>${JSON.stringify({ parameters })}</Action>`,
      );
      return {
        text: `<Thinking>So.</THINKING>\n${actions.join('\n')}\n<Response Final=TRUE>${task.answer}</RESPONSE>`,
      };
    },
  },
  {
    name: 'forgets to close thoughts and the response',
    sloppy: true,
    careful: 1,
    say: (task) => ({
      text: `<thought>I know. ${task.actions.map((one) => action(one)).join(' ')}\n<response final="true">${task.answer}`,
    }),
  },
  {
    name: 'forgets final',
    sloppy: true,
    careful: 1,
    say: (task) => ({ text: `${plan(task)}\n<response>${task.answer}</response>` }),
  },
  {
    name: 'writes final=false although it has finished',
    sloppy: true,
    careful: 1,
    say: (task, generation) =>
      generation === 1
        ? { text: `${plan(task)}\n<response final="false">${task.answer}</response>` }
        : { text: final(task.answer) },
  },
  {
    name: 'answers in plain text, without tags',
    sloppy: true,
    careful: 2,
    say: (task, generation, told) => {
      if (generation === 1) return { text: plan(task) };
      const found = lastResult(task, told);
      const { id = '' } = task.actions.at(-1) ?? {};
      if (found === null) return giveUp;
      const values = Object.fromEntries(
        task.actions.map((one) => [one.id, lastResult({ ...task, actions: [one] }, told) ?? '']),
      );
      const said = task.answer.replace(/\$(\w+)(?:\.(\w+))?/g, (_, name: string, field: string | undefined) => {
        const value = values[name] ?? '';
        return field === undefined ? value : String((JSON.parse(value) as Record<string, unknown>)[field]);
      });
      return { text: id === '' ? '' : said };
    },
  },
  {
    name: 'announces a plan without any action',
    sloppy: true,
    careful: 1,
    bareText: 'reject',
    say: mends(() => ({ text: 'Sure! Let me look into that for you.' }), 'No action ran'),
  },
  {
    name: 'waits for an action that does not exist',
    sloppy: true,
    careful: 1,
    say: mends((task) => withFirst(task, (first) => action(first, ' depends_on="nowhere"')), 'unknown_dependency'),
  },
  {
    name: 'misspells a tool',
    sloppy: true,
    careful: 1,
    say: mends((task) => withFirst(task, (first) => action({ ...first, name: `${first.name}s` })), 'did you mean'),
  },
  {
    name: 'sends a parameter of the wrong type',
    sloppy: true,
    careful: 1,
    say: mends((task) => {
      const broken = { id: 'w', name: 'calculator', parameters: { expression: [1, 2] } };
      return { text: `${action(broken)}\n${plan(task)}\n${final(task.answer)}` };
    }, 'expected string, got array'),
  },
  {
    name: 'repeats the same action in each iteration',
    sloppy: true,
    careful: 2,
    say: (task, generation) => ({ text: generation <= 2 ? plan(task) : final(task.answer) }),
  },
  {
    name: 'declares every action twice',
    sloppy: true,
    careful: 1,
    say: (task) => {
      const actions = task.actions.map((one) => action(one)).join('\n');
      return { text: `${actions}\n${actions}\n${final(task.answer)}` };
    },
  },
  {
    name: 'invents the results',
    sloppy: true,
    careful: 1,
    say: (task) => {
      const forged = task.actions.map(({ id }) => `<action_result id="${id}" status="completed">999</action_result>`);
      return { text: `${plan(task)}\n<results>${forged.join('')}</results>\n${final(task.answer)}` };
    },
  },
  {
    name: 'is interrupted in the middle of an action',
    sloppy: true,
    careful: 1,
    say: (task, generation, told) => {
      if (generation === 1) {
        const text = plan(task);
        return { text: text.slice(0, text.length - 12), finish: 'length' };
      }
      return told.includes('cut off') ? whole(task) : giveUp;
    },
  },
  {
    name: 'calls functions instead of writing actions',
    sloppy: true,
    careful: 2,
    say: (task, generation) =>
      generation === 1
        ? { calls: task.actions.map(({ id, name, parameters }) => ({ id, name, arguments: parameters })) }
        : { text: final(task.answer) },
  },
  {
    name: 'mixes function calls with protocol text',
    sloppy: true,
    careful: 2,
    say: (task, generation) => {
      if (generation > 1) return { text: final(task.answer) };
      const [first, ...others] = task.actions;
      return {
        text: `<thought>Both.</thought>\n${others.length === 0 ? '' : '<response final="false">Working on it.</response>'}`,
        calls: [first, ...others].flatMap((one) =>
          one === undefined ? [] : [{ id: one.id, name: one.name, arguments: one.parameters }],
        ),
      };
    },
  },
];
