/** Writes what the demo provider says: protocol text for the steps that it has read, and answers from their results. */
import type { JsonObject } from '../../domain/json.ts';
import { callHints } from './imports.ts';
import type { Agent, Step } from './capabilities.ts';
import type { Reading } from './reading.ts';

/** What is known of an action from an earlier generation. */
export interface StepResult {
  readonly status: string;
  /** The text of its result block: the value, or why there is none. */
  readonly text: string;
}

const ACTION_CLOSE = '</action>';

/** The id and key of the action that sums up. */
const SUMMARY = { id: 'python_summary', key: 'summary' } as const;

const SELF =
  '(Demo model: I am not a language model, I recognise a few kinds of requests by patterns, but what ran above ran for real. Set LLM_BASE_URL and LLM_MODEL to talk to a model.)';

/** A piece of what is said. A `burst` goes out as one delta, so that what it completes starts in the same instant. */
export interface Passage {
  readonly text: string;
  readonly burst: boolean;
}

/** The first generation: every step at once, what depends on them behind it, and the answer. */
export function writePlan(reading: Reading, agent: Agent): Passage[] {
  const { steps, summary, progress, recalls, lacking } = reading;
  if (steps.length === 0) {
    if (recalls.length === 0 && lacking.length === 0) return paced(writeHelp(reading, agent));
    return paced(`<thought>Nothing has to run for this.</thought>\n${writeAnswer(recallLines(reading), reading)}`);
  }
  const opening =
    steps.length === 1
      ? `One thing to do: ${plain(steps.map(({ label }) => label).join())}.`
      : `${count(steps.length)} things to do, none needs another, so all start now:\n${steps.map(({ label }) => `- ${plain(label)}`).join('\n')}`;
  const actions = steps.map((step) => writeAction(step, agent)).join('\n');
  const firstClose = actions.indexOf(ACTION_CLOSE);
  const sums = summary && !progress && canSumUp(steps, agent);
  const closing = sums ? `\nWhat they return goes to Python, which sums it up.\n${writeSummary(steps, agent)}` : '';
  const answer = progress
    ? `<response final="false">\nStarted: ${steps.map(({ label }) => spoken(label)).join('; ')}. First results:\n\n${sections(steps)}\n</response>`
    : writeAnswer([...recallLines(reading), sections(steps), ...summaryLines(reading, agent)], reading);
  return [
    { text: `<thought>\n${opening}\n${actions.slice(0, firstClose)}`, burst: false },
    { text: actions.slice(firstClose), burst: true },
    { text: `${closing}\n</thought>\n${answer}`, burst: false },
  ];
}

export function paced(text: string): Passage[] {
  return [{ text, burst: false }];
}

/** A later generation: does what is still open, then answers from the results. */
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
  const wantsSummary = reading.summary && canSumUp(usable, agent);
  const summed = results.get(SUMMARY.id);
  const sumNow = mayAct && wantsSummary && summed === undefined;
  const failed = steps.length - done.length - open.length;
  const opening = `${count(done.length)} of ${steps.length} done${failed > 0 ? `, ${failed} without a result` : ''}.`;
  const actions = [...open.map((step) => writeAction(step, agent)), ...(sumNow ? [writeSummary(usable, agent)] : [])];
  const told = steps.map((step) => {
    if (open.includes(step) || done.includes(step)) return section(step);
    return `**${heading(step.label)}** ${failureOf(results.get(step.id))}`;
  });
  if (wantsSummary && (sumNow || summed?.status === 'completed')) told.push(`**Summary:**\n$${SUMMARY.key}`);
  else if (summed !== undefined) told.push(`**Summary:** ${failureOf(summed)}`);
  return [
    `<thought>\n${[opening, ...actions].join('\n')}\n</thought>`,
    writeAnswer([...recallLines(reading), ...told], reading),
  ].join('\n');
}

/** The answer to a call outside the conversation: plain text, no protocol. */
export function writePlain(prompt: string): string {
  const words = prompt.split(/\s+/).filter((word) => word !== '').length;
  const beginning = prompt
    .trim()
    .split(/(?<=[.!?])\s+/)
    .slice(0, 2)
    .join(' ')
    .slice(0, 300)
    .toWellFormed();
  return `(Demo model, not a language model: it can only say that the prompt has ${words} words and begins so.) ${beginning}`;
}

