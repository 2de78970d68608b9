/** Everything that is measured at a checkpoint, with its bound. */
import { join } from 'node:path';
import type { RealSystem } from '../chaos/system.ts';
import { heapBytes } from './heap.ts';
import { holdersOf, processesOf, processesWith, usageOf } from './processes.ts';
import { folderSize, objectState, rowsIn } from './state.ts';
import type { Bound } from './verdict.ts';

const MEBIBYTE = 1_048_576;

export interface Sample {
  readonly name: string;
  readonly unit: 'rows' | 'files' | 'bytes' | 'processes' | 'descriptors' | 'alarms' | 'databases';
  readonly bound: Bound;
  readonly value: number;
  /** What is kept on purpose. */
  readonly allowed: number;
  /** The process that it belongs to: it starts again with another value. */
  readonly of: 'worker' | 'runner' | null;
}

/** What has been done so far; some of it is kept on purpose. */
export interface Done {
  /** Sessions and executions that were made, at most. */
  readonly sessions: number;
}

const exact = (slack = 0): Bound => ({ kind: 'count', slack });
const perHour = (mebibytes: number, warmUpPoints = 1): Bound => ({
  kind: 'trend',
  perHour: mebibytes * MEBIBYTE,
  warmUpPoints,
});

/**
 * Checkpoints after a start until the native memory of workerd is level. It rises for about 20 minutes, also in wrangler's
 * workerd, which has no code of ours: freed memory stays with the process.
 */
const WORKERD_WARM_UP = 4;

/** Tables whose rows remain after a session was deleted, and how many. */
const KEPT: Readonly<Record<string, (done: Done) => number>> = {
  // Tombstones, for a day.
  'DirectoryObject.sessions': ({ sessions }) => sessions,
};
/** Tables that fill up to a fixed size, which the first checkpoint may not have reached. */
const FILLS: Readonly<Record<string, number>> = {
  // 50 revisions of three names, and what the newest ones consist of.
  'CatalogObject.manifests': 150,
  'CatalogObject.current': 3,
  'CatalogObject.files': 150,
  // One counter for each agent, the key of session ids and the model endpoints.
  'StatusObject._cf_KV': 6,
};

/** Rows, alarms and databases of the Worker's objects. */
function objectSamples(stateDir: string, done: Done): Sample[] {
  const { rows, alarms, databases } = objectState(join(stateDir, 'worker/v3/do'));
  // Sessions leave nothing, so one row for all of their tables is enough.
  const isOfSession = (key: string): boolean => key.startsWith('SessionObject.') || key.startsWith('RelicObject.');
  const ofSessions = [...rows].filter(([key]) => isOfSession(key)).reduce((sum, [, count]) => sum + count, 0);
  const tables: readonly (readonly [string, number])[] = [
    ['sessions and their relics, all tables', ofSessions],
    ...[...rows].filter(([key]) => !isOfSession(key)).toSorted(([a], [b]) => a.localeCompare(b)),
  ];
  const base = { of: null, allowed: 0 } as const;
  return [
    ...tables.map(([name, value]): Sample => ({
      ...base,
      name,
      unit: 'rows',
      bound: exact(FILLS[name] ?? 0),
      value,
      allowed: KEPT[name]?.(done) ?? 0,
    })),
    { ...base, name: 'alarms', unit: 'alarms', bound: exact(), value: alarms },
    // The directory, the rate limits and the catalogue are made when they are first used.
    { ...base, name: 'databases with a table', unit: 'databases', bound: exact(24), value: databases },
  ];
}

