/**
 * Builds the messages for the model: the conversation, action results and feeds (L5, X1).
 *
 * The runtime's information is in the runtime's own tags, in user messages. External text is escaped first, so a
 * result can neither end its block nor look like an action. The model's own text is sent back verbatim, with
 * references unsubstituted.
 */
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { MemoryPolicy } from '../../domain/manifest.ts';
import type { Attachment, ChatMessage } from '../../domain/ports.ts';
import { NO_FILES, fileBlock, resultMarker } from './attached-files.ts';
import type { ShownFiles } from './attached-files.ts';
import { compact } from './compaction.ts';
import { sanitizeText, escapeReservedTags } from './escape-reserved-tags.ts';
import type { NativeCall } from '../native/tool-calls.ts';
import type { ActionReport, ChatTurn, CurrentTurn, Cut, FeedReport, Generation, MissingValue } from './chat-turn.ts';

const NOTHING_RAN = '<system>No action ran. Declare one, or answer in <response final="true">.</system>';
const GO_ON = '<system>These are the results. Go on: act again, or answer in <response final="true">.</system>';
const ANSWER_AGAIN =
  '<system>These are the results. Your response was not final: an action failed, or the response does not use every result. Go on, then answer again in <response final="true">.</system>';
const LAST_CHANCE =
  '<system>This is the last generation: no action will run. Answer now in <response final="true"> with what you have.</system>';

/** Opens a seeded history that begins with the assistant: endpoints want a user message first (C1). */
const BEGINS = '<system>The conversation begins with your message.</system>';
/** Follows a seeded history with tool results, because the results of the session have names (C1). */
const NAMES_BEGIN =
  '<system>The conversation up to here took place before this session. No name refers to its results: repeat an action if you need its result.</system>';

const CUT_REASONS: Readonly<Record<Cut, string>> = {
  length: 'it reached the limit of one output',
  content_filter: 'a content filter stopped it',
  error: 'the connection broke',
  abort: 'it was stopped',
};

/** Shown in the next iteration, so that the model neither repeats complete blocks nor relies on lost ones (P15). */
function cutNotice(cut: Cut): string {
  return `<system>Your last output was cut off: ${CUT_REASONS[cut]}. What was complete by then counts. An action or a response that was not closed is lost: write it again, shorter.</system>`;
}

