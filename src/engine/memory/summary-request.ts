/**
 * The request for a summary (C10): what was said in some turns, as text.
 *
 * Invariants:
 *  1. It has only what the prompts of these turns had: messages, answers as the model wrote them, and the beginnings of results.
 *  2. Text of the conversation is indented, so that no line of it can pass as a line of the request.
 */
import type { ActionReport, ChatTurn, ConversationSummary } from '../../protocol/prompt/chat-turn.ts';
import { escapeReservedTags, sanitizeText } from '../../protocol/prompt/escape-reserved-tags.ts';
import { textOf } from '../../protocol/prompt/external-text.ts';
import { limits } from '../../domain/limits.ts';
import type { SummaryPolicy } from '../../domain/manifests/agent.ts';
import { SUMMARY_TEMPLATE, fillTemplate } from '../../domain/summary-template.ts';

/**
 * @param turns that follow the previous summary, in order; null: one that is too long to be read
 * @returns the request, and how many of the turns it has: the first ones that fit, at least one
 */
export function summaryRequest(
  { tokens, template }: Pick<SummaryPolicy, 'tokens' | 'template'>,
  previous: ConversationSummary | null,
  turns: Iterable<ChatTurn | null>,
): { readonly prompt: string; readonly count: number } {
  const first = (previous?.turns ?? 0) + 1;
  const texts: string[] = [];
  let left: number = limits.summaryInputChars;
  for (const turn of turns) {
    const text = turn === null ? `turn_${first + texts.length}: (too long)` : turnText(turn, first + texts.length);
    if (texts.length > 0 && text.length > left) break;
    left -= text.length;
    texts.push(text);
  }
  const prompt = fillTemplate(template ?? SUMMARY_TEMPLATE, {
    // The whole text: what is left out here is forgotten.
    previous: indented(previous?.text ?? '(none)', limits.summaryTextChars),
    turns: texts.join('\n'),
    tokens: String(tokens),
  });
  return { prompt, count: texts.length };
}

function turnText(
  { user, received = [], generations, answer, note, isSeeded = false }: ChatTurn,
  turn: number,
): string {
  const results = generations.flatMap((generation) => generation.results).slice(-limits.summaryInputResults);
  const said = [user, ...received.map((message) => message.user)].filter((text) => text !== '').join('\n');
  return [
    `turn_${turn}:`,
    ...(said === '' ? [] : ['  User:', indented(said)]),
    ...(results.length === 0 ? [] : ['  Results:', ...results.map((report) => resultText(report, isSeeded))]),
    '  Assistant:',
    indented(note ?? answer ?? '(nothing)'),
  ].join('\n');
}

function resultText(
  { id, name, outputKey, status, output = null, note = null }: ActionReport,
  isSeeded: boolean,
): string {
  const which = isSeeded ? (name ?? 'a tool') : `$${outputKey ?? id}`;
  const text = status === 'completed' ? textOf(output) : `${status}: ${note ?? ''}`;
  return indented(`${which} = ${short(text.replace(/\s+/g, ' '), limits.summaryInputResultChars)}`);
}

function indented(text: string, most: number = limits.summaryInputTurnChars): string {
  const safe = escapeReservedTags(sanitizeText(short(text, most)));
  return safe
    .split(/\r\n|[\n\r\u0085\u2028\u2029]/)
    .map((line) => `    ${line}`)
    .join('\n');
}

function short(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`;
}
