/** What is known of the turns that a prompt does not show: summaries, and the turns themselves (C10). */
import type { Journal } from '../../journal/journal.ts';
import { seededTurn } from '../../protocol/prompt/seeded-turn.ts';
import type { ChatTurn, ConversationSummary, EarlierTurns } from '../../protocol/prompt/chat-turn.ts';
import { readTurn } from '../generation/conversation.ts';
import type { HistoryRoom } from '../generation/history-room.ts';
import { attachmentOf } from '../generation/message-files.ts';
import { turnCount } from './turn-values.ts';

/**
 * What the prompts of a run know of turns that they do not show. It is the same whenever it is read: a summary that came after
 * the run began is for later runs.
 *
 * @param shown number of the turns that were read, the latest ones
 */
export function earlierTurns(journal: Journal, run: number, shown: number): EarlierTurns {
  const { parent, firstSeq } = journal.runs.require(run);
  const found = new Map<number, ConversationSummary | null>();
  return {
    unread: Math.max(0, turnCount(journal, parent) - shown),
    summaryOf: (most) => {
      let summary = found.get(most);
      if (summary === undefined) found.set(most, (summary = summaryOf(journal, parent, { most, before: firstSeq })));
      return summary;
    },
    recall: null,
  };
}

/** The summary of a branch that covers the most, as the model wrote it. @param last 0: no run */
export function summaryOf(
  journal: Journal,
  last: number,
  { most = Infinity, before }: { readonly most?: number; readonly before?: number } = {},
): (ConversationSummary & { readonly untilRun: number }) | null {
  const stored = journal.summaries.latest(last, Math.min(most, Number.MAX_SAFE_INTEGER), before);
  const event = stored === null ? null : journal.rawEvent(stored.seq);
  if (stored === null || event?.type !== 'memory_changed' || event.data.summary === undefined) return null;
  return { text: event.data.summary, turns: stored.turns, untilRun: stored.untilRun };
}

/** One turn of a branch, 1-based; null if it does not fit into the room. */
export function turnAt(journal: Journal, last: number, turn: number, room: HistoryRoom): ChatTurn | null {
  const { seeded, runs } = journal;
  const before = seeded.turns;
  if (turn <= before) return seededTurn(seeded.turn(turn), (part) => attachmentOf(part, null));
  const run = runs.get(runs.ofTurn(turn - before, last));
  return run === null ? null : readTurn(journal, run, room);
}
