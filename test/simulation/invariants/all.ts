/** All invariants. */
import type { Observation } from '../observation.ts';
import { answeredOnce } from './answered-once.ts';
import { approvedFirst } from './approved-first.ts';
import { judgedFirst } from './judged-first.ts';
import { bounded } from './bounded.ts';
import { closedParts } from './closed-parts.ts';
import { completeCalls } from './complete-calls.ts';
import { drawnRun } from './drawn-run.ts';
import { everythingEnds } from './everything-ends.ts';
import { exportedSpans } from './exported-spans.ts';
import { filesStored } from './files-stored.ts';
import { foldedText } from './folded-text.ts';
import { historyFirst } from './history-first.ts';
import type { Invariant, Violation } from './invariant.ts';
import { keptFiles } from './kept-files.ts';
import { listedSessions } from './listed-sessions.ts';
import { imagesShown } from './images-shown.ts';
import { nothingAfterEnd } from './nothing-after-end.ts';
import { oneEnd } from './one-end.ts';
import { order } from './order.ts';
import { noFalseSuccess } from './no-false-success.ts';
import { ownAnswers } from './own-answers.ts';
import { ownBranch } from './own-branch.ts';
import { parkedIsFree } from './parked-is-free.ts';
import { recordedFirst } from './recorded-first.ts';
import { redacted } from './redacted.ts';
import { reportedTools } from './reported-tools.ts';
import { resultsShown } from './results-shown.ts';
import { sameCompactEvents } from './same-compact-events.ts';
import { sameEvents } from './same-events.ts';
import { sameMessage } from './same-message.ts';
import { sameReplay } from './same-replay.ts';
import { savedText } from './saved-text.ts';
import { settledOnce } from './settled-once.ts';
import { takenOnce } from './taken-once.ts';
import { unsafeOnce } from './unsafe-once.ts';
import { wholeAnswer } from './whole-answer.ts';
import { wholeFork } from './whole-fork.ts';
import { withinLimits } from './within-limits.ts';

export const INVARIANTS: readonly Invariant[] = [
  oneEnd,
  unsafeOnce,
  recordedFirst,
  sameEvents,
  sameCompactEvents,
  foldedText,
  savedText,
  nothingAfterEnd,
  order,
  ownAnswers,
  approvedFirst,
  judgedFirst,
  answeredOnce,
  settledOnce,
  resultsShown,
  withinLimits,
  filesStored,
  imagesShown,
  parkedIsFree,
  sameReplay,
  everythingEnds,
  bounded,
  historyFirst,
  sameMessage,
  noFalseSuccess,
  closedParts,
  drawnRun,
  listedSessions,
  exportedSpans,
  ownBranch,
  takenOnce,
  completeCalls,
  wholeAnswer,
  wholeFork,
  keptFiles,
  reportedTools,
  redacted,
];

/** The violations of all invariants. */
export function violationsOf(seen: Observation): Violation[] {
  const sessions = [...seen.earlier, seen];
  return INVARIANTS.flatMap(({ name, check }) =>
    sessions.flatMap((session) => [...check(session)].map((what) => ({ invariant: name, what }))),
  );
}