/** What the demo is and what it understands, for this agent. */
function writeHelp({ unread, feeds }: Reading, agent: Agent): string {
  const calls = callHints(agent);
  const [feed] = feeds;
  const tools = new Set(agent.tools.map(({ name }) => name));
  const python = agent.capabilities.includes('python');
  const shell = agent.capabilities.includes('shell');
  const able = [
    ...calls.able,
    ...(feed === undefined ? [] : [`show a feed ("what is the ${feed}")`]),
    ...(python ? ['run Python ("compute 2**200 in python", or a ```python block)'] : []),
    ...(shell ? ['run shell commands ("run `ls -la` in the shell")'] : []),
    ...(tools.has('calculator') ? ['calculate ("what is (3 + 4) * 12")'] : []),
    ...(tools.has('web_fetch') ? ['read a web page ("fetch https://example.com")'] : []),
    ...(tools.has('text_stats') ? ['measure a text ("statistics of this text: …")'] : []),
    ...(tools.has('json_query') ? ['query JSON ("query {"a": [1, 2]} for a[0]")'] : []),
    ...(tools.has('echo') ? ['wait, to show what runs in parallel ("wait 2 seconds and 3 seconds")'] : []),
    'remember something for this session ("remember my city is Oslo")',
  ];
  const tries = [
    ...calls.tries,
    ...(feed === undefined ? [] : [`what is the ${feed}`]),
    ...(python && shell
      ? ['compute 2**200 in python and list the files in shell at the same time, then sum it up']
      : []),
    ...(tools.has('echo') ? ['wait 2 seconds and 3 seconds in parallel'] : []),
    ...(python ? ['what is the 50th fibonacci number, and the first 20 primes? show progress'] : []),
    ...(tools.has('calculator') ? ['what is 17 * 23 + 4'] : []),
    'remember my favourite colour is green',
    'what can you do?',
  ].slice(0, 3);
  const rest = agent.tools.map(({ name }) => name).join(', ');
  const odd = unread.filter((words) => !ASKS_WHAT_IT_CAN.test(words));
  const unknown = odd.length === 0 ? '' : `I did not understand: ${spoken(odd.join('; '))}\n\n`;
  return `<thought>I recognise nothing to run in this message.</thought>
<response final="true">
${unknown}I am the demo model of Cortex Edge: not a language model, only patterns. The runtime behind me is real: what I start runs in its scheduler, tools and sandbox. As the agent ${spoken(agent.name)} I can:
${able.map((line) => `- ${spoken(line)}`).join('\n')}
${rest === '' ? '' : `\nTools of this agent: ${spoken(rest)}.\n`}
Try:
${tries.map((line) => `- ${spoken(line)}`).join('\n')}

Set LLM_BASE_URL and LLM_MODEL to talk to a model.
</response>`;
}

function writeAnswer(paragraphs: readonly string[], { lacking, unread }: Reading): string {
  const notes = [
    ...(lacking.length > 0 ? [`This agent has no way to use: ${spoken(lacking.join(', '))}.`] : []),
    ...(unread.length > 0 ? [`I did not understand: ${spoken(unread.join('; '))}`] : []),
  ];
  const body = [...paragraphs, ...notes, SELF].filter((paragraph) => paragraph !== '').join('\n\n');
  return `<response final="true">\n${body}\n</response>`;
}

function sections(steps: readonly Step[]): string {
  return steps.map((step) => section(step)).join('\n\n');
}

function section({ label, shown }: Step): string {
  return `**${heading(label)}**\n${shown}`;
}

function recallLines({ recalls }: Reading): string[] {
  return recalls.map(({ name, shown }) => `**${spoken(name)}:** ${shown}`);
}

function summaryLines({ steps, summary }: Reading, agent: Agent): string[] {
  return summary && canSumUp(steps, agent) ? [`**Summary:**\n$${SUMMARY.key}`] : [];
}

