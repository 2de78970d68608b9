/**
 * The few-shot examples of the system prompt, in both forms of an action (P18). Their tools are fictional. The test
 * suite parses every example and accepts no warning (L4).
 */
import type { ActionMode, ActionType } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ProtocolOptions } from '../../domain/manifest.ts';

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
  /** The model's output: protocol text. */
  readonly text: string;
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
}

export function promptExamples(needs: ExampleNeeds): PromptExample[] {
  const show = (action: ShownAction): string => renderAction(action, needs.form);
  const examples: PromptExample[] = [
    {
      title: 'independent work starts together; what uses $name waits for it; $name is a value',
      user: 'Compare the weather in Oslo and Rome.',
      text: `<thought>
Two lookups that do not need each other, then a comparison of both.
${show({ name: 'weather', id: 'oslo', mode: 'async', parameters: { city: 'Oslo' } })}
${show({ name: 'weather', id: 'rome', mode: 'async', parameters: { city: 'Rome' } })}
${show({
  name: 'compare',
  id: 'difference',
  mode: 'async',
  parameters: { a: '$oslo.celsius', b: '$rome.celsius' },
})}
</thought>
<response final="true">
Oslo has $oslo.celsius °C and Rome $rome.celsius °C: $difference
</response>`,
    },
    {
      title: 'an answer for now, then more work in the next turn',
      user: 'Find the newest report and check its figures.',
      text: `<thought>I must see the list before I can choose.</thought>
${show({ name: 'list_reports', id: 'reports', mode: 'sync', parameters: { newest: 3 } })}
<response final="false">
Reading the newest of these now: $reports
</response>`,
    },
  ];
  if (needs.python) {
    const shell = show({ type: 'shell', id: 'listing', mode: 'async', parameters: { command: 'ls -la /tmp' } });
    examples.push({
      title: 'code; results reach it as data in inputs, never inside the code',
      user: needs.shell ? 'What do 12, 7 and 30 average to, and what is in /tmp?' : 'What do 12, 7 and 30 average to?',
      text: `${show({
        type: 'python',
        id: 'average',
        mode: 'async',
        parameters: { code: 'values = [12, 7, 30]\nprint(sum(values) / len(values))' },
      })}
${needs.shell ? `${shell}\n` : ''}${show({
        type: 'python',
        id: 'rounded',
        mode: 'async',
        dependsOn: ['average'],
        parameters: { code: 'print(round(float(inputs["average"]), 1))' },
      })}
<response final="true">The average is $rounded.${needs.shell ? ' In /tmp: $listing' : ''}</response>`,
    });
  }
  if (needs.variables) {
    examples.push({
      title: 'an internal action: remembered as $favourite_colour from now on',
      user: 'Remember that my favourite colour is green.',
      text: `${show({
        type: 'internal',
        name: 'set_variable',
        mode: 'sync',
        parameters: { key: 'favourite_colour', value: 'green' },
      })}
<response final="true">Noted: green.</response>`,
    });
  }
  examples.push({
    title: needs.feeds ? 'feeds: one that is there, and one added for the next turns' : 'a feed that is there',
    user: 'What time is it?\n\n<context_feed id="clock" age="2s">\n2031-05-04T09:30:00Z\n</context_feed>',
    text: `${
      needs.feeds
        ? `${show({
            type: 'internal',
            name: 'add_context_feed',
            mode: 'sync',
            parameters: { id: 'dice', type: 'on_demand', source: { type: 'internal', action: 'random' } },
          })}\n`
        : ''
    }<response final="true">It is half past nine (UTC): $clock</response>`,
  });
  return examples;
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