/** The ledger and the files of the runner. */
function runnerSamples(stateDir: string, done: Done): Sample[] {
  const folder = join(stateDir, 'runner');
  const ledger = rowsIn(join(folder, 'jobs.sqlite'));
  const cached = folderSize(join(folder, 'workspaces')).files;
  const base = { of: null, allowed: 0 } as const;
  return [
    // A job is kept for a day, with its events; a visit has at most two jobs.
    ...(['jobs', 'events'] as const).map((table): Sample => ({
      ...base,
      name: `ledger.${table}`,
      unit: 'rows',
      bound: exact(),
      value: ledger.get(table) ?? 0,
      allowed: done.sessions * (table === 'jobs' ? 2 : 12),
    })),
    // Of the requests of a minute, and of the five minutes until the next removal.
    { ...base, name: 'ledger.tokens', unit: 'rows', bound: exact(3_000), value: ledger.get('tokens') ?? 0 },
    {
      ...base,
      name: 'files of the runner',
      unit: 'files',
      bound: exact(4),
      value: folderSize(folder, /^jobs\.sqlite/).files - cached,
    },
    // Files of workspaces stay for a day after the last job of their session; a visit has at most one.
    {
      ...base,
      name: 'cached files of the runner',
      unit: 'files',
      bound: exact(),
      value: cached,
      allowed: done.sessions,
    },
  ];
}

function processSamples(name: 'worker' | 'runner', leader: number): Sample[] {
  const all = processesOf(leader);
  const usage = usageOf(all);
  const base = { of: name, allowed: 0 } as const;
  const title = name === 'worker' ? 'Worker' : 'runner';
  return [
    { ...base, name: `${title}: processes`, unit: 'processes', bound: exact(), value: usage.processes },
    // Databases of objects that are not evicted yet, and connections that are kept alive.
    { ...base, name: `${title}: descriptors`, unit: 'descriptors', bound: exact(24), value: usage.descriptors },
    { ...base, name: `${title}: sockets`, unit: 'descriptors', bound: exact(16), value: usage.sockets },
  ];
}

/** Proportional set size. wrangler has a workerd of its own in front of the one with the Worker. */
function memorySamples(stateDir: string, worker: number, runner: number): Sample[] {
  const all = processesOf(worker, 'workerd');
  const own = holdersOf(join(stateDir, 'worker'), all);
  const sample = (name: string, of: 'worker' | 'runner', pids: readonly number[], bound: Bound): Sample => ({
    name,
    unit: 'bytes',
    bound,
    value: usageOf(pids).pssBytes,
    allowed: 0,
    of,
  });
  return [
    sample('workerd: memory (PSS)', 'worker', own, perHour(32, WORKERD_WARM_UP)),
    sample(
      'workerd of wrangler: memory (PSS)',
      'worker',
      all.filter((pid) => !own.includes(pid)),
      perHour(32, WORKERD_WARM_UP),
    ),
    sample('runner: memory (PSS)', 'runner', processesOf(runner), perHour(12)),
  ];
}

const heapSample = (value: number): Sample => ({
  name: 'Worker: JavaScript heap in use',
  unit: 'bytes',
  bound: perHour(4),
  value,
  allowed: 0,
  of: 'worker',
});

export interface MeasureOptions {
  readonly system: RealSystem;
  /** Folder of the system, with its state in `state/` and temporary files in `temporary/`. */
  readonly root: string;
  readonly done: Done;
}

/** @throws Error while a part of the system is not running */
export async function measure({ system, root, done }: MeasureOptions): Promise<Sample[]> {
  const { worker, runner } = system.leaders;
  const stateDir = join(root, 'state');
  const temporary = [join(stateDir, 'temporary'), join(root, 'temporary')].map((folder) => folderSize(folder).files);
  if (worker === null || runner === null) throw new Error('the system is not running');
  // Garbage is collected before memory is measured.
  const heap = await heapBytes({ pids: processesOf(worker, 'workerd'), wakeUrl: `${system.url}/health` });
  const grouped = new Set([...processesOf(worker), ...processesOf(runner)]);
  const base = { of: null, allowed: 0 } as const;
  return [
    ...objectSamples(stateDir, done),
    ...runnerSamples(stateDir, done),
    { ...base, name: 'temporary files', unit: 'files', bound: exact(8), value: temporary.reduce((a, b) => a + b, 0) },
    ...processSamples('worker', worker),
    ...processSamples('runner', runner),
    ...memorySamples(stateDir, worker, runner),
    {
      ...base,
      name: 'processes outside of the groups',
      unit: 'processes',
      bound: exact(),
      value: processesWith(stateDir).filter((pid) => !grouped.has(pid)).length,
    },
    ...(heap === null ? [] : [heapSample(heap)]),
  ];
}
