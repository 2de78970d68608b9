/** Runs some histories at the same time on one system, kills it meanwhile, and checks each session. */
import { setTimeout as delay } from 'node:timers/promises';
import type { SessionEvent } from '../../src/domain/event.ts';
import { violationsOf } from '../simulation/invariants/all.ts';
import { factsOf } from '../simulation/invariants/invariant.ts';
import type { Observation, Replacement } from '../simulation/observation.ts';
import { historyText } from '../simulation/print/print.ts';
import type { CutGenerations } from './cut-generations.ts';
import type { Kill } from './kills.ts';
import { observe, shownBy } from './observe.ts';
import type { Play } from './play.ts';
import type { PlayedSession } from './played-session.ts';
import type { RealSystem } from './system.ts';

/** Work that has not ended this long after all plans were carried out never ends. */
const MOST_MS = 120_000;
const POLL_MS = 100;
/** Between the beginnings of two histories, so that a kill meets them at different stages. */
const APART_MS = 100;
/** A kill that its events do not reach happens after this time. */
const KILL_MS = 5_000;
/** Kills within texts. */
const CUTS_PER_HISTORY = 0.5;

export interface BatchOptions {
  readonly system: RealSystem;
  readonly plays: readonly Play[];
  readonly kills: readonly Kill[];
  readonly cuts: CutGenerations;
  /** Journaled events of the batch so far. */
  readonly events: () => number;
  readonly progress: (line: string) => void;
}

export interface BatchReport {
  readonly kills: number;
  readonly sessions: readonly SessionReport[];
}

export interface SessionReport {
  readonly play: Play;
  readonly runs: number;
  readonly recovered: number;
  readonly outcomesUnknown: number;
  /** Calls whose client's result was accepted. */
  readonly results: number;
  /** Files that were downloaded at the end. */
  readonly files: number;
  readonly violations: readonly { readonly invariant: string; readonly what: string }[];
  /** What happened, for people. */
  readonly observed: readonly string[];
}

export async function runBatch(options: BatchOptions): Promise<BatchReport> {
  const { plays, system } = options;
  const over = new AbortController();
  const plans = Promise.all(
    plays.map(async (play, at) => {
      await delay(at * APART_MS);
      await play.run();
    }),
  );
  const [stuck, kills] = await Promise.all([
    settled(plays, plans).finally(() => over.abort()),
    killRepeatedly(options, over.signal),
  ]);
  const sessions = plays.flatMap((play) =>
    play.sessions.filter(({ isOpen }) => isOpen).map((session) => ({ play, session })),
  );
  await Promise.all(sessions.map(async ({ session }) => await session.leave()));
  // Nothing happens any more: another host must show the same state.
  const kept = sessions.filter(({ session }) => !session.isDeleted && !stuck.has(session));
  const before = await Promise.all(kept.map(async ({ session }) => await shownBy(session)));
  await system.kill('both');
  await system.start();
  const after = await Promise.all(kept.map(async ({ session }) => await shownBy(session)));
  await Promise.all(kept.map(async ({ session }) => await session.postAgain(true)));
  const replaced = (session: PlayedSession): Replacement[] => {
    const at = kept.findIndex((other) => other.session === session);
    return at < 0 ? [] : [{ when: 'after a kill at rest', before: before[at], after: after[at] }];
  };
  const reports: SessionReport[] = [];
  for (const { play, session } of sessions) {
    const seen = await observe(play, session, replaced(session), stuck.get(session) ?? null);
    reports.push(reportOf(play, seen));
  }
  return { kills: kills + 1, sessions: reports };
}

/** Waits until every run has ended. @returns why some sessions never do */
async function settled(plays: readonly Play[], plans: Promise<unknown>): Promise<Map<PlayedSession, string>> {
  await plans;
  const stuck = new Map<PlayedSession, string>();
  const deadline = Date.now() + MOST_MS;
  const sessions = plays.flatMap((play) => play.sessions).filter(({ isOpen, isDeleted }) => isOpen && !isDeleted);
  for (const session of sessions) {
    for (;;) {
      const open = await session.openWork();
      if (open === null) break;
      if (Date.now() > deadline) {
        stuck.set(session, open);
        break;
      }
      await delay(POLL_MS);
    }
  }
  return stuck;
}

/**
 * Kills as planned, and the Worker while a model waits within its text.
 *
 * @returns the number of kills that happened before everything was over
 */
async function killRepeatedly(
  { system, plays, kills, cuts, events, progress }: BatchOptions,
  over: AbortSignal,
): Promise<number> {
  let done = 0;
  let ofCuts = 0;
  const left = [...kills];
  for (;;) {
    const planned = left[0];
    const from = events();
    const deadline = Date.now() + KILL_MS;
    const isDue = (): boolean =>
      planned !== undefined && (events() >= from + planned.afterEvents || Date.now() >= deadline);
    const isCut = (): boolean => cuts.areReady && ofCuts < plays.length * CUTS_PER_HISTORY;
    while (!isDue() && !isCut()) {
      if (over.aborted) return done;
      await delay(5);
    }
    if (over.aborted) return done;
    const isOfCut = isCut();
    if (isOfCut) ofCuts += 1;
    else left.shift();
    const victim = isOfCut || planned === undefined ? 'worker' : planned.victim;
    progress(`  kill: ${victim === 'both' ? 'the Worker and the runner' : `the ${victim}`}, after ${events()} events`);
    await system.kill(victim);
    done += 1;
    if (victim !== 'runner') for (const play of plays) play.noteAll({ type: 'host_ended', life: done, why: 'killed' });
    await system.start();
    if (victim === 'runner') continue;
    for (const play of plays) {
      play.noteAll({ type: 'host_started', life: done + 1 });
      for (const session of play.sessions) session.postAgainSoon();
    }
  }
}

function reportOf(play: Play, seen: Observation): SessionReport {
  return {
    play,
    runs: seen.runs.length,
    recovered: new Set(seen.events.filter(isRecovery).map(({ run_id: id }) => id)).size,
    outcomesUnknown: seen.events.filter(
      (event) => event.type === 'action_failed' && event.data.error.code === 'outcome_unknown',
    ).length,
    results: new Set(factsOf(seen, 'call_answered').flatMap(({ call, code }) => (code === 'accepted' ? [call] : [])))
      .size,
    files: factsOf(seen, 'files_stored').reduce((sum, { files }) => sum + files.length, 0),
    violations: violationsOf(seen),
    observed: historyText(play.history, seen).split('\n'),
  };
}

function isRecovery(event: SessionEvent): boolean {
  return event.type === 'warning' && event.data.code === 'run_recovered';
}
