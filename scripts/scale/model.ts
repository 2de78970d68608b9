/** What a number of sessions needs on Cloudflare: a calculation from named inputs. docs/scale.md shows its results. */

/** A run as `npm run bench:journal` counts it. */
export interface RunCounts {
  readonly rowsWritten: number;
  readonly alarms: number;
  readonly rowsRead: number;
  /** To the session's object. */
  readonly requests: number;
  readonly secondsAwake: number;
}

export interface ScaleInputs {
  readonly chat: RunCounts;
  readonly actions: RunCounts;
  /** Bytes of a session's database before its first message. */
  readonly emptySessionBytes: number;
}

/** Assumptions about use and about the deployment. Change them, and run `npm run docs`. */
export const ASSUMPTIONS = {
  activeShare: 0.1,
  messagesPerDay: 5,
  actionShare: 0.2,
  peakFactor: 3,
  storedDays: 30,
  bytesPerMessage: 20_000,
  namespaceShare: 0.2,
  agentShare: 0.5,
  listsPerMessage: 0.1,
  directoryWrites: 2,
  directoryRows: 5,
  sessionRowsPerWrite: 3,
  directoryEntryBytes: 600,
  indexWrites: 1,
  indexRows: 4,
  isolates: 1_000,
  catalogueRefreshSeconds: 60,
  runnerShare: 0.05,
  runnerSeconds: 2,
  runners: 20,
  runnerJobs: 8,
  logEntriesPerMessage: 0.1,
} as const;

/** US dollars, and what the Workers Paid plan includes in a month. */
const PRICES = {
  plan: 5,
  rowsWritten: { included: 50e6, each: 1.0 / 1e6 },
  rowsRead: { included: 25e9, each: 0.001 / 1e6 },
  objectRequests: { included: 1e6, each: 0.15 / 1e6 },
  gbSeconds: { included: 400_000, each: 12.5 / 1e6 },
  storedGb: { included: 5, each: 0.2 },
  workerRequests: { included: 10e6, each: 0.3 / 1e6 },
} as const;

/** Limits of the platform and of this system. */
export const LIMITS = {
  /** Requests per second of one object: Cloudflare's soft limit. */
  objectRequestsPerSecond: 1_000,
  objectBytes: 10e9,
  shards: 16,
  logEventsPerDay: 5e9,
} as const;

type Metered = Exclude<keyof typeof PRICES, 'plan'>;

export interface HotSpot {
  readonly name: string;
  /** How the load is calculated. */
  readonly formula: string;
  readonly load: number;
  readonly capacity: number;
  readonly unit: string;
}

export interface Scale {
  readonly sessions: number;
  readonly messagesPerDay: number;
  /** Messages per second at the peak of the day. */
  readonly peak: number;
  /** Sessions with a run at the peak. */
  readonly running: number;
  /** Amounts of a month. */
  readonly used: Readonly<Record<Metered, number>>;
  readonly dollars: Readonly<Record<Metered, number>>;
  readonly total: number;
  readonly hotSpots: readonly HotSpot[];
  /** The limit with the highest load relative to its capacity. */
  readonly first: HotSpot;
}

const DAYS = 30;
/** The billed memory of an object, in GB. */
const OBJECT_GB = 0.128;

/** Share of the capacity that is used: over 1, the limit is exceeded. */
export function useOf({ load, capacity }: HotSpot): number {
  return load / capacity;
}

export function scaleOf(sessions: number, { chat, actions, emptySessionBytes }: ScaleInputs): Scale {
  const a = ASSUMPTIONS;
  const mixed = (of: (run: RunCounts) => number): number =>
    of(chat) * (1 - a.actionShare) + of(actions) * a.actionShare;
  const messagesPerDay = sessions * a.activeShare * a.messagesPerDay;
  const peak = (messagesPerDay / 86_400) * a.peakFactor;
  const months = messagesPerDay * DAYS;
  const rowsOutside = a.directoryWrites * (a.directoryRows + a.sessionRowsPerWrite) + a.indexWrites * a.indexRows;
  const requestsOutside = a.directoryWrites + a.indexWrites + a.listsPerMessage * LIMITS.shards;
  const secondsAwake = mixed((run) => run.secondsAwake);
  const sessionBytes = emptySessionBytes + a.storedDays * a.activeShare * a.messagesPerDay * a.bytesPerMessage;
  const used = {
    rowsWritten: months * (mixed((run) => run.rowsWritten + run.alarms) + rowsOutside),
    rowsRead: months * mixed((run) => run.rowsRead),
    objectRequests: months * (mixed((run) => run.requests) + requestsOutside),
    gbSeconds: months * secondsAwake * OBJECT_GB,
    storedGb: (sessions * sessionBytes) / 1e9,
    workerRequests: months * (1 + a.listsPerMessage),
  };
  const names = Object.keys(used) as Metered[];
  const cost = (name: Metered): number => Math.max(0, used[name] - PRICES[name].included) * PRICES[name].each;
  const dollars = Object.fromEntries(names.map((name) => [name, cost(name)])) as Record<Metered, number>;
  const hotSpots = hotSpotsOf(sessions, messagesPerDay, peak);
  const [first, ...others] = hotSpots;
  if (first === undefined) throw new Error('the model has no limits');
  return {
    sessions,
    messagesPerDay,
    peak,
    running: peak * secondsAwake,
    used,
    dollars,
    total: PRICES.plan + names.reduce((sum, name) => sum + dollars[name], 0),
    hotSpots,
    first: others.reduce((most, one) => (useOf(one) > useOf(most) ? one : most), first),
  };
}

function hotSpotsOf(sessions: number, messagesPerDay: number, peak: number): HotSpot[] {
  const a = ASSUMPTIONS;
  const each = { capacity: LIMITS.objectRequestsPerSecond, unit: 'requests/s' } as const;
  const ofNamespace = peak * a.namespaceShare;
  return [
    {
      name: 'an object of the directory',
      formula: 'namespace messages/s × (directoryWrites + listsPerMessage × 16) ÷ 16',
      load: (ofNamespace * (a.directoryWrites + a.listsPerMessage * LIMITS.shards)) / LIMITS.shards,
      ...each,
    },
    {
      name: 'an object of the execution index',
      formula: 'namespace messages/s × indexWrites ÷ 16',
      load: (ofNamespace * a.indexWrites) / LIMITS.shards,
      ...each,
    },
    {
      name: 'the object of `RATE_LIMIT`, if it is set',
      formula: 'namespace messages/s × agentShare',
      load: ofNamespace * a.agentShare,
      ...each,
    },
    {
      name: 'the catalogue of a namespace',
      formula: 'isolates ÷ catalogueRefreshSeconds',
      load: a.isolates / a.catalogueRefreshSeconds,
      ...each,
    },
    {
      name: 'storage of an object of the directory',
      formula: 'sessions × namespaceShare × directoryEntryBytes ÷ 16',
      load: (sessions * a.namespaceShare * a.directoryEntryBytes) / LIMITS.shards / 1e9,
      capacity: LIMITS.objectBytes / 1e9,
      unit: 'GB',
    },
    {
      name: 'runners of one deployment',
      formula: 'messages/s × runnerShare × runnerSeconds',
      load: peak * a.runnerShare * a.runnerSeconds,
      capacity: a.runners * a.runnerJobs,
      unit: 'jobs at once',
    },
    {
      name: 'entries of Workers Logs',
      formula: 'messages a day × logEntriesPerMessage',
      load: (messagesPerDay * a.logEntriesPerMessage) / 1e6,
      capacity: LIMITS.logEventsPerDay / 1e6,
      unit: 'million a day',
    },
  ];
}
