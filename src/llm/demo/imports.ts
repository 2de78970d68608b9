/** What the demo provider can do with an agent's sub-agents, workflows and relics: asked for by their names (L3). */
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Agent, StepDraft } from './capabilities.ts';

/** One name that can be called, with the JSON Schema of what it takes. */
interface Callable {
  readonly name: string;
  readonly parameters: JsonObject;
}

/**
 * The step that a clause asks for by a name of the agent's own, or null.
 *
 * @param words the clause as it was written
 * @param data the JSON that stands in it, if any
 */
export function readCall(words: string, data: string | null, agent: Agent): StepDraft | null {
  const [, asked = '', message = ''] =
    /^(?:ask|tell|let)\s+(?:the\s+)?(?:agent\s+)?([\w-]+)(?:\s+agent)?\s*(?:,|:|\bto\b|\bfor\b|\bwhat\b|\bhow\b)?\s*(.+)$/i.exec(
      words,
    ) ?? [];
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
  const [, called = ''] =
    /^(?:(?:run|start|call|use|execute)\s+)?(?:the\s+)?(?:workflow\s+|relic\s+)?([\w-]+(?:\.[\w-]+)?)\b/i.exec(words) ??
    [];
  const parameters = data === null ? {} : parsed(data);
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

/** What can be asked for in this way, and how. */
export function callHints({ agents = [], workflows = [], relics = [] }: Agent): {
  readonly able: readonly string[];
  readonly tries: readonly string[];
} {
  const [colleague] = agents;
  const [workflow] = workflows;
  const reading = relics.find(({ name }) => /\.(?:list|tail|query|get)$/.test(name)) ?? relics[0];
  const writing = relics.find(({ name }) => /\.(?:set|append|execute)$/.test(name));
  const calls = [
    ...(writing === undefined ? [] : [exampleOf(writing)]),
    ...(reading === undefined ? [] : [exampleOf(reading)]),
  ];
  return {
    able: [
      ...(colleague === undefined ? [] : [`ask another agent ("ask ${colleague} to calculate 6 * 7")`]),
      ...(workflow === undefined ? [] : [`run a workflow ("run ${exampleOf(workflow)}")`]),
      ...(calls[0] === undefined ? [] : [`use a relic ("${calls[0]}")`]),
    ],
    tries: [
      ...(colleague === undefined
        ? []
        : [
            `ask ${colleague} to calculate 6 * 7; ask ${colleague} to calculate 2 ^ 10; ask ${colleague} to calculate 100 / 8`,
          ]),
      ...(workflow === undefined ? [] : [`run ${exampleOf(workflow)}`]),
      ...calls,
    ],
  };
}

function exampleOf({ name, parameters }: Callable): string {
  const sample = sampleOf(parameters, '');
  return isJsonObject(sample) && Object.keys(sample).length > 0 ? `${name} ${JSON.stringify(sample)}` : name;
}

/** Something that a schema takes: what it requires, and nothing else. */
function sampleOf(schema: Json | undefined, name: string): Json {
  if (!isJsonObject(schema ?? null)) return name === '' ? 'something' : name;
  const { type, properties, required, items, enum: choices, minimum } = schema as JsonObject;
  if (Array.isArray(choices) && choices[0] !== undefined) return choices[0];
  if (type === 'integer' || type === 'number') return typeof minimum === 'number' ? Math.max(minimum, 2) : 2;
  if (type === 'boolean') return true;
  if (type === 'array') return [sampleOf(items, name.replace(/s$/, ''))];
  if (type !== 'object' && properties === undefined)
    return name === 'sql' ? 'SELECT 1' : name === '' ? 'something' : name;
  const needed = Array.isArray(required) ? required.filter((one) => typeof one === 'string') : [];
  const known = isJsonObject(properties ?? null) ? (properties as JsonObject) : {};
  return Object.fromEntries(needed.map((key) => [key, sampleOf(known[key], key)]));
}

function named(names: readonly string[], written: string): string | null {
  const wanted = written.toLowerCase();
  return names.find((name) => name.toLowerCase() === wanted) ?? null;
}

/** As an output key. */
function word(name: string): string {
  return name.replace(/\W+/g, '_').slice(0, 40);
}

function parsed(data: string): JsonObject | null {
  const value: unknown = JSON.parse(data);
  return isJsonObject(value) ? value : null;
}
