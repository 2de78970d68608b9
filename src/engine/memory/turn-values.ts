/** The turns of a conversation by their position, and as values of names (C10, P12). */
import { readContent, textOfContent } from '../../domain/content.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import { seededTurn } from '../../protocol/prompt/seeded-turn.ts';
import { HistoryRoom } from '../generation/history-room.ts';
import { attachmentOf } from '../generation/message-files.ts';
import { RunAnswer } from '../../view/answer.ts';

/** Number of turns up to the end of a run: of the seeded history, and of the branch. @param last 0: no run */
export function turnCount({ seeded, runs }: Journal, last: number): number {
  return seeded.turns + runs.turnOf(last);
}

/** The last run of the first `turns` turns of a branch; 0: they are all of the seeded history. */
export function runOfTurn({ seeded, runs }: Journal, last: number, turn: number): number {
  return turn <= seeded.turns ? 0 : runs.ofTurn(turn - seeded.turns, last);
}

/** The position in a name such as `turn_3`; null for another name. */
export function turnOfName(name: string): number | null {
  const digits = /^turn_([1-9]\d{0,8})$/.exec(name)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** What was said in a turn, as a value. Long texts are cut to `limits.turnValueChars` each. */
export function turnValue(journal: Journal, last: number, turn: number): Json {
  const { seeded, runs } = journal;
  const before = seeded.turns;
  if (turn <= before) {
    const { user, answer = '' } = seededTurn(seeded.turn(turn), (part) => attachmentOf(part, null));
    return { user: cut(user), answer: cut(answer) };
  }
  const run = runs.get(runs.ofTurn(turn - before, last));
  if (run === null) return null;
  const received = journal.steered.shown(run.run).map(({ input }) => input['content']);
  const said = [run.input['content'], ...received].map((content) => textOfContent(readContent(content) ?? ''));
  return { user: cut(said.join('\n')), answer: cut(answerOf(journal, run)) };
}

/** The answer before it was redacted for readers (C9); of a run without one, what it said last. */
function answerOf(journal: Journal, run: RunRecord): string {
  const last = run.status === 'completed' && run.lastSeq !== null ? journal.rawEvent(run.lastSeq) : null;
  if (last?.type === 'agent_completed' && last.data.response !== null) return last.data.response;
  const events = (run.lastSeq ?? journal.lastSeq) - run.firstSeq + 1;
  if (!new HistoryRoom().take(journal.history.conversationBytes(run), events)) return '';
  const answer = new RunAnswer();
  for (const { event } of journal.history.conversationOf(run)) answer.add(event);
  return answer.text;
}

function cut(text: string): string {
  if (text.length <= limits.turnValueChars) return text;
  return `${text.slice(0, limits.turnValueChars).toWellFormed()}\n[cut after ${limits.turnValueChars} of ${text.length} characters]`;
}
