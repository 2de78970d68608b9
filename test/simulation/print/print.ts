/** Prints a history, what it violates and what happened in it, for people. */
import type {
  ActionScript,
  AgentSettings,
  AttemptScript,
  CutScript,
  FileScript,
  GenerationScript,
  History,
  MessageScript,
  ViaScript,
} from '../history.ts';
import { INVARIANTS } from '../invariants/all.ts';
import type { Violation } from '../invariants/invariant.ts';
import type { Observation } from '../observation.ts';
import { actionsOf, cutPlace, textOf, tokenOf } from '../script.ts';
import { USUAL_AGENT, USUAL_GENERATION } from '../usual.ts';
import { counted, decisionText, plannedOf, sendingText } from './planned.ts';
import { timelineText } from './timeline.ts';

const MOST_WHAT_CHARS = 2_000;

const SETTINGS: Readonly<Record<keyof AgentSettings, string>> = {
  maxParallelActions: 'parallel actions',
  maxIterations: 'iterations',
  maxActions: 'actions',
  modelCalls: 'model calls',
  seconds: 'seconds',
  failFast: 'it fails fast',
  supervised: 'unsafe actions need an approval',
  policies: 'it has policies',
  feed: 'it has a periodic feed',
  expiryMs: 'ms without use until the session expires',
  summarizeAfter: 'turns that its prompts show',
};

/** The violations of one history: what should hold, and what was seen. */
export function violationsText(violations: readonly Violation[]): string {
  return [...Map.groupBy(violations, ({ invariant }) => invariant)]
    .map(([invariant, seen]) => {
      const holds = INVARIANTS.find(({ name }) => name === invariant)?.holds;
      const lines = seen.map(({ what }) => `  ${indented(what.slice(0, MOST_WHAT_CHARS), '  ')}`);
      return [`Violated: ${invariant}.${holds === undefined ? '' : ` ${holds}`}`, ...lines].join('\n');
    })
    .join('\n');
}

/** @param seen null if the history did not end */
export function historyText(history: History, seen: Observation | null): string {
  const planned = plannedOf({ ...history, messages: [] });
  return [
    'The history:',
    ...settingLines(history.agent),
    ...seededLines(history.seeded),
    ...history.messages.flatMap(messageLines),
    ...history.decisions.map((decision, index) => `  Approval ${index + 1}: ${decisionText(decision)}.`),
    ...planned.map(({ at, text }) => `  ${at === null ? capital(text) : `At ${at} ms, ${text}`}.`),
    '',
    seen === null
      ? 'The history did not end. A timeline is printed only for a history that ends.'
      : `What happened:\n${timelineText(seen)}`,
  ].join('\n');
}

function settingLines(agent: AgentSettings): string[] {
  const changed = (Object.keys(SETTINGS) as (keyof AgentSettings)[]).flatMap((name) => {
    const value = agent[name];
    if (value === USUAL_AGENT[name]) return [];
    return [value === true ? SETTINGS[name] : `at most ${String(value)} ${SETTINGS[name]}`];
  });
  return changed.length === 0 ? [] : [`  The agent: ${changed.join('; ')}.`];
}

function seededLines(seeded: History['seeded']): string[] {
  if (seeded.length === 0) return [];
  const texts = seeded.map(({ type, words }) => `${type} (${counted(words, 'word')})`);
  return [`  The session begins with a history: ${texts.join(', ')}.`];
}

function messageLines(script: MessageScript, message: number): string[] {
  const { type, at, ifBusy, repeats, via, files, generations } = script;
  const what = sendingText(script, message);
  const client = via === null ? 'a client' : clientText(via, repeats);
  const details = [
    ...(ifBusy === 'reject' && type === 'message' ? ['to be rejected if the session is busy'] : []),
    ...(ifBusy === 'steer' && type === 'message' ? ['for the run that is active, if there is one'] : []),
    ...(files.length > 0 && type === 'message' ? [`with ${files.map(fileText).join(', ')}`] : []),
    ...(repeats && type === 'message' && via === null ? ['twice with the same idempotency key'] : []),
  ];
  return [
    `  At ${at} ms, ${client} ${[what, ...details].join(', ')}.`,
    ...generations.flatMap((script, generation) => {
      const isPosted = type === 'text' && generation === 0;
      return generationLines(script, message, generation, isPosted);
    }),
  ];
}

function clientText({ protocol, reads, pauseMs }: ViaScript, isTwice: boolean): string {
  const pause = pauseMs === 0 ? [] : [`pauses ${pauseMs} ms after each read`];
  const leaves = reads === null ? [] : [`leaves after ${counted(reads, 'read')}`];
  const how = [...pause, ...leaves].join(' and ');
  return `a client of ${protocol}${isTwice ? ', and another one like it,' : ''}${how === '' ? '' : `, which ${how},`}`;
}

/** `image 1` */
function fileText({ form, body }: FileScript): string {
  return `${form.replace('_', ' ')} ${body}`;
}

function generationLines(script: GenerationScript, message: number, generation: number, isPosted: boolean): string[] {
  const { finish, pieceChars, gapMs, reportsUsage, calls, cut, reason } = script;
  const pieces = pieceChars === USUAL_GENERATION.pieceChars ? '' : ` in pieces of ${pieceChars} characters`;
  const gap = gapMs === 0 ? '' : `, with pauses of ${gapMs} ms`;
  const usage = reportsUsage ? ', reports its usage' : '';
  const who = isPosted ? 'The text is posted' : `Generation ${generation} is written`;
  const text = textOf(message, generation, script);
  const asCalls =
    calls === null ? '' : `, with its actions as function calls (${calls.written}, repeats ${calls.repeats})`;
  const ending = cut === null ? `finishes with "${reason ?? finish}"` : cutText(cut, calls === null ? text : null);
  const how = isPosted ? pieces : `${pieces}${gap}${usage}${asCalls}, and ${ending}`;
  return [
    `    ${who}${how}:`,
    `      ${text === '' ? '(nothing)' : indented(text, '      ')}`,
    ...actionsOf(script).flatMap((action, place) =>
      attemptLines(action, tokenOf({ message, generation, action: place })),
    ),
  ];
}

/** @param text null: it is cut off between two chunks */
function cutText(cut: CutScript, text: string | null): string {
  const where = text === null ? `before chunk ${cut.chars} of its chunks` : `after ${cutPlace(text, cut)} characters`;
  const pause = cut.pauseMs === 0 ? '' : `, ${cut.pauseMs} ms later`;
  const keeps = cut.cause === 'host' ? `, keeps ${cut.keeps}` : '';
  return `is cut off ${where}${pause} (${cut.cause}${keeps})`;
}

function attemptLines({ attempts }: ActionScript, token: string): string[] {
  if (attempts.every(isPlain)) return [];
  const texts = attempts.map(({ ms, end }, index) => {
    const isLast = index === attempts.length - 1;
    const which = isLast && index > 0 ? `attempt ${index + 1} and later ones` : `attempt ${index + 1}`;
    const name = attempts.length === 1 ? 'every attempt' : which;
    return `${name}: ${end}${end === 'silent' ? '' : ` after ${ms} ms`}`;
  });
  return [`      ${token}: ${texts.join('; ')}`];
}

function isPlain({ ms, end }: AttemptScript): boolean {
  return ms === 0 && end === 'ok';
}

function indented(text: string, indent: string): string {
  return text.replaceAll('\n', `\n${indent}`);
}

function capital(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
