/** The agents and tools of the soak test. A message names its task in a mark, such as `[[tools 4]]`. */

export const AGENT = 'soak';
export const SUPERVISED = 'soak_supervised';
const HELPER = 'soak_helper';
const TOOL = 'soak_tool';
/** Needs an approval of a supervised agent. */
const UNSAFE = 'soak_unsafe';
const STORE = 'soak_store';

const TASKS = ['stream', 'tools', 'unsafe', 'python', 'store', 'child', 'slow'] as const;
export type Task = (typeof TASKS)[number];

/** @param amount words, actions or milliseconds */
export const markOf = (task: Task, amount: number): string => `[[${task} ${amount}]]`;

interface Marked {
  readonly task: Task;
  readonly amount: number;
}

/** The last mark in a text; null without one. */
export function markIn(text: string): Marked | null {
  const found = [...text.matchAll(/\[\[([a-z]+) (\d+)\]\]/g)].at(-1);
  const task = TASKS.find((name) => name === found?.[1]);
  return task === undefined ? null : { task, amount: Number(found?.[2]) };
}

const ANSWER = '<response final="true">done</response>';

/** What the model writes first; after the results of its actions, it writes an answer. */
export function programOf({ task, amount }: Marked): string {
  switch (task) {
    case 'stream':
      return `<thought>${wordsOf(20)}</thought><response final="true">${wordsOf(amount)}</response>`;
    case 'tools':
      return Array.from({ length: amount }, (_, n) => action('tool', `t${n}`, 'async', TOOL, { item: n })).join('\n');
    case 'unsafe':
      return action('tool', 't0', 'sync', UNSAFE, { item: amount });
    case 'slow':
      return action('tool', 't0', 'sync', TOOL, { item: 0, ms: amount });
    case 'python':
      return `<action type="python" id="p">${JSON.stringify({ code: codeOf(amount) })}</action>`;
    case 'store':
      return action('relic', 's', 'sync', `${STORE}.set`, { key: `key${amount}`, value: wordsOf(amount) });
    case 'child':
      return action('agent', 'c', 'sync', HELPER, { message: markOf('stream', amount) });
  }
}

export const finalAnswer = (): string => ANSWER;

function action(type: string, id: string, mode: string, name: string, parameters: object): string {
  return `<action type="${type}" mode="${mode}" id="${id}">${JSON.stringify({ name, parameters })}</action>`;
}

/** Leaves files and a process in the background: its sandbox removes both. */
function codeOf(lines: number): string {
  return `import os, subprocess
open("left.txt", "w").write("line\\n" * ${lines})
subprocess.Popen(["sleep", "600"])
print(len(os.listdir(".")))`;
}

const wordsOf = (count: number): string => Array.from({ length: count }, (_, n) => `word${n}`).join(' ');

function agentManifest(name: string, more: string): string {
  return `kind: Agent
version: "1.0"
name: ${name}
summary: Carries out what it is told.
persona: You carry out what you are told.
cognitive_engine: { primary: { model: ${name} }, dialect: protocol }
${more}`;
}

const FEED = `context_feeds:
  - { id: news, type: periodic, interval: 5s, cache_ttl: 1s, max_tokens: 100, source: { type: tool, name: ${TOOL}, params: { item: 7 } }, on_error: use_cached }
`;

const toolManifest = (host: string, effects: string, name = TOOL): string => `kind: Tool
version: "1.0"
name: ${name}
summary: Returns an item.
implementation: { type: http, method: POST, url: "http://${host}/item" }
effects: ${effects}
timeout: 60s
parameters: { type: object, properties: { item: { type: number }, ms: { type: number } } }
`;

/** A tool that is uploaded and removed again; each `revision` differs. */
export const uploadedTool = (host: string, name: string, revision: number): string =>
  `${toolManifest(host, 'pure', name)}tags: [revision-${revision}]\n`;

/** Texts by path. @param toolHost host and port of the tool server */
export function manifestsOf(toolHost: string): Readonly<Record<string, string>> {
  const parts = `import: { tools: [${TOOL}, ${UNSAFE}], agents: [${HELPER}], relics: [${STORE}] }\ncapabilities: [python]\n`;
  return {
    [`tools/${TOOL}.yaml`]: toolManifest(toolHost, 'idempotent'),
    [`tools/${UNSAFE}.yaml`]: toolManifest(toolHost, 'unsafe', UNSAFE),
    [`relics/${STORE}.yaml`]: `kind: Relic
version: "1.0"
name: ${STORE}
summary: Values of a session.
scope: session
implementation: { type: edge, store: kv, ttl: 1d, quota: 1Mi }
`,
    [`agents/${AGENT}.yaml`]: agentManifest(AGENT, `${parts}${FEED}`),
    [`agents/${SUPERVISED}.yaml`]: agentManifest(SUPERVISED, `${parts}loop: { mode: supervised }\n`),
    [`agents/${HELPER}.yaml`]: agentManifest(HELPER, ''),
  };
}