/** Shown once in a run, so that the model answers with values that exist (P10). */
function missingNotice(missing: readonly MissingValue[]): string {
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

/** A value cut shorter than this is useless; it is left out instead. */
const LEAST_SHOWN_CHARS = 64;

/**
 * The messages of one model call: system, then user and assistant in strict alternation. The results of a generation
 * open the next user message; feeds and notices end it, so everything before the last message is a stable prefix.
 *
 * Native calls are part of the assistant's message. One `tool` message answers each of them, in order (P17). The next
 * generation may follow these directly: a user message is added only if there is something to say.
 *
 * Images and files are attached to the user message that has their placeholders. Those in the results of native calls
 * get a user message of their own after the `tool` messages, which hold only text at most endpoints.
 */
export function buildMessages(conversation: {
  readonly system: string;
  readonly history: readonly ChatTurn[];
  /** How much of the history is shown verbatim; default: all of it. */
  readonly memory?: MemoryPolicy;
  readonly current: CurrentTurn;
  /** Default: only the placeholders. */
  readonly files?: ShownFiles;
}): ChatMessage[] {
  const { current, memory = KEEP_ALL, files = NO_FILES } = conversation;
  const { notice, kept } = compact(conversation.history, memory);
  const budget = budgetFor(kept, current);

  const messages = new MessageList(conversation.system);
  if (notice !== null) messages.user(notice);
  const shared = { budget, files };
  addHistory(messages, kept, shared);
  addTurn(messages, current, {
    ...shared,
    ahead: current.last === true ? LAST_CHANCE : GO_ON,
    tools: current.tools ?? '',
  });
  if (current.feeds !== undefined && current.feeds.length > 0) {
    messages.user(renderFeeds(current.feeds, limits.feedsPromptChars));
  }
  return messages.list;
}

/**
 * A finished turn as its model saw it: from the system prompt to the model's last output.
 *
 * @returns the messages, and how many of them, from the start, are earlier turns
 */
export function buildTranscript(conversation: {
  readonly system: string;
  readonly history: readonly ChatTurn[];
  readonly turn: ChatTurn;
}): { readonly messages: ChatMessage[]; readonly context: number } {
  const { history, turn } = conversation;
  const budget = budgetFor(history, turn);
  const messages = new MessageList(conversation.system);
  const shared = { budget, files: NO_FILES };
  addHistory(messages, history, shared);
  const context = messages.list.length;
  addTurn(messages, turn, { ...shared, ahead: null });
  const last = messages.list.findLastIndex(({ role }) => role === 'assistant');
  return { messages: messages.list.slice(0, last + 1), context };
}

/** What the turns of one prompt share. */
interface SharedByTurns {
  readonly budget: ResultBudget;
  readonly files: ShownFiles;
}

function addHistory(messages: MessageList, history: readonly ChatTurn[], shared: SharedByTurns): void {
  const lastSeeded = history.findLastIndex(({ isSeeded = false }) => isSeeded);
  const seeded = history.slice(0, lastSeeded + 1);
  for (const turn of seeded) addTurn(messages, turn, { ...shared, ahead: null });
  const hasResults = seeded.some(({ generations }) => generations.some(({ results }) => results.length > 0));
  if (hasResults) messages.user(NAMES_BEGIN);
  for (const turn of history.slice(lastSeeded + 1)) addTurn(messages, turn, { ...shared, ahead: null });
}

/**
 * @param ahead the notice before the next generation; null when the turn is over
 * @param tools the tools of the message, for the turn in progress (C3)
 */
function addTurn(
  messages: MessageList,
  turn: ChatTurn,
  { budget, files, ahead, tools = '' }: SharedByTurns & { readonly ahead: string | null; readonly tools?: string },
): void {
  const attached = (given: readonly Attachment[] = []): Attachment[] =>
    given.flatMap((file) => files.attached.get(file) ?? []);
  const isBegun = turn.isSeeded === true && turn.user === '';
  messages.user(isBegun ? BEGINS : escapeReservedTags(sanitizeText(turn.user), 'runtime'), attached(turn.files));
  for (const file of turn.files ?? []) {
    const text = files.texts.get(file);
    if (text !== undefined) messages.user(fileBlock(file, text));
  }
  if (tools !== '') messages.user(tools);
  for (const [index, generation] of turn.generations.entries()) {
    const { text, calls = [], results, cut: broke = null, missing = [], rejected = false } = generation;
    const called = calledResults(generation);
    const answers = new Set(called.values());
    const unanswered = results.filter((report) => !answers.has(report));
    messages.assistant(text, calls);
    for (const call of calls) messages.tool(call, budget.answer(called.get(call)));
    const ofCalls = results.filter((report) => answers.has(report)).flatMap((report) => report.files ?? []);
    const shownOfCalls = ofCalls.filter((file) => files.attached.has(file));
    if (shownOfCalls.length > 0) {
      messages.user(
        `<system>Files of these results: ${shownOfCalls.map(resultMarker).join(' ')}</system>`,
        attached(shownOfCalls),
      );
    }
    if (unanswered.length > 0) {
      messages.user(budget.block(unanswered), attached(unanswered.flatMap((report) => report.files ?? [])));
    }
    const next = index < turn.generations.length - 1 ? GO_ON : ahead;
    // An empty output has nothing to repair.
    const wasCut = broke !== null && next !== null && (calls.length > 0 || text.trim() !== '');
    if (wasCut) messages.user(cutNotice(broke));
    const hasMissing = next !== null && missing.length > 0;
    if (hasMissing) messages.user(missingNotice(missing));
    if (next === GO_ON && calls.length > 0 && unanswered.length === 0 && !wasCut && !hasMissing) continue;
    if (next === GO_ON && hasMissing) continue;
    if (next === GO_ON && results.length > 0 && rejected) messages.user(ANSWER_AGAIN);
    else if (next !== null) messages.user(next === GO_ON && results.length === 0 ? NOTHING_RAN : next);
  }
  if (turn.note !== undefined)
    messages.user(`<system>${escapeReservedTags(sanitizeText(turn.note), 'reserved')}</system>`);
  if (turn.generations.length === 0 && ahead === LAST_CHANCE) messages.user(LAST_CHANCE);
}

const KEEP_ALL: MemoryPolicy = { maxTurns: null, summarizeAfter: null };

/** Newest first: when the budget is used up, the oldest results are left out. */
function budgetFor(history: readonly ChatTurn[], current: ChatTurn): ResultBudget {
  const turns = [...history, current];
  const generations = turns.flatMap((turn) => turn.generations);
  const named = turns.filter(({ isSeeded = false }) => !isSeeded).flatMap((turn) => turn.generations);
  const latest = latestOf(named.map(({ results }) => results));
  const budget = new ResultBudget(limits.resultsPromptChars);
  for (const generation of generations.toReversed()) {
    budget.reserve(generation.results, latest, new Set(calledResults(generation).values()));
  }
  return budget;
}

/**
 * The reports that their ids still refer to: an action of a later generation takes over the name; an action rejected
 * next to an accepted one does not (P6).
 */
function latestOf(generations: readonly (readonly ActionReport[])[]): ReadonlySet<ActionReport> {
  const latest = new Map<string, ActionReport>();
  for (const reports of generations) {
    for (const report of reports) if (report.status === 'rejected') latest.set(report.id, report);
    for (const report of reports) if (report.status !== 'rejected') latest.set(report.id, report);
  }
  return new Set(latest.values());
}

/** Maps every native call to its report, if it has one. */
export function calledResults({ calls = [], results }: Generation): Map<NativeCall, ActionReport> {
  const found = new Map<NativeCall, ActionReport>();
  for (const call of calls) {
    // By position. Conversations stored by an earlier version have ids only.
    const report =
      results.find(({ ordinal }) => ordinal !== undefined && ordinal === call.ordinal) ??
      results.find(({ id, ordinal }) => id === call.actionId && (ordinal === undefined || call.ordinal === undefined));
    if (report !== undefined) found.set(call, report);
  }
  return found;
}

/** `<context_feed id age>` blocks (F2). Feeds share `budgetChars`; a longer value is cut with a marker (F4). */
export function renderFeeds(feeds: readonly FeedReport[], budgetChars: number): string {
  const share = Math.floor(budgetChars / Math.max(1, feeds.length));
  return feeds
    .map(({ id, value, ageMs }) => {
      const age = `${Math.max(0, Math.round(ageMs / 1000))}s`;
      return `<context_feed id="${attribute(id)}" age="${age}">\n${cut(textOf(value), share, id)}\n</context_feed>`;
    })
    .join('\n');
}

/** Distributes the characters available for results, first come, first served. */
class ResultBudget {
  readonly #rendered = new Map<ActionReport, string>();
  #left: number;

  constructor(chars: number) {
    this.#left = chars;
  }

  /**
   * @param latest reports whose `$id` still refers to the whole value
   * @param called reports that answer native calls: their message is their frame
   */
  reserve(
    results: readonly ActionReport[],
    latest: ReadonlySet<ActionReport>,
    called: ReadonlySet<ActionReport>,
  ): void {
    for (const report of results.toReversed()) {
      const [open, close] = called.has(report) ? [statusLine(report), ''] : frameOf(report);
      const room = Math.min(limits.resultPromptChars, this.#left - open.length - close.length);
      if (room < LEAST_SHOWN_CHARS) {
        // An older result must not be shown if a newer one did not fit.
        this.#left = 0;
        continue;
      }
      const text =
        open +
        cut(bodyOf(report), room, report.status === 'completed' && latest.has(report) ? report.id : null) +
        close;
      this.#left -= text.length;
      this.#rendered.set(report, text);
    }
  }

  /** The content of the message that answers a native call. */
  answer(report: ActionReport | undefined): string {
    if (report === undefined) return '[no result]';
    return this.#rendered.get(report) ?? '[the result is left out for length]';
  }

  /** One `<results>` block: an `<action_result id name status ms>` for each report, and how many are left out. */
  block(results: readonly ActionReport[]): string {
    const shown = results.flatMap((report) => this.#rendered.get(report) ?? []);
    const missing = results.length - shown.length;
    const note =
      missing === 0 ? [] : [`[${missing} earlier ${missing === 1 ? 'result is' : 'results are'} left out for length]`];
    return ['<results>', ...note, ...shown, '</results>'].join('\n');
  }
}

/** Chat messages in alternation: adjacent messages of one role are merged. */
class MessageList {
  readonly list: ChatMessage[];

  constructor(system: string) {
    this.list = [{ role: 'system', content: system }];
  }

  user(content: string, attached: readonly Attachment[] = []): void {
    const last = this.list.at(-1);
    const isJoined = last?.role === 'user';
    const attachments = [...(isJoined ? (last.attachments ?? []) : []), ...attached];
    if (isJoined) this.list.pop();
    this.list.push({
      role: 'user',
      content: isJoined ? `${last.content}\n\n${content}` : content,
      ...(attachments.length === 0 ? {} : { attachments }),
    });
  }

  /** A generation without text and calls adds no message: endpoints reject empty ones. */
  assistant(content: string, calls: readonly NativeCall[]): void {
    if (calls.length > 0) {
      const toolCalls = calls.map(({ actionId: _actionId, ordinal: _ordinal, type: _type, ...shown }) => shown);
      this.list.push({ role: 'assistant', content: content.trim() === '' ? '' : content, toolCalls });
    } else if (content.trim() !== '') this.list.push({ role: 'assistant', content });
  }

  tool({ id }: NativeCall, content: string): void {
    this.list.push({ role: 'tool', content, toolCallId: id });
  }
}

/** The status line of a bare message, in place of a result's frame. */
function statusLine({ status }: ActionReport): string {
  return status === 'completed' ? '' : `[${status}] `;
}

function frameOf({ id, name, status, ms }: ActionReport): [open: string, close: string] {
  const named = name === null ? '' : ` name="${attribute(name)}"`;
  const timed = ms === null ? '' : ` ms="${Math.round(ms)}"`;
  return [`<action_result id="${attribute(id)}"${named} status="${status}"${timed}>\n`, '\n</action_result>'];
}

/** The markers of files come first, so that they are shown even if the rest is cut. */
function bodyOf({ status, output = null, files = [], note }: ActionReport): string {
  return status === 'completed' ? [...files.map(resultMarker), textOf(output)].join('\n') : (note ?? status);
}

/** Text unchanged, anything else as compact JSON. */
function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Escaped text of at most `maxChars`, without the marker. `reference` names the whole value. */
function cut(text: string, maxChars: number, reference: string | null): string {
  const safe = escapeReservedTags(sanitizeText(withoutHalfPair(text.slice(0, maxChars))));
  if (text.length <= maxChars && safe.length <= maxChars) return safe;
  const shown = withoutHalfPair(safe.slice(0, maxChars));
  const where = reference === null ? '' : `; the whole value is in ${referenceTo(reference)}`;
  return `${shown}\n[cut after ${shown.length} of ${Math.max(text.length, safe.length)} characters${where}]`;
}

function referenceTo(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? `$${name}` : `\${${attribute(name)}}`;
}

function withoutHalfPair(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

const ATTRIBUTE_ESCAPES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' };

/** Escapes an attribute value: ids of rejected actions may contain anything. */
function attribute(text: string): string {
  return sanitizeText(withoutHalfPair(text.slice(0, limits.idChars * 2)))
    .replace(/[<>&"]/g, (character) => ATTRIBUTE_ESCAPES[character] ?? '')
    .replace(/\s+/g, ' ');
}
