/** What an agent can be asked to do: its sub-agents, workflows and relics by name, the rest as examples (L3). */
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { Agent, StepDraft } from './capabilities.ts';

/** A callable name, with the JSON Schema of its parameters. */
interface Callable {
  readonly name: string;
  readonly parameters: JsonObject;
}

/**
 * The step for a clause that names one of the agent's targets, or null.
 *
 * @param words the clause as written
 * @param data the JSON in the clause, if any
 */
export function readCall(words: string, data: string | null, agent: Agent): StepDraft | null {
  const [, asked = '', message = ''] = /^ask (?:the )?([\w-]+)\s*(?::|\bto\b)?\s*(.+)$/i.exec(words) ?? [];
  const colleague = named(agent.agents ?? [], asked);
  if (colleague !== null && message !== '') {
    return {
      key: `answer_of_${word(colleague)}`,
      label: `ask ${colleague}: ${message}`,
      type: 'agent',
      name: colleague,
      parameters: { message },
    };
  }
  const called = /^(?:run )?(?:the )?(?:workflow )?([\w-]+(?:\.[\w-]+)?)\b/i.exec(words)?.[1] ?? '';
  const parameters = data === null ? {} : parsed(data);
  const used = /^(?:use|call) (?:the )?(?:tool )?([\w-]+)\b/i.exec(words)?.[1] ?? '';
  const tool = agent.tools.find(({ name }) => name.toLowerCase() === used.toLowerCase());
  if (tool !== undefined) {
    const sample = sampleOf(tool.parameters, '');
    const given = data === null ? (isJsonObject(sample) ? sample : {}) : parameters;
    if (given !== null) {
      return { key: word(tool.name), label: `the tool ${tool.name}`, type: 'tool', name: tool.name, parameters: given };
    }
  }
  for (const type of ['workflow', 'relic'] as const) {
    const target = named(
      (agent[`${type}s`] ?? []).map(({ name }) => name),
      called,
    );
    if (target === null || parameters === null) continue;
    return { key: word(target), label: `the ${type} ${target}`, type, name: target, parameters };
  }
  return null;
}

/** Tools with an example of their own. */
const KNOWN: ReadonlySet<string> = new Set(['echo', 'calculator', 'web_fetch', 'text_stats', 'json_query']);

export interface Ability {
  readonly what: string;
  /** A message that asks for it. */
  readonly example: string;
}

/** The abilities of this agent, most impressive first. */
export function abilities(agent: Agent, feeds: readonly string[]): Ability[] {
  const { agents = [], workflows = [], relics = [], capabilities } = agent;
  const has = (tool: string): boolean => agent.tools.some(({ name }) => name === tool);
  const python = capabilities.includes('python');
  const shell = capabilities.includes('shell');
  const writes = relics.filter(({ name }) => /\.(?:set|append|execute)$/.test(name));
  const reads = relics.filter(({ name }) => /\.(?:list|tail|query|get)$/.test(name));
  // Tools that come with a message are the last ones.
  const other = agent.tools.findLast(({ name }) => !KNOWN.has(name));
  const candidates: (readonly [what: string, example: string | false])[] = [
    ...(other === undefined ? [] : [['use a tool', `use ${exampleOf(other)}`] as const]),
    ...agents.slice(0, 1).map((name) => {
      const asks = ['6 * 7', '2 ^ 10', '100 / 8'].map((sum) => `ask ${name} to calculate ${sum}`);
      return ['ask other agents', asks.join('; ')] as const;
    }),
    ...workflows.slice(0, 1).map((one) => ['run a workflow', `run ${exampleOf(one)}`] as const),
    ...[...writes.slice(0, 1), ...reads.slice(0, 1)].map((one) => ['use a relic', exampleOf(one)] as const),
    [
      'compute and list',
      python && shell && 'compute 2**200 in python and list the files in shell at the same time, then sum it up',
    ],
    ['wait, to show what runs in parallel', has('echo') && 'wait 2 seconds and 3 seconds in parallel'],
    ['run Python', python && 'what is the 50th fibonacci number, and the first 20 primes? show progress'],
    ['run shell commands', shell && 'run `ls -la` in the shell'],
    ['calculate', has('calculator') && 'what is (3 + 4) * 12'],
    ['read a web page', has('web_fetch') && 'fetch https://example.com'],
    ['measure a text', has('text_stats') && 'statistics of this text: …'],
    ['query JSON', has('json_query') && 'query {"a": [1, 2]} for a[0]'],
    ['remember something for this session', 'remember my city is Oslo'],
    ...feeds.slice(0, 1).map((feed) => ['show a feed', `what is the ${feed}`] as const),
  ];
  return candidates.flatMap(([what, example]) => (example === false ? [] : [{ what, example }]));
}

function exampleOf({ name, parameters }: Callable): string {
  const sample = sampleOf(parameters, '');
  return isJsonObject(sample) && Object.keys(sample).length > 0 ? `${name} ${JSON.stringify(sample)}` : name;
}

/** A minimal value that is valid under the schema. */
function sampleOf(schema: Json | undefined, name: string): Json {
  const { type, properties, required, items, minimum } = isJsonObject(schema ?? null) ? (schema as JsonObject) : {};
  if (type === 'integer' || type === 'number') return typeof minimum === 'number' ? Math.max(minimum, 2) : 2;
  if (type === 'array') return [sampleOf(items, name.replace(/s$/, ''))];
  if (type !== 'object') return name === 'sql' ? 'SELECT 1' : name;
  const needed = Array.isArray(required) ? required.filter((one) => typeof one === 'string') : [];
  const known = isJsonObject(properties ?? null) ? (properties as JsonObject) : {};
  return Object.fromEntries(needed.map((key) => [key, sampleOf(known[key], key)]));
}

function named(names: readonly string[], written: string): string | null {
  const wanted = written.toLowerCase();
  return names.find((name) => name.toLowerCase() === wanted) ?? null;
}

/** Converts a name to an output key. */
function word(name: string): string {
  return name.replace(/\W+/g, '_').slice(0, 40);
}

function parsed(data: string): JsonObject | null {
  const value: unknown = JSON.parse(data);
  return isJsonObject(value) ? value : null;
}
