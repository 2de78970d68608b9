/** Beginnings of long outputs, for prompts (L5). */
import { limits } from '../domain/limits.ts';
import type { StoredEvent } from './event-rows.ts';
import { wasRedacted } from './raw-data.ts';

/** A redacted output may be longer than the part that readers get. */
export function withCutOutput(stored: StoredEvent): StoredEvent {
  const { event, state } = stored;
  if (event.type !== 'action_completed' || !wasRedacted(state)) return stored;
  const text = JSON.stringify({ output: event.data.output });
  if (text.length <= limits.historyResultChars) return stored;
  const output = beginningOf(text.slice(0, limits.historyResultChars));
  return { ...stored, event: { ...event, data: { ...event.data, output } } };
}

/** The start of the output in the start of an `action_completed` event's JSON: text, or JSON as text. */
export function beginningOf(data: string): string {
  const output = data.slice('{"output":'.length);
  if (!output.startsWith('"')) return output;
  // The cut may have split an escape sequence, of six characters at most.
  for (let end = output.length; end > output.length - 6; end -= 1) {
    try {
      return JSON.parse(`${output.slice(0, end)}"`) as string;
    } catch {
      // Try one character less.
    }
  }
  return '';
}
