/** The parameters of a target as lines for the prompt (L4). */
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { defaultOf, limitsOf } from './parameter-limits.ts';
import { oneLine } from './returns.ts';

/** One line per parameter; the properties of an object are indented below it. */
export function parameterLines(schema: JsonObject, indent: string): string[] {
  const properties = isJsonObject(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const lines: string[] = [];
  for (const [written, spec] of Object.entries(properties)) {
    const name = shownName(written);
    if (!isJsonObject(spec)) {
      lines.push(`${indent}- ${name}`);
      continue;
    }
    const byDefault = defaultOf(spec);
    const notes = [
      typeOf(spec),
      ...(byDefault === null ? [] : [byDefault]),
      ...(required.includes(written) ? ['required'] : []),
    ].join(', ');
    const description = typeof spec['description'] === 'string' ? `: ${oneLine(spec['description'])}` : '';
    lines.push(`${indent}- ${name} (${notes})${description}`);
    if (spec['type'] === 'object' && indent.length < 4) lines.push(...parameterLines(spec, `${indent}  `));
  }
  if (lines.length === 0 && indent === '') return ['No parameters.'];
  if (schema['additionalProperties'] === true && indent === '') lines.push('- any further parameters');
  return lines;
}

/** The schema of a server may have any name: one that is not a word is quoted, so that it cannot look like a line of the prompt. */
function shownName(name: string): string {
  return /^[\p{L}\p{N}_$@.:/-]+$/u.test(name) ? name : JSON.stringify(name);
}

/** The type of a parameter with its limits: `integer 1..60`. */
function typeOf(spec: JsonObject): string {
  const options = spec['enum'];
  if (Array.isArray(options)) return options.map((option) => JSON.stringify(option)).join('|');
  if (spec['const'] !== undefined) return JSON.stringify(spec['const']);
  return `${plainTypeOf(spec)}${limitsOf(spec)}`;
}

function plainTypeOf(spec: JsonObject): string {
  const type: Json | undefined = spec['type'];
  if (type === 'array') return isJsonObject(spec['items']) ? `array of ${typeOf(spec['items'])}` : 'array';
  if (type === 'object' && isJsonObject(spec['additionalProperties'])) {
    return `object of ${typeOf(spec['additionalProperties'])}`;
  }
  if (Array.isArray(type)) return type.join('|');
  return typeof type === 'string' ? type : unionOf(spec);
}

/** The alternatives of a value: `"all"|{from: string, to?: string}`. */
function unionOf({ anyOf, oneOf }: JsonObject): string {
  const options = anyOf ?? oneOf;
  if (!Array.isArray(options) || options.length === 0) return 'any';
  const text = [...new Set(options.map(alternative))].join('|');
  return text.length <= limits.unionPromptChars ? text : 'any';
}

function alternative(option: Json): string {
  if (!isJsonObject(option)) return 'any';
  const { type, properties, required } = option;
  if (type !== 'object' || !isJsonObject(properties)) return typeOf(option);
  const isRequired = (name: string): boolean => Array.isArray(required) && required.includes(name);
  const members = Object.entries(properties).map(
    ([name, spec]) => `${shownName(name)}${isRequired(name) ? '' : '?'}: ${isJsonObject(spec) ? typeOf(spec) : 'any'}`,
  );
  return `{${members.join(', ')}}`;
}
