/** Sizes and excerpts of JSON values without serialising them: a value with shared parts can be huge as text. */
import type { Json } from '../domain/json.ts';
import type { WorkMeter } from '../domain/work.ts';

/** Thrown if a value is nested too deeply. */
export class TooDeep extends Error {
  override readonly name = 'TooDeep';
}

/**
 * The length of a value's JSON, without escapes; parts that occur several times count each time.
 *
 * @param most beyond this length the walk stops and returns Infinity
 * @param depth maximum depth
 * @param meter charged one step for each part
 * @throws TooDeep, WorkExceeded
 */
export function jsonChars(value: unknown, most: number, depth: number, meter: WorkMeter): number {
  let chars = 0;
  const walk = (part: unknown, left: number): void => {
    meter.charge();
    if (typeof part === 'string') chars += part.length + 2;
    else if (typeof part !== 'object' || part === null) chars += 5;
    else {
      if (left === 0) throw new TooDeep(`it is nested too deeply (allowed: ${depth} levels)`);
      chars += 2;
      if (Array.isArray(part)) {
        for (const item of part) {
          if (chars > most) return;
          chars += 1;
          walk(item, left - 1);
        }
        return;
      }
      for (const key in part) {
        if (chars > most) return;
        if (!Object.hasOwn(part, key)) continue;
        chars += key.length + 4;
        walk((part as Record<string, unknown>)[key], left - 1);
      }
    }
  };
  walk(value, depth);
  return chars > most ? Infinity : chars;
}

/** The start of a value's JSON, with `…` if it was truncated; reads no more than it shows. */
export function excerptOf(value: unknown, maxChars: number): string {
  const text = start(value as Json | undefined, maxChars);
  return text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
}

/** At least `room` characters of the JSON, or all of it. */
function start(value: Json | undefined, room: number): string {
  if (typeof value === 'string') return JSON.stringify(value.length > room ? value.slice(0, room + 1) : value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? String(value);
  let text = '';
  if (Array.isArray(value)) {
    for (const item of value) {
      if (text.length >= room) break;
      text += `${text === '' ? '[' : ','}${start(item, room - text.length)}`;
    }
    return `${text === '' ? '[' : text}]`;
  }
  // `in` instead of `Object.entries`: a large value is not copied for its first members.
  for (const key in value) {
    if (text.length >= room) break;
    if (!Object.hasOwn(value, key)) continue;
    text += `${text === '' ? '{' : ','}${start(key, room)}:`;
    text += start(value[key], Math.max(0, room - text.length));
  }
  return `${text === '' ? '{' : text}}`;
}
