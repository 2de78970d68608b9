/**
 * Builds the messages for the model: the conversation, action results and feeds (L5, X1).
 *
 * The runtime's information is in the runtime's own tags, in user messages. External text is escaped first, so a
 * result can neither end its block nor look like an action. The model's own text is sent back verbatim, with
 * references unsubstituted.
 */
import { limits } from '../../domain/limits.ts';
import type { MemoryPolicy } from '../../domain/manifests/agent.ts';
import type { Attachment, ChatMessage } from '../../domain/ports/model.ts';
import { NO_FILES, fileBlock, resultMarker } from './attached-files.ts';
import type { ShownFiles } from './attached-files.ts';
import type { ChatTurn, CurrentTurn, EarlierTurns, FeedReport } from './chat-turn.ts';
import { compact } from './compaction.ts';
import { sanitizeText, escapeReservedTags } from './escape-reserved-tags.ts';
import { attribute, cut, textOf } from './external-text.ts';
import { MessageList } from './message-list.ts';
import {
  ANSWER_AGAIN,
  BEGINS,
  GO_ON,
  LAST_CHANCE,
  NAMES_BEGIN,
  NOTHING_RAN,
  RECEIVED,
  cutNotice,
  missingNotice,
} from './notices.ts';
import { budgetFor, calledResults } from './result-budget.ts';
import type { ResultBudget } from './result-budget.ts';

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
  /** Default: the history is the whole conversation. */
  readonly earlier?: EarlierTurns;
  readonly current: CurrentTurn;
  /** Default: only the placeholders. */
  readonly files?: ShownFiles;
}): ChatMessage[] {
  const { current, memory = KEEP_ALL, files = NO_FILES } = conversation;
  const { notice, kept } = compact(conversation.history, memory, conversation.earlier);
  const budget = budgetFor(kept, current);

  const messages = new MessageList(conversation.system);
  if (notice !== null) messages.user(notice);
  const shared = { budget, files };
  addHistory(messages, kept, shared);
  addTurn(messages, current, {
    ...shared,
    ahead: current.last === true ? LAST_CHANCE : GO_ON,
    passed: current.passed ?? [],
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
 * @param passed instructions and tools of the message, for the turn in progress (C3)
 */
function addTurn(
  messages: MessageList,
  turn: ChatTurn,
  {
    budget,
    files,
    ahead,
    passed = [],
  }: SharedByTurns & {
    readonly ahead: string | null;
    readonly passed?: readonly string[];
  },
): void {
  const attached = (given: readonly Attachment[] = []): Attachment[] =>
    given.flatMap((file) => files.attached.get(file) ?? []);
  const isBegun = turn.isSeeded === true && turn.user === '';
  messages.user(isBegun ? BEGINS : escapeReservedTags(sanitizeText(turn.user), 'runtime'), attached(turn.files));
  for (const file of turn.files ?? []) {
    const text = files.texts.get(file);
    if (text !== undefined) messages.user(fileBlock(file, text));
  }
  for (const text of passed) if (text !== '') messages.user(text);
  const receive = (before: number): void => {
    for (const message of (turn.received ?? []).filter((one) => one.before === before)) {
      messages.user(RECEIVED);
      messages.user(escapeReservedTags(sanitizeText(message.user), 'runtime'), attached(message.files));
      for (const file of message.files ?? []) {
        const text = files.texts.get(file);
        if (text !== undefined) messages.user(fileBlock(file, text));
      }
    }
  };
  for (const [index, generation] of turn.generations.entries()) {
    receive(index);
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
  receive(turn.generations.length);
  if (turn.note !== undefined)
    messages.user(`<system>${escapeReservedTags(sanitizeText(turn.note), 'reserved')}</system>`);
  if (turn.generations.length === 0 && ahead === LAST_CHANCE) messages.user(LAST_CHANCE);
}

const KEEP_ALL: MemoryPolicy = { maxTurns: null, summarizeAfter: null };

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