function canSumUp(steps: readonly Step[], agent: Agent): boolean {
  return steps.length > 0 && agent.capabilities.includes('python');
}

/** The dependent action: everything that the steps returned goes into Python as data (P14). */
function writeSummary(steps: readonly Step[], agent: Agent): string {
  const inputs: JsonObject = {};
  for (const { key, shown } of steps) inputs[key] = /^\$[\w.]+$/.test(shown) ? shown : `$${key}`;
  const code = `import json
lines, numbers = [], []
for name in ${JSON.stringify(steps.map(({ key }) => key))}:
    value = inputs.get(name)
    text = (value if isinstance(value, str) else json.dumps(value)).strip()
    try:
        number = int(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            number = None
    if number is None:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        lines.append(f"- {name}: {len(text.splitlines())} lines, {len(text)} characters, beginning: {first[:80]}")
    else:
        numbers.append(number)
        lines.append(f"- {name}: {text}" + (f" ({len(text)} digits)" if len(text) > 15 else ""))
if len(numbers) > 1:
    lines.append(f"- together: {sum(numbers)}")
print("\\n".join(lines))`;
  return writeAction(
    { id: SUMMARY.id, key: SUMMARY.key, type: 'python', name: null, parameters: { code, inputs } },
    agent,
    steps.map(({ id }) => id),
  );
}

/** Answered by saying what the demo can do, which it does whenever it finds nothing to run. */
const ASKS_WHAT_IT_CAN =
  /^(?:help|hello|hi|(?:and )?(?:what|how|who)\b.{0,20}\b(?:can|could|do|are|help)\b.{0,20}\byou\b.{0,20})[\s?!.]*$/i;

function writeAction(
  { id, key, type, name, parameters }: Pick<Step, 'id' | 'key' | 'type' | 'name' | 'parameters'>,
  { form }: Agent,
  dependsOn: readonly string[] = [],
): string {
  // Code is never substituted (P14); in any other parameter a dollar sign of the user's is a dollar sign.
  const given = type === 'python' || type === 'shell' ? parameters : (escaped(parameters) as JsonObject);
  const mode = type === 'internal' ? 'sync' : 'async';
  const head = `<action type="${type}"${form === 'compact' && name !== null ? ` name="${name}"` : ''} id="${id}" mode="${mode}"`;
  if (form === 'compact') {
    const waits = dependsOn.length === 0 ? '' : ` depends_on="${dependsOn.join(',')}"`;
    return `${head} output_key="${key}"${waits}>${json(given)}${ACTION_CLOSE}`;
  }
  const body = {
    ...(name === null ? {} : { name }),
    parameters: given,
    ...(dependsOn.length === 0 ? {} : { depends_on: [...dependsOn] }),
    output_key: key,
  };
  return `${head}>\n${json(body)}\n${ACTION_CLOSE}`;
}

/** JSON without a single `<`: what the user wrote cannot even look like a tag. */
function json(value: JsonObject): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}

function escaped(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('$', '$$$$');
  if (Array.isArray(value)) return value.map((item) => escaped(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, escaped(item)]));
}

function failureOf(result: StepResult | undefined): string {
  if (result === undefined) return 'has not run.';
  return `${result.status}: ${spoken(result.text, 300)}`;
}

/** The user's or a tool's words in a line of mine: no tags, no references, no line breaks. */
function spoken(words: string, maxChars = 120): string {
  const line = words.replace(/[<>]/g, ' ').replace(/\s+/g, ' ').trim();
  return (line.length > maxChars ? `${line.slice(0, maxChars).toWellFormed()}…` : line).replaceAll('$', '$$$$');
}

/** A label in a thought, where nothing is substituted. */
function plain(label: string): string {
  return label.replace(/[<>]/g, ' ').replace(/\s+/g, ' ').slice(0, 120).toWellFormed();
}

/** A label as a heading. */
function heading(label: string): string {
  const line = spoken(label);
  return `${line.slice(0, 1).toUpperCase()}${line.slice(1)}:`;
}

function count(amount: number): string {
  return ['None', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine'][amount] ?? String(amount);
}
