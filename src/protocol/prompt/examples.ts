/**
 * The few-shot examples of the system prompt, in both forms of an action (P18). Their tools are fictional. The test
 * suite parses every example and accepts no warning (L4).
 */
import type { ActionMode, ActionType } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ProtocolOptions } from '../../domain/manifests/agent.ts';

/** An action as an example shows it. */
export interface ShownAction {
  readonly type?: ActionType;
  readonly name?: string;
  readonly id?: string;
  readonly mode?: ActionMode;
  readonly dependsOn?: readonly string[];
  readonly outputKey?: string;
  readonly parameters: JsonObject;
}

export interface PromptExample {
  readonly title: string;
  readonly user: string;
  /** The model's outputs: protocol text. Between two of them, the runtime gives the results. */
  readonly outputs: readonly { readonly text: string; readonly results?: string }[];
}

/** Selects the examples that apply to an agent. */
export interface ExampleNeeds {
  readonly form: ProtocolOptions['form'];
  readonly python: boolean;
  readonly shell: boolean;
  /** `set_variable` is allowed. */
  readonly variables: boolean;
  /** `add_context_feed` is allowed. */
  readonly feeds: boolean;
  /** It imports at least one. */
  readonly agents: boolean;
  readonly relics: boolean;
  readonly workflows: boolean;
}

export function promptExamples(needs: ExampleNeeds): PromptExample[] {
  const show = (action: ShownAction): string => renderAction({ mode: 'async', ...action }, needs.form);
  const examples: PromptExample[] = [
    {
      title: 'look first, mend what failed, answer from the results',
      user: 'Which open ticket is urgent?',
      outputs: [
        {
          text: show({ name: 'tickets', id: 'open', parameters: { state: 'opened' } }),
          results: resultOf('open', 'tickets', 'failed', 'invalid_parameters: state must be open or closed'),
        },
        {
          text: show({ name: 'tickets', id: 'tickets', parameters: { state: 'open' } }),
          results: resultOf(
            'tickets',
            'tickets',
            'completed',
            '[{"id":7,"title":"Server down"},{"id":9,"title":"New mouse"}]',
          ),
        },
        { text: '<response final="true">Ticket 7: the server is down.</response>' },
      ],
    },
    {
      title: 'plan and answer at once, because weather returns {celsius: number}',
      user: 'How much warmer is Rome than Oslo?',
      outputs: [
        {
          text: `<thought>Two lookups, then the difference.</thought>
${show({ name: 'weather', id: 'oslo', parameters: { city: 'Oslo' } })}
${show({ name: 'weather', id: 'rome', parameters: { city: 'Rome' } })}
${show(difference(needs))}
<response final="true">By $difference °C: Oslo has $oslo.celsius °C, Rome $rome.celsius °C.</response>`,
        },
      ],
    },
  ];
  const imported = [
    ...(needs.agents
      ? [
          show({
            type: 'agent',
            name: 'writer',
            id: 'agenda',
            parameters: { message: 'Write an agenda: budget, hiring.' },
          }),
        ]
      : []),
    ...(needs.relics ? [show({ type: 'relic', name: 'notes.get', id: 'notes', parameters: { key: 'team' } })] : []),
    ...(needs.workflows
      ? [show({ type: 'workflow', name: 'book_room', id: 'room', parameters: { day: '2031-05-04' } })]
      : []),
  ];
  if (imported.length > 0) {
    const kinds = [
      ...(needs.agents ? ['an agent'] : []),
      ...(needs.relics ? ['a relic'] : []),
      ...(needs.workflows ? ['a workflow'] : []),
    ];
    const last = kinds.pop() ?? '';
    examples.push({
      title: `calls ${kinds.length === 0 ? last : `${kinds.join(', ')} and ${last}`}; no response yet, because it depends on the results`,
      user: 'Prepare the team meeting.',
      outputs: [{ text: imported.join('\n') }],
    });
  }
  if (needs.variables || needs.feeds) {
    const example = needs.variables
      ? { name: 'set_variable', parameters: { key: 'colour', value: 'green' } }
      : {
          name: 'add_context_feed',
          parameters: { id: 'clock', type: 'on_demand', source: { type: 'internal', action: 'system_clock' } },
        };
    examples.push({
      title: 'an internal action',
      user: needs.variables ? 'Remember that I like green.' : 'Watch the time.',
      outputs: [{ text: `${show({ type: 'internal', ...example })}\n<response final="true">I will.</response>` }],
    });
  }
  return examples;
}

/** Computed by code, if the agent may run it: results reach code by `inputs` (P14). */
function difference({ python, shell }: ExampleNeeds): ShownAction {
  const values = { a: '$rome.celsius', b: '$oslo.celsius' };
  if (python)
    return {
      type: 'python',
      id: 'difference',
      parameters: { code: 'print(inputs["a"] - inputs["b"])', inputs: values },
    };
  if (shell) return { type: 'shell', id: 'difference', parameters: { command: 'echo $((a - b))', inputs: values } };
  return { name: 'subtract', id: 'difference', parameters: values };
}

function resultOf(id: string, name: string, status: 'completed' | 'failed', text: string): string {
  return `<results>\n<action_result id="${id}" name="${name}" status="${status}">\n${text}\n</action_result>\n</results>`;
}

/**
 * Renders one action as protocol text. The compact form has everything but the parameters in the tag and omits
 * defaults (P18).
 */
export function renderAction(action: ShownAction, form: ProtocolOptions['form']): string {
  const { type, name, id, mode, dependsOn, outputKey, parameters } = action;
  const tag: [string, string][] = [];
  if (type !== undefined) tag.push(['type', type]);
  else if (form === 'full') tag.push(['type', 'tool']);
  if (form === 'compact' && name !== undefined) tag.push(['name', name]);
  if (id !== undefined) tag.push(['id', id]);
  if (mode !== undefined && !(form === 'compact' && mode === 'sync')) tag.push(['mode', mode]);
  if (form === 'compact') {
    if (dependsOn !== undefined) tag.push(['depends_on', dependsOn.join(',')]);
    if (outputKey !== undefined) tag.push(['output_key', outputKey]);
  }
  const open = `<action ${tag.map(([key, value]) => `${key}="${value}"`).join(' ')}>`;
  if (form === 'compact') return `${open}${JSON.stringify(parameters)}</action>`;
  const body = {
    ...(name === undefined ? {} : { name }),
    parameters,
    ...(dependsOn === undefined ? {} : { depends_on: [...dependsOn] }),
    ...(outputKey === undefined ? {} : { output_key: outputKey }),
  };
  return `${open}\n${JSON.stringify(body)}\n</action>`;
}
