/**
 * Every limit of the runner, with unit and reason. Sizes in `Bytes` are UTF-8. What is past a limit
 * gets a named refusal or a named end; nothing is lost in silence.
 */
export const limits = {
  // --- admission (R8) ---
  /** Sandboxes at work at once; each is a process of its own. */
  jobsRunning: 8,
  /** Accepted jobs that wait for a place; past it 429. */
  jobsQueued: 64,
  /** What `Retry-After` says, in seconds: about one short job. */
  retryAfterSeconds: 1,

  // --- requests ---
  /** Code and inputs of one job, as JSON. */
  bodyBytes: 12_582_912,
  jobIdChars: 256,
  sessionChars: 128,
  /** Nesting of `inputs`; deeper ones are refused before they are parsed. */
  jsonDepth: 64,

  // --- authorisation (R7) ---
  /** A signed request is good for so long. */
  tokenSeconds: 60,
  /** Clocks of the Worker and the runner may differ by so much. */
  clockSkewSeconds: 10,
  secretChars: 32,

  // --- a job's means (R3, R4) ---
  /** Each of stdout and stderr; past it the job ends as `output_limit`. */
  outputBytes: 1_048_576,
  minOutputBytes: 1_024,
  /** Output events are cut to this, so that a reader's frame stays small. */
  outputEventChars: 65_536,
  /** An argument, and the environment as a whole, are left out above it: the system refuses 128 KiB. */
  argumentBytes: 98_304,
  timeoutMs: 60_000,
  maxTimeoutMs: 3_600_000,
  memoryMb: 256,
  minMemoryMb: 64,
  maxMemoryMb: 2_048,
  /** TERM, then so long, then KILL. */
  killGraceMs: 2_000,
  /** How long the pipes of a dead process may stay open. */
  drainMs: 1_000,
  processes: 64,
  maxProcesses: 512,
  cpus: 1,
  minCpus: 0.1,
  maxCpus: 64,
  openFiles: 256,
  /** One file that a job writes, and the work directory and the temporary one, each. */
  diskMb: 64,
  maxDiskMb: 2_048,

  // --- ledger (R1) ---
  /** Ended jobs and their events are kept so long. */
  retentionMs: 24 * 3_600_000,
  /** Past it the oldest ended jobs are forgotten earlier. */
  ledgerBytes: 536_870_912,
  pruneEveryMs: 300_000,
  /** Jobs that ended this recently are part of a stream that is opened without a place to resume from. */
  recentMs: 60_000,

  // --- events ---
  heartbeatMs: 5_000,
  /** Rows read from the ledger at a time for one reader. */
  eventRows: 256,

  // --- start and stop ---
  /** Interpreters held ready, of each kind. */
  warm: 2,
  warmUpMs: 30_000,
  probeMs: 10_000,

  // --- Docker engine (R2) ---
  /** What the engine may take for an answer that needs no work. */
  engineMs: 10_000,
  /** After a kill: what still stands then is the engine's to end, and the job is `lost`. */
  engineKillMs: 15_000,
  /** Files, directories and links in each of the places that a job may write to. */
  inodes: 16_384,
} as const;
