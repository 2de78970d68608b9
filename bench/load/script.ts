/** What the scripted model of `bench:load` writes. The content of a message selects the script. */

export const SCRIPT = {
  /** Words of an answer, one per chunk, and the time between two chunks in ms: 50 words a second. */
  words: 100,
  wordMs: 20,
  /** Every n-th turn calls a tool before it answers. */
  callEvery: 5,
} as const;

/** Time from the first to the last word of an answer, in ms. */
export const ANSWER_MS = SCRIPT.words * SCRIPT.wordMs;

/** An answer at the pace of a model. */
export const CHAT = 'bench-chat';
/** The same after one call of the tool with this name. */
export const CALL = 'bench-call-';
/** A few words at once. */
export const SHORT = 'bench-short';
/** Ten words, and then nothing until the client leaves. */
export const HOLD = 'bench-hold';

/** Text that is in the first and in the last word of an answer, and nowhere else. */
export const FIRST = 'w0.';
export const LAST = `w${SCRIPT.words - 1}.`;

export interface Step {
  readonly text: string;
  readonly waitMs: number;
  /** The call whose closing tag ends with this text. */
  readonly closes?: string;
}

export interface Script {
  readonly steps: readonly Step[];
  /** Whether the answer ends. */
  readonly ends: boolean;
}

const word = (n: number): string => `w${n}. `;

/**
 * @param body the request to the model; its last message decides
 * @param toolUrl address of the tool's server
 */
export function scriptFor(body: string, toolUrl: string): Script {
  const at = body.lastIndexOf('bench-');
  const [asked = CHAT] = /^[\w-]+/.exec(body.slice(Math.max(at, 0))) ?? [];
  if (asked === SHORT) return { steps: [{ text: `${word(0)}${LAST}`, waitMs: 0 }], ends: true };
  if (asked === HOLD) return { steps: words(10, SCRIPT.wordMs), ends: false };
  if (!asked.startsWith(CALL)) return { steps: words(SCRIPT.words, SCRIPT.wordMs), ends: true };
  const name = asked.slice(CALL.length);
  const parameters = JSON.stringify({ url: `${toolUrl}/${name}` });
  return {
    steps: [
      { text: `<action name="web_fetch" mode="async" id="call">${parameters}</action`, waitMs: 0 },
      { text: '>', waitMs: SCRIPT.wordMs, closes: name },
      { text: '<response final="true">', waitMs: 0 },
      ...words(SCRIPT.words, SCRIPT.wordMs),
      { text: '$call.status</response>', waitMs: 0 },
    ],
    ends: true,
  };
}

function words(count: number, waitMs: number): Step[] {
  return Array.from({ length: count }, (_, n) => ({ text: word(n), waitMs: n === 0 ? 0 : waitMs }));
}
