/** Writes the demo provider's output: protocol text for the recognised steps, and answers from their results. */
import type { JsonObject } from '../../domain/json.ts';
import type { Asked, Reading } from './reading.ts';
import type { Agent, Step } from './scenes.ts';

export interface Turn {
  readonly agent: Agent;
  /** Whether there was a generation for this message before. */
  readonly isFirst: boolean;
  readonly mayAct: boolean;
  /** Outcomes of their actions, by id; `text` is the value or the error. */
  readonly results: ReadonlyMap<string, { readonly status: string; readonly text: string }>;
  /** Descriptions of the message's images and files. */
  readonly files: readonly string[];
}

const CLOSE = '</action>';
const SELF =
  '(Demo model: I am not a language model. I recognise a few kinds of requests by patterns, but the actions above really ran. Set LLM_BASE_URL and LLM_MODEL to talk to a model.)';
/** The answer to all that is not recognised. */
const HELP = `I am the demo model of Cortex Edge. I am not a language model: I recognise a few kinds of requests by patterns, and what I start really runs. Try:
- compute 2**200 in python and list the files in shell at the same time, then sum it up
- wait 2 seconds and 3 seconds in parallel
- what is (3 + 4) * 12

docs/models.md lists the other kinds. To talk to a model, set LLM_BASE_URL and LLM_MODEL, such as LLM_BASE_URL=http://127.0.0.1:11434/v1 LLM_MODEL=qwen3 for one on your machine.`;
const SUMMARY = `import json
for name, value in inputs.items():
    text = (value if isinstance(value, str) else json.dumps(value)).strip()
    lines = text.splitlines() or [""]
    print(f"- {name}: {len(lines)} lines, beginning: {lines[0][:80]}" if len(lines) > 1 else f"- {name}: {text[:200]}")`;

/** A generation: what is still open runs at once, and one answer refers to the results by name. */
export function writeTurn(reading: Reading, turn: Turn): [before: string, burst: string, after: string] {
  const { steps, recalls, unread, summary, progress } = reading;
  const { agent, isFirst, results, mayAct, files } = turn;
  const open = mayAct ? steps.filter(({ id }) => !results.has(id)) : [];
  const done = steps.filter(({ id }) => results.get(id)?.status === 'completed');
  const usable = steps.filter((step) => open.includes(step) || done.includes(step));
  const isPart = progress && isFirst && open.length > 0;
  const hasSummary = summary && !isPart && usable.length > 0 && agent.capabilities.includes('python');
  const sumsNow = hasSummary && mayAct && !results.has('python_summary');
  const sections = steps.map((step) => {
    const { status = 'has not run', text = '' } = results.get(step.id) ?? {};
    const isThere = usable.includes(step);
    const label = spoken(step.label).replaceAll('`', "'");
    return `**\`${label}\`:**\n${isThere ? shownIn(step) : `${status}: ${spoken(text, 300)}`}`;
  });
  const status = results.get('python_summary')?.status;
  if (hasSummary && (sumsNow || status !== undefined)) {
    sections.push(`**Summary:**\n${sumsNow || status === 'completed' ? '$summary' : status}`);
  }
  const answer = [
    ...(files.length === 0 ? [] : [`**Your files:**\n${files.map((file) => `- ${spoken(file, 200)}`).join('\n')}`]),
    ...recalls,
    ...sections,
    ...(unread.length > 0 ? [`I did not understand, or have no tool for: ${spoken(unread.join('; '))}`] : []),
    ...(isPart ? [] : [steps.length + recalls.length + files.length === 0 ? HELP : SELF]),
  ];
  const actions = open.map((step) => writeAction(step, agent)).join('\n');
  const cut = Math.max(0, actions.indexOf(CLOSE));
  const labels = open.map(({ label }) => plain(label)).join('; ') || 'nothing';
  return [
    `<thought>${done.length} of ${steps.length} done. To do now, all at once: ${labels}.\n${actions.slice(0, cut)}`,
    actions.slice(cut),
    `${sumsNow ? writeSummary(usable, agent) : ''}</thought>\n<response final="${!isPart}">\n${answer.join('\n\n')}\n</response>`,
  ];
}

/** The answer to a call outside the conversation: plain text, no protocol. */
export function writePlain(prompt: string): string {
  const beginning = prompt.trim().slice(0, 300).toWellFormed();
  return `(Demo model, not a language model: it only repeats the beginning of the prompt.) ${beginning}`;
}

function shownIn({ key, shown = '$' }: Step): string {
  return shown.replaceAll('$', `$$${key}`);
}

/** The dependent action: passes the results of all steps to Python as data (P14). */
function writeSummary(steps: readonly Asked[], agent: Agent): string {
  const inputs = steps.map((step) => [step.key, /^\S+$/.test(shownIn(step)) ? shownIn(step) : `$${step.key}`]);
  const parameters = { code: SUMMARY, inputs: Object.fromEntries(inputs) as JsonObject };
  const step = { id: 'python_summary', key: 'summary', type: 'python', name: null, parameters };
  return `\n${writeAction(
    step,
    agent,
    steps.map(({ id }) => id),
  )}\n`;
}

function writeAction(step: Step & Pick<Asked, 'id'>, { form }: Agent, dependsOn?: readonly string[]): string {
  const { id, key: output_key, type, name } = step;
  const mode = type === 'internal' ? 'sync' : 'async';
  // Code is never substituted (P14). In other parameters, the user's dollar sign must stay literal.
  const text = JSON.stringify(step.parameters);
  const parameters: unknown = JSON.parse(/^(?:python|shell)$/.test(type) ? text : text.replaceAll('$', '$$$$'));
  // No user text can look like a tag.
  const json = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');
  if (form === 'full') {
    const body = {
      ...(name !== null && { name }),
      parameters,
      ...(dependsOn && { depends_on: dependsOn }),
      output_key,
    };
    return `<action type="${type}" id="${id}" mode="${mode}">\n${json(body)}\n${CLOSE}`;
  }
  const attributes = { type, name, id, mode, depends_on: dependsOn?.join(','), output_key };
  const written = Object.entries(attributes).map(([attribute, value]) => (value ? ` ${attribute}="${value}"` : ''));
  return `<action${written.join('')}>${json(parameters)}${CLOSE}`;
}

/** Text of the user or a tool as one line of an answer, without tags and references. */
function spoken(words: string, maxChars = 120): string {
  return plain(words, maxChars).replaceAll('$', '$$$$');
}

/** One line of a thought, where nothing is substituted. */
function plain(words: string, maxChars = 120): string {
  const line = words.replace(/[<>]/g, ' ').replace(/\s+/g, ' ').trim();
  return line.length > maxChars ? `${line.slice(0, maxChars).toWellFormed()}…` : line;
}
