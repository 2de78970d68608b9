/** What the runtime tells the model between its outputs. */
import { sanitizeText, escapeReservedTags } from './escape-reserved-tags.ts';
import type { Cut, MissingValue } from './chat-turn.ts';

export const NOTHING_RAN = '<system>No action ran. Declare one, or answer in <response final="true">.</system>';
export const GO_ON = '<system>These are the results. Go on: act again, or answer in <response final="true">.</system>';
export const ANSWER_AGAIN =
  '<system>These are the results. Your response was not final: an action failed, or the response does not use every result. Go on, then answer again in <response final="true">.</system>';
export const RECEIVED = '<system>The user has sent another message while you were working:</system>';
export const LAST_CHANCE =
  '<system>This is the last generation: no action will run. Answer now in <response final="true"> with what you have.</system>';

/** Opens a seeded history that begins with the assistant: endpoints want a user message first (C1). */
export const BEGINS = '<system>The conversation begins with your message.</system>';
/** Follows a seeded history with tool results, because the results of the session have names (C1). */
export const NAMES_BEGIN =
  '<system>The conversation up to here took place before this session. No name refers to its results: repeat an action if you need its result.</system>';

const CUT_REASONS: Readonly<Record<Cut, string>> = {
  length: 'it reached the limit of one output',
  content_filter: 'a content filter stopped it',
  error: 'the connection broke',
  abort: 'it was stopped',
};

/** Shown in the next iteration, so that the model neither repeats complete blocks nor relies on lost ones (P15). */
export function cutNotice(cut: Cut): string {
  return `<system>Your last output was cut off: ${CUT_REASONS[cut]}. What was complete by then counts. An action or a response that was not closed is lost: write it again, shorter.</system>`;
}

/** Shown once in a run, so that the model answers with values that exist (P10). */
export function missingNotice(missing: readonly MissingValue[]): string {
  const listed = (values: readonly MissingValue[]): string => values.map(({ reference }) => reference).join(', ');
  const inActions = missing.filter(({ inAction }) => inAction === true);
  const inResponse = missing.filter(({ inAction }) => inAction !== true);
  const shapes = new Map(missing.map(({ name, shape }) => [name, shape]));
  const known = [...shapes].filter(([, shape]) => shape !== '').map(([name, shape]) => `$${name} is ${shape}`);
  const sentences = [
    'Your response was not final.',
    inResponse.length === 0
      ? ''
      : `These references in it have no value (no such name or path, null, or empty text): ${listed(inResponse)}.`,
    inActions.length === 0
      ? ''
      : `An action ran with a blank in its text in place of these references, whose path does not exist: ${listed(inActions)}. Mend that if it matters.`,
    known.length === 0 ? '' : `What these results look like: ${known.join('; ')}.`,
    'Answer again, with paths that exist or without these values.',
  ];
  const text = sentences.filter((sentence) => sentence !== '').join(' ');
  return `<system>${escapeReservedTags(sanitizeText(text), 'reserved')}</system>`;
}
