/** The names that references in the original's workflows may use: ids of steps, and variables of answers. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { Meaning } from './workflow-references.ts';

export type Symbols = Map<string, Meaning>;

/** Lists of steps inside a step of the original. */
const LISTS = ['then', 'else', 'body', 'steps', 'step', 'parallel', 'catch', 'finally', 'default', 'try_catch'];
/** Their result is one value: `.output` is the whole of it. */
const WHOLE = new Set(['agent', 'workflow', 'human', 'feed', 'reduce']);

/** The compiled tool that runs a command; its result is text. */
export const COMMAND = /^(?:builtin\/)?exec$/;

/** The name of a step: its id, or its name in plain characters. */
export function nameOf(step: JsonObject, index: number): string {
  const written = step['id'] ?? step['name'];
  const plain = String(typeof written === 'string' || typeof written === 'number' ? written : '')
    .replaceAll(/[^A-Za-z0-9_-]+/g, '_')
    .replace(/^_+(?=.)/, '')
    .slice(0, 64);
  if (plain === '' || plain === '_') return `step_${index + 1}`;
  return /^[A-Za-z_]/.test(plain) ? plain : `s_${plain}`.slice(0, 64);
}

/** Every step of the list and inside it. */
export function symbolsIn(steps: Json | undefined, symbols: Symbols = new Map()): Symbols {
  const list = Array.isArray(steps) ? steps : isJsonObject(steps) ? [steps] : [];
  for (const [index, step] of list.entries()) {
    if (!isJsonObject(step)) continue;
    const name = nameOf(step, index);
    const type = String(step['type'] ?? (step['agent'] === undefined ? '' : 'agent'));
    const meaning: Meaning = {
      path: `steps.${name}`,
      isWhole: WHOLE.has(type) || COMMAND.test(String(step['tool'] ?? '')),
      isText: type === 'agent' || type === 'human',
      member: type === 'map' ? 'items' : type === 'parallel_race' ? 'result' : null,
    };
    for (const key of [step['id'], step['name'], type === 'human' ? step['response_var'] : null]) {
      if (typeof key === 'string' && !symbols.has(key)) symbols.set(key, meaning);
    }
    for (const field of LISTS) symbolsIn(step[field], symbols);
    for (const one of Array.isArray(step['cases']) ? step['cases'] : []) {
      if (isJsonObject(one)) symbolsIn(one['steps'], symbols);
    }
  }
  return symbols;
}
