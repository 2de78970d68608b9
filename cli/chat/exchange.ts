/** Messages of a session as the chat reads and shortens them: where a conversation is. */
import { visible } from '../terminal/visible.ts';
import type { Api } from './question.ts';

export interface Message {
  readonly role: string;
  readonly content: string | null;
  readonly run_id?: string;
  readonly status?: string;
  readonly parent_run?: string | null;
  readonly retry_of?: string;
  readonly branches?: readonly string[];
  readonly steered?: true;
  readonly error?: { readonly code: string; readonly message: string };
}

/** A message of a user and its answer. The answer is null while its run is active. */
export interface Exchange {
  readonly question: string;
  readonly answer: string | null;
}

const SHOWN_CHARS = 300;

/** The exchange of a run, or the last one of the conversation; null if there is none. @param path of the session */
export async function exchangeOf(api: Api, path: string, run?: string): Promise<Exchange | null> {
  const query = run === undefined ? '' : `&run=${run}`;
  const { messages } = await api.read<{ messages: Message[] }>(`${path}/history?limit=1${query}`);
  const last = messages.at(-1);
  if (last === undefined) return null;
  const asked = messages.findLast(({ role, steered }) => role === 'user' && steered !== true);
  const said = messages.findLast(({ role }) => role === 'assistant');
  const isActive = said === undefined || /^(queued|running|waiting)$/.test(said.status ?? '');
  const text = said?.error === undefined ? (said?.content ?? '') : `${said.error.code}: ${said.error.message}`;
  return { question: asked?.content ?? '', answer: isActive ? null : text };
}

/** An exchange in two lines, or what there is of it. */
export function shownExchange(exchange: Exchange | null): string {
  if (exchange === null) return '  no message yet';
  const { question, answer } = exchange;
  const lines = [
    ...(question === '' ? [] : [`  > ${short(question)}`]),
    ...(answer === null ? [] : [`  ${short(answer)}`]),
  ];
  return lines.join('\n');
}

/** A text in one line, cut, without the signs of Markdown. */
export function short(text: string, chars: number = SHOWN_CHARS): string {
  const line = withoutMarkdown(text).replace(/\s+/g, ' ').trim();
  return visible(line.length > chars ? `${line.slice(0, chars).toWellFormed()}…` : line);
}

/** Only signs that are certain: `6 * 7` and `a_b` stay. */
function withoutMarkdown(text: string): string {
  return text
    .replace(/^\s*(?:#{1,6}\s+|>\s?|```.*$)/gm, '')
    .replace(/!?\[([^\]\n]*)\]\([^)\s]*\)/g, '$1')
    .replace(/\*\*|`/g, '');
}
