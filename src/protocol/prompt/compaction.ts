/**
 * Shortens a long conversation for the model: recent turns verbatim, older ones as a notice (`memory` of the manifest, M8).
 * Every value of an earlier action stays readable by its name, and the notice lists the names.
 */
import { limits } from '../../domain/limits.ts';
import type { MemoryPolicy } from '../../domain/manifests/agent.ts';
import type { ChatTurn } from './chat-turn.ts';
import { sanitizeText, escapeReservedTags } from './escape-reserved-tags.ts';

/**
 * @returns the turns that are kept verbatim, and a notice about the older ones, or null if there are none. The border
 *   moves in steps of half of the kept turns. Between two steps, each prompt extends the previous one, so providers can
 *   cache it.
 */
export function compact(
  history: readonly ChatTurn[],
  { maxTurns, summarizeAfter }: MemoryPolicy,
): { readonly notice: string | null; readonly kept: readonly ChatTurn[] } {
  const most = Math.min(maxTurns ?? limits.historyTurns, summarizeAfter ?? limits.historyTurns, limits.historyTurns);
  if (history.length <= most) return { notice: null, kept: history };
  const step = Math.max(1, Math.floor(most / 2));
  const border = Math.ceil((history.length - most) / step) * step;
  const older = history.slice(0, border);
  const kept = history.slice(border);
  const lines = summarizeAfter === null ? [`${turns(older.length)} left out here.`] : summary(older);
  const values = valueNames(older, kept);
  if (values !== '') lines.push(`Results of that time that can still be used: ${values}`);
  return { notice: `<system>${lines.join('\n')}</system>`, kept };
}

function turns(count: number): string {
  return count === 1 ? '1 earlier turn of this conversation is' : `${count} earlier turns of this conversation are`;
}

/** One line for each question and each answer; if there is too much text, the oldest turns are omitted. */
function summary(older: readonly ChatTurn[]): string[] {
  const lines: string[] = [];
  let left: number = limits.summaryChars;
  for (const turn of older.toReversed()) {
    const said = [turn.user, ...(turn.received ?? []).map(({ user }) => user)].join('\n');
    const line = `- User: ${shortened(said)}\n  You: ${shortened(turn.note ?? turn.answer ?? '')}`;
    if (line.length > left) break;
    left -= line.length;
    lines.unshift(line);
  }
  const missing = older.length - lines.length;
  return [`${turns(older.length)} shortened here.`, ...(missing === 0 ? [] : [`[${missing} left out]`]), ...lines];
}

function shortened(text: string): string {
  const line = text.slice(0, limits.summaryReadChars).replace(/\s+/g, ' ').trim();
  const shown =
    line.length > limits.summaryTurnChars ? `${line.slice(0, limits.summaryTurnChars).toWellFormed()}…` : line;
  return escapeReservedTags(sanitizeText(shown)) || '(nothing)';
}

/** Names of older results, except names that newer results have reused. */
function valueNames(older: readonly ChatTurn[], kept: readonly ChatTurn[]): string {
  const shown = new Set(kept.flatMap(namesOf));
  const names = [...new Set(older.toReversed().flatMap((turn) => namesOf(turn).toReversed()))].filter(
    (name) => !shown.has(name),
  );
  const fitting: string[] = [];
  let left: number = limits.summaryChars;
  for (const name of names) {
    const written = /^[A-Za-z_]\w*$/.test(name) ? `$${name}` : `\${${name}}`;
    left -= written.length + 2;
    if (left < 0) break;
    fitting.push(escapeReservedTags(sanitizeText(written)));
  }
  return fitting.toReversed().join(', ');
}

function namesOf({ generations, isSeeded = false }: ChatTurn): string[] {
  if (isSeeded) return [];
  return generations.flatMap(({ results }) =>
    results.flatMap(({ id, outputKey, status }) => (status === 'completed' ? [outputKey ?? id] : [])),
  );
}
