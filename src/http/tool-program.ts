/** One call of a tool as a program of protocol text: so the engine checks, schedules and journals it like any other. */
import type { Json, JsonObject } from '../domain/json.ts';

/** One action as protocol text. Parameters are data: no tag and no reference is read in them. */
export function programOf(name: string, parameters: JsonObject): string {
  const body = { name, parameters: literal(parameters) };
  return `<action type="tool" mode="sync" id="tool">${JSON.stringify(body).replaceAll('<', String.raw`\u003c`)}</action>`;
}

/** The value with each `$` written as `$$`, which protocol text reads as `$` (P12). */
function literal(value: Json): Json {
  if (typeof value === 'string') return value.replaceAll('$', '$$$$');
  if (Array.isArray(value)) return value.map(literal);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, literal(member)]));
}
