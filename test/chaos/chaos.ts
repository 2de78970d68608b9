/**
 * Runs histories of the simulation on the real system, kills the Worker and the runner with SIGKILL meanwhile, and checks
 * every session against the invariants of the simulation, as far as they are visible from outside.
 *
 * Histories run in batches on one system. The seed determines the histories, the batches, and after how many events of a
 * batch a kill happens, so that slow machines are killed at about the same points. Unlike the simulation, a seed does not
 * repeat exactly: real processes take turns as they like.
 */
import { historyOf } from '../simulation/arbitrary.ts';
import type { Violation } from '../simulation/invariants/invariant.ts';
import type { Forms } from '../simulation/script.ts';
import { stage } from '../support/staged-system.ts';
import { runBatch } from './batch.ts';
import type { SessionReport } from './batch.ts';
import { CutGenerations } from './cut-generations.ts';
import { killsOf } from './kills.ts';
import type { Kill } from './kills.ts';
import { helperOf, manifestsOf } from './manifests.ts';
import { serveModel } from './model-server.ts';
import { Play } from './play.ts';
import { shortened } from './shorten.ts';
import { RealSystem } from './system.ts';
import { pythonCode, serveTools } from './tool-server.ts';
import { WorkerLog } from './worker-log.ts';
import type { InternalError } from './worker-log.ts';

/** Histories that run at the same time. */
const BATCH = 20;

export interface ChaosOptions {
  readonly histories: number;
  readonly seed: number;
  /** The kills of each batch. Default: derived from the faults of its histories. */
  readonly kills?: readonly Kill[];
  readonly progress: (line: string) => void;
}

/** A violation on the real system. */
export interface Finding extends Violation {
  /** Number of the history in this call, from 1. */
  readonly history: number;
  readonly seed: number;
  /** Runs the same histories with the same kills again. */
  readonly command: string;
  /** The history, and what happened in it. */
  readonly observed: readonly string[];
}

export interface ChaosReport {
  readonly histories: number;
  readonly kills: number;
  readonly runs: number;
  readonly recovered: number;
  /** Generations whose host was killed within their text. */
  readonly cuts: number;
  readonly outcomesUnknown: number;
  /** Calls whose client's result was accepted. */
  readonly results: number;
  /** Files that were downloaded at the end. */
  readonly files: number;
  readonly findings: readonly Finding[];
}

export async function runChaos({ histories, seed, kills: fixedKills, progress }: ChaosOptions): Promise<ChaosReport> {
  const plays = new Map<string, Play>();
  const formsOf = (name: string): Forms => ({
    code: (token) => pythonCode(tools.host, name, token),
    helper: helperOf(name),
  });
  await using tools = await serveTools((name) => plays.get(name));
  const cuts = new CutGenerations();
  await using model = await serveModel(
    (name) => plays.get(name),
    ({ name }) => formsOf(name),
    cuts,
  );
  const scripts = Array.from({ length: histories }, (_, at) => ({
    name: `h${at + 1}`,
    seed: seed + at,
    history: shortened(historyOf(seed + at)),
  }));
  const byName = new Map(scripts.map(({ name, history }) => [name, history]));
  using copy = await stage(manifestsOf(byName, tools.host));
  await using system = await RealSystem.open({
    stage: copy,
    toolHost: tools.host,
    modelHost: model.host,
    log: new WorkerLog((error) => noteError([...plays.values()], error)),
  });
  await system.start();
  const sessions: SessionReport[] = [];
  const findings: Finding[] = [];
  let killed = 0;
  for (let first = 0; first < histories; first += BATCH) {
    const batch = scripts.slice(first, first + BATCH);
    progress(`histories ${first + 1} to ${first + batch.length} of ${histories}`);
    const startedAt = Date.now();
    let events = 0;
    const batchPlays = batch.map(
      ({ name, seed: own, history }) =>
        new Play(name, own, history, {
          url: system.url,
          now: () => Date.now() - startedAt,
          onEvent: () => (events += 1),
          forms: formsOf(name),
        }),
    );
    for (const play of batchPlays) plays.set(play.name, play);
    const kills = fixedKills ?? killsOf(batch.map(({ history }) => history));
    const done = await runBatch({ system, plays: batchPlays, kills, cuts, events: () => events, progress });
    for (const play of batchPlays) plays.delete(play.name);
    const command = `npm run test:chaos -- ${batch.length} ${seed + first}`;
    killed += done.kills;
    sessions.push(...done.sessions);
    for (const { play, violations, observed } of done.sessions) {
      const about = { history: play.seed - seed + 1, seed: play.seed, command, observed };
      findings.push(...violations.map((violation) => ({ ...violation, ...about })));
    }
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    progress(`  ${events} events and ${done.kills} kills in ${seconds} s`);
  }
  const sum = (of: (session: SessionReport) => number): number => sessions.reduce((all, one) => all + of(one), 0);
  return {
    histories,
    kills: killed,
    runs: sum(({ runs }) => runs),
    recovered: sum(({ recovered }) => recovered),
    cuts: cuts.lost,
    outcomesUnknown: sum((session) => session.outcomesUnknown),
    results: sum(({ results }) => results),
    files: sum(({ files }) => files),
    findings,
  };
}

/** An error in a session that is unknown, such as a child or one that was deleted, belongs to the first one. */
function noteError(plays: readonly Play[], { session: id, message }: InternalError): void {
  const sessions = plays.flatMap((play) => play.sessions);
  const session = sessions.find((other) => id !== null && other.isOpen && other.url.endsWith(id)) ?? sessions[0];
  session?.note({ type: 'work_failed', message: id === null ? message : `${id}: ${message}` });
}
