/**
 * What was seen of one session from outside, for the invariants of the simulation.
 *
 * From outside, some things cannot be known, so their invariants have nothing to check: timers, tables, and whether a
 * start was on disk when its target was called. These are known, with an exception each:
 *
 *  - How a generation ended: only if the Worker was not killed within `PROCESSED_MS` after it, because it may not have
 *    read the end.
 *  - The journal of a deleted session: as far as its first reader got.
 */
import type { SessionEvent } from '../../src/domain/event.ts';
import type { Fact, Observation, Replacement, RunEnd } from '../simulation/observation.ts';
import { markedIn } from '../simulation/world/marks.ts';
import { download, LOST, request } from './client.ts';
import { downloadFiles } from './message-files.ts';
import type { Play } from './play.ts';
import type { PlayedSession } from './played-session.ts';

const PROCESSED_MS = 2_000;
const OPEN: ReadonlySet<string> = new Set(['queued', 'running', 'waiting']);

interface Exported {
  readonly events: readonly SessionEvent[];
  readonly runs: readonly RunEnd[];
  readonly messageOf: ReadonlyMap<number, number>;
  /** Hashes of files in the inputs of runs. */
  readonly references: readonly string[];
}

/** @param stuck why it has not ended; null if it has */
export async function observe(
  play: Play,
  session: PlayedSession,
  replacements: readonly Replacement[],
  stuck: string | null,
): Promise<Observation> {
  const { events, runs, messageOf, references } = await journalOf(session);
  if (!session.isDeleted) {
    session.note({
      type: 'files_stored',
      ...(await downloadFiles(session.url, [...references, ...session.sentFiles])),
    });
  }
  return {
    history: play.history,
    earlier: [],
    facts: knownFacts(session.facts),
    events,
    isWhole: !session.isDeleted && stuck === null,
    isDeleted: session.isDeleted,
    readers: session.readers,
    clients: [],
    runs,
    messageOf,
    places: new Map(),
    replacements,
    sizes: null,
    listing: null,
    exported: null,
    variables: null,
    workspace: session.isDeleted || stuck !== null ? null : await workspaceOf(session),
    stuck: stuck ?? (session.isDeleted && (await exists(session)) ? 'the deleted session exists' : null),
  };
}

/** The state that the session shows; null if the session was deleted. */
export async function shownBy(session: PlayedSession): Promise<unknown> {
  const [record, runs] = await Promise.all([request(session.url), request(`${session.url}/runs?limit=100`)]);
  if (record === LOST || runs === LOST) return 'no answer';
  return { session: record.body, runs: runs.body };
}

async function workspaceOf({ url }: PlayedSession): Promise<Observation['workspace']> {
  const answer = await request(`${url}/files`);
  if (answer === LOST || answer.status !== 200) return null;
  const { files } = answer.body as { readonly files: readonly { readonly path: string }[] };
  return await Promise.all(
    files.map(async ({ path }) => {
      const bytes = await download(`${url}/files/${path.split('/').map(encodeURIComponent).join('/')}`);
      return { path, text: bytes === null ? null : new TextDecoder().decode(bytes) };
    }),
  );
}

async function exists({ url }: PlayedSession): Promise<boolean> {
  const answer = await request(url);
  return answer === LOST || answer.status !== 404;
}

async function journalOf(session: PlayedSession): Promise<Exported> {
  if (session.isDeleted) {
    const frames = session.readers[0]?.frames ?? [];
    const events = frames.flatMap(({ event }) => (event.seq === null ? [] : [event]));
    return { events, runs: [], messageOf: new Map(), references: [] };
  }
  const answer = await request(`${session.url}/export`);
  if (answer === LOST || answer.status !== 200) throw new Error(`no export: ${JSON.stringify(answer)}`);
  const lines = String(answer.body)
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]));
  const runs = lines.flatMap(({ run }) => (run === undefined ? [] : [run as ExportedRun]));
  return {
    events: lines.filter((line) => typeof line['seq'] === 'number') as unknown as SessionEvent[],
    runs: runs.map((run) => ({ run: numberOf(run), status: run.status, isOpen: OPEN.has(run.status) })),
    references: runs.flatMap(({ input }) =>
      Array.from(JSON.stringify(input).matchAll(/"sha256":"([0-9a-f]{64})"/g), ([, hash = '']) => hash),
    ),
    messageOf: new Map(runs.map((run) => [numberOf(run), session.text ?? markedIn(JSON.stringify(run.input)) ?? -1])),
  };
}

interface ExportedRun {
  readonly run_id: string;
  readonly status: string;
  readonly input: unknown;
}

const numberOf = ({ run_id: id }: ExportedRun): number => Number(/\d+$/.exec(id)?.[0]);

function knownFacts(facts: readonly Fact[]): Fact[] {
  const losses = facts.flatMap((fact) => (fact.type === 'host_ended' ? [fact.at] : []));
  return facts.filter(
    ({ type, at }) =>
      type !== 'generation_delivered' || !losses.some((lostAt) => lostAt >= at && lostAt < at + PROCESSED_MS),
  );
}
