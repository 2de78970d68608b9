/** Writes the demo provider's output: protocol text for the recognised steps, and answers from their results. */
import type { JsonObject } from '../../domain/json.ts';
import { abilities } from './abilities.ts';
import type { Agent, Step } from './capabilities.ts';
import type { Reading } from './reading.ts';

/** The result of an action of an earlier generation. */
export interface StepResult {
  readonly status: string;
  /** The text of its result block: the value, or the error. */
  readonly text: string;
}

/** A piece of the text. A `burst` is one delta, so that all actions that it completes start at the same time. */
export interface Passage {
  readonly text: string;
  readonly burst: boolean;
}

const ACTION_CLOSE = '</action>';
const SUMMARY_SHOWN = '**Summary:**\n$summary';
const SELF =
  '(Demo model: I am not a language model. I recognise a few kinds of requests by patterns, but the actions above really ran. Set LLM_BASE_URL and LLM_MODEL to talk to a model.)';
const FILES = '**Your files**, of which I read only the headers:';
const NUMBERS = ['None', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine'];

/** The first generation: all steps at once, then the summary and the answer. */
export function writePlan(reading: Reading, agent: Agent): Passage[] {
  const { steps, progress, recalls, lacking, files } = reading;
  if (steps.length === 0) {
    if (recalls.length === 0 && lacking.length === 0 && files.length === 0) return paced(writeHelp(reading, agent));
    return paced(`<thought>This needs no actions.</thought>\n${writeAnswer([], reading)}`);
  }
  const labels = steps.map(({ label }) => plain(label));
  const opening =
    steps.length === 1
      ? `One thing to do: ${labels.join()}.`
      : `${count(steps.length)} independent things to do, so all start now:\n- ${labels.join('\n- ')}`;
  const actions = steps.map((step) => writeAction(step, agent)).join('\n');
  const firstClose = actions.indexOf(ACTION_CLOSE);
  const sums = wantsSummary(reading, agent) && !progress;
  const closing = sums ? `\nPython sums up what they return.\n${writeSummary(steps, agent)}` : '';
  const sections = steps.map(section);
  const answer = progress
    ? `<response final="false">\nFirst results:\n\n${sections.join('\n\n')}\n</response>`
    : writeAnswer([...sections, ...(sums ? [SUMMARY_SHOWN] : [])], reading);
  return [
    { text: `<thought>\n${opening}\n${actions.slice(0, firstClose)}`, burst: false },
    { text: actions.slice(firstClose), burst: true },
    { text: `${closing}\n</thought>\n${answer}`, burst: false },
  ];
}

export function paced(text: string): Passage[] {
  return [{ text, burst: false }];
}

/** A later generation: runs what is still open, then answers from the results. */
export function writeSequel(
  reading: Reading,
  agent: Agent,
  results: ReadonlyMap<string, StepResult>,
  mayAct: boolean,
): string {
  const { steps } = reading;
  const open = mayAct ? steps.filter(({ id }) => !results.has(id)) : [];
  const done = steps.filter(({ id }) => results.get(id)?.status === 'completed');
  const usable = steps.filter((step) => done.includes(step) || open.includes(step));
  const failed = steps.length - usable.length;
  const summary = results.get('python_summary');
  const sumNow = mayAct && summary === undefined && usable.length > 0 && wantsSummary(reading, agent);
  const sections = steps.map((step) =>
    usable.includes(step) ? section(step) : `**${heading(step.label)}** ${failureOf(results.get(step.id))}`,
  );
  if (sumNow || summary?.status === 'completed') sections.push(SUMMARY_SHOWN);
  else if (summary !== undefined) sections.push(`**Summary:** ${failureOf(summary)}`);
  const lines = [
    `${count(done.length)} of ${steps.length} done${failed > 0 ? `, ${failed} without a result` : ''}.`,
    ...open.map((step) => writeAction(step, agent)),
    ...(sumNow ? [writeSummary(usable, agent)] : []),
  ];
  return `<thought>\n${lines.join('\n')}\n</thought>\n${writeAnswer(sections, reading)}`;
}

/** The answer to a call outside the conversation: plain text, no protocol. */
export function writePlain(prompt: string): string {
  const words = prompt.split(/\s+/).filter((word) => word !== '').length;
  const beginning = prompt.trim().slice(0, 300).toWellFormed();
  return `(Demo model, not a language model: it only repeats the beginning of the prompt of ${words} words.) ${beginning}`;
}

/** Describes the demo and what it understands, for this agent. */
function writeHelp({ unread, feeds }: Reading, agent: Agent): string {
  const known = abilities(agent, feeds);
  const unknown = unread.filter((words) => !/^(?:help|hello|hi|(?:what|who)\b.{0,20}\byou\b)/i.test(words));
  return `<thought>I recognise nothing to run in this message.</thought>
<response final="true">
${unknown.length === 0 ? '' : `I did not understand: ${spoken(unknown.join('; '))}\n\n`}I am the demo model of Cortex Edge: I am not a language model and only match patterns. The runtime is real: what I start runs in its scheduler, tools and sandbox. As the agent ${spoken(agent.name)} I can:
${known.map(({ what, example }) => `- ${what} ("${spoken(example, 200)}")`).join('\n')}

Try:
${known
  .slice(0, 3)
  .map(({ example }) => `- ${spoken(example, 200)}`)
  .join('\n')}

Set LLM_BASE_URL and LLM_MODEL to talk to a model.
</response>`;
}

function writeAnswer(sections: readonly string[], { recalls, lacking, files, unread }: Reading): string {
  const body = [
    ...(files.length === 0 ? [] : [`${FILES}\n${files.map((file) => `- ${spoken(file, 200)}`).join('\n')}`]),
    ...recalls.map(({ name, shown }) => `**${spoken(name)}:** ${shown}`),
    ...sections,
    ...(lacking.length > 0 ? [`This agent cannot use: ${spoken(lacking.join(', '))}.`] : []),
    ...(unread.length > 0 ? [`I did not understand: ${spoken(unread.join('; '))}`] : []),
    SELF,
  ];
  return `<response final="true">\n${body.join('\n\n')}\n</response>`;
}

function section({ label, shown }: Step): string {
  return `**${heading(label)}**\n${shown}`;
}

function wantsSummary({ steps, summary }: Reading, { capabilities }: Agent): boolean {
  return summary && steps.length > 0 && capabilities.includes('python');
}

/** The dependent action: passes the results of all steps to Python as data (P14). */
function writeSummary(steps: readonly Step[], agent: Agent): string {
  const inputs = steps.map(({ key, shown }) => [key, /^\$[\w.]+$/.test(shown) ? shown : `$${key}`]);
  const code = `import json
for name, value in inputs.items():
    text = (value if isinstance(value, str) else json.dumps(value)).strip()
    lines = text.splitlines() or [""]
    print(f"- {name}: {len(lines)} lines, beginning: {lines[0][:80]}" if len(lines) > 1 else f"- {name}: {text[:200]}")`;
  const parameters = { code, inputs: Object.fromEntries(inputs) as JsonObject };
  return writeAction(
    { id: 'python_summary', key: 'summary', type: 'python', name: null, parameters },
    agent,
    steps.map(({ id }) => id),
  );
}

function writeAction(
  { id, key, type, name, parameters }: Omit<Step, 'label' | 'shown'>,
  { form }: Agent,
  dependsOn: readonly string[] = [],
): string {
  // Code is never substituted (P14). In other parameters, the user's dollar sign must stay literal.
  const given = type === 'python' || type === 'shell' ? parameters : escaped(parameters);
  const mode = type === 'internal' ? 'sync' : 'async';
  const head = `<action type="${type}"${form === 'compact' && name !== null ? ` name="${name}"` : ''} id="${id}" mode="${mode}"`;
  if (form === 'compact') {
    const waits = dependsOn.length === 0 ? '' : ` depends_on="${dependsOn.join(',')}"`;
    return `${head}${waits} output_key="${key}">${json(given)}${ACTION_CLOSE}`;
  }
  const body = {
    ...(name === null ? {} : { name }),
    parameters: given,
    ...(dependsOn.length === 0 ? {} : { depends_on: dependsOn }),
    output_key: key,
  };
  return `${head}>\n${json(body)}\n${ACTION_CLOSE}`;
}

/** JSON without any `<`, so that user text cannot look like a tag. */
function json(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}

function escaped(value: JsonObject): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll('$', '$$$$'));
}

function failureOf(result: StepResult | undefined): string {
  return result === undefined ? 'has not run.' : `${result.status}: ${spoken(result.text, 300)}`;
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

function heading(label: string): string {
  const line = spoken(label);
  return `${line.slice(0, 1).toUpperCase()}${line.slice(1)}:`;
}

function count(amount: number): string {
  return NUMBERS[amount] ?? String(amount);
}
