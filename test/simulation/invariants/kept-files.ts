import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Observation } from '../observation.ts';
import { ownFile, scriptOf, SHARED_FILE } from '../script.ts';
import { actionOf, endsAction, runOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const keptFiles: Invariant = {
  name: 'kept files',
  holds:
    'The files of an attempt whose program ended by itself are committed together and once, before the end of the action; the workspace has what the last commit wrote at each path, and nothing else.',
  *check(seen) {
    if (!seen.isWhole) return;
    const commits = seen.events.filter((event): event is Commit => event.type === 'file_changed');
    yield* wrongCommits(seen, commits);
    yield* wrongFiles(seen, commits);
  },
};

type Commit = Extract<SessionEvent, { type: 'file_changed' }>;

/** The token of the job: usually the id of its action, but actions with one idempotency key share it. */
function writerOf({ data }: Commit): string {
  return data.files.flatMap(({ path }) => /^own\/(.+)\.txt$/.exec(path)?.[1] ?? [])[0] ?? '';
}

const DONE: ReadonlySet<string> = new Set(['ok', 'deaf', 'fails', 'refuses', 'throws']);

function* wrongCommits(seen: Observation, commits: readonly Commit[]): Generator<string> {
  const byAction = Map.groupBy(commits, actionOf);
  const starts = Map.groupBy(
    seen.events.filter(({ type }) => type === 'action_started'),
    actionOf,
  );
  for (const event of commits) {
    const paths = event.data.files.map(({ path }) => path).toSorted();
    const expected = [ownFile(writerOf(event)), SHARED_FILE];
    if (paths.join() !== expected.toSorted().join() || event.data.deleted !== undefined)
      yield `the commit of ${actionOf(event)} changes ${paths.join(', ')} (expected: both of its files)`;
  }
  for (const [action, list] of byAction) {
    const attempts = starts.get(action)?.length ?? 0;
    if (list.length > attempts) yield `${action} has ${list.length} commits and ${attempts} attempts`;
  }
  const ends = Map.groupBy(seen.events.filter(endsAction), actionOf);
  for (const [action, [end]] of ends) {
    if (end === undefined) continue;
    const own = byAction.get(action) ?? [];
    const late = own.find(({ seq }) => (seq ?? 0) > (end.seq ?? 0));
    if (late !== undefined) yield `${action} commits its files after its end`;
    const isJob = scriptOf(seen.history.messages, end.action_id ?? '')?.target === 'python';
    const isDone = end.type === 'action_completed' && end.data.attempt > 0;
    if (isJob && isDone && own.length === 0) yield `${action} has completed, and its files are not committed`;
    const script = own.flatMap((commit) => scriptOf(seen.history.messages, writerOf(commit))?.attempts ?? []);
    if (script.length > 0 && !script.some(({ end: how }) => DONE.has(how)))
      yield `${action} was stopped, and its files are committed`;
  }
}

function* wrongFiles(seen: Observation, commits: readonly Commit[]): Generator<string> {
  if (seen.workspace === null) return;
  const last = new Map<string, Commit>();
  for (const event of commits) for (const { path } of event.data.files) last.set(path, event);
  const files = new Map(seen.workspace.map(({ path, text }) => [path, text]));
  for (const [path, event] of last) {
    const text = files.get(path);
    // A program of a real runner does not know its run.
    const isOfRun = text?.includes(' of ') !== true || text.includes(`/${runOf(event)}/`);
    const isOwn = text?.startsWith(`${writerOf(event)} `) === true && isOfRun;
    if (!isOwn) yield `${path} has the text ${JSON.stringify(text ?? null)} (expected: of ${actionOf(event)})`;
  }
  for (const [path] of files) {
    if (!last.has(path) && !path.startsWith('uploads/')) yield `${path} was written by no commit`;
  }
}
