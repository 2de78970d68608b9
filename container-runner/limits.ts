/**
 * Every limit of the runner, with unit and reason. Sizes in `Bytes` are UTF-8. What is past a limit
 * gets a named refusal or a named end; nothing is lost in silence.
 */
export const limits = {
  // --- admission (R8); the operator may say otherwise (operator-limits.ts), up to what begins with `most` ---
  /** Sandboxes at work at once; each is a process of its own. */
  jobsRunning: 8,
  /** Accepted jobs that wait for a place; past it 429. */
  jobsQueued: 64,
  mostJobsRunning: 1_024,
  mostJobsQueued: 65_536,
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
  /** Of a tenant's name, as the Worker says it. */
  tenantChars: 200,

  // --- a job's means (R3, R4); `max…` are the operator's to change, up to what begins with `most` ---
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
  mostProcesses: 32_768,
  cpus: 1,
  minCpus: 0.1,
  maxCpus: 64,
  mostCpus: 1_024,
  openFiles: 256,
  /** One file that a job writes, and the work directory and the temporary one, each. */
  diskMb: 64,
  maxDiskMb: 2_048,
  /** Of memory and of files in memory: a terabyte. */
  mostMebibytes: 1_048_576,
  /** A place in memory of a service's container. */
  scratchBytes: 67_108_864,

  // --- relics (R5) ---
  relicNameChars: 64,
  relicPathChars: 8_192,
  /** Relics that run at once, in all and of one session. */
  relicsRunning: 16,
  relicsPerSpace: 8,
  mostRelics: 1_024,
  /** Calls at work in one relic, and calls that wait for it; past them 429. */
  relicCalls: 16,
  relicCallsWaiting: 64,
  /** One answer. */
  relicAnswerBytes: 1_048_576,
  /** From its start until it has answered its health check. */
  relicStartMs: 15_000,
  relicStartMaxMs: 120_000,
  relicStartPollMs: 20,
  relicHealthMs: 10_000,
  relicHealthMinMs: 100,
  /** A check may take as long as the time between two, within these. */
  relicHealthTimeoutMs: 5_000,
  relicHealthLeastMs: 500,
  /** Health checks in a row without an answer; then it is restarted. */
  relicHealthMisses: 3,
  relicIdleMs: 600_000,
  relicIdleMaxMs: 7 * 24 * 3_600_000,
  /** Before a restart, doubled with each further death in a row. */
  relicBackoffMs: 100,
  relicBackoffMaxMs: 30_000,
  /** Deaths in a row after which it is not started any more of itself, and how long calls are then refused. */
  relicDeaths: 5,
  relicRestMs: 30_000,
  /** Having run for so long, a relic's earlier deaths are forgotten. */
  relicStableMs: 60_000,
  relicProcesses: 64,
  /** What has to stay free on the disk that states are on: relics that keep one end below it. */
  relicSpareBytes: 1_073_741_824,
  /** Relics whose state is kept, running or not. */
  relicStates: 256,
  /** The end of what a relic printed, told with its death. */
  relicTailChars: 2_000,

  // --- requests of tools (egress/) ---
  /** One question to a name server; it is asked twice. */
  egressQueryMs: 1_500,
  /** From a name to its addresses, whatever is asked. */
  egressResolveMs: 5_000,
  /** Questions to the system's resolver at once: each blocks one of four threads that files and hashes need, too. */
  egressLookups: 2,
  /** Of one name. */
  egressAddresses: 16,
  hostChars: 253,
  /** Requests at once, in all and of one session; past them 429. */
  egressRunning: 256,
  egressPerSession: 32,
  egressHeaders: 64,
  egressUrlChars: 16_384,
  /** One answer, after decompression. */
  egressBytes: 67_108_864,
  /** An idle connection is kept so long: less than most servers keep theirs. */
  egressIdleMs: 4_000,
  /** Idle connections to one place. */
  egressIdleSockets: 4,

  // --- prewarm ---
  /** A sandbox is held for a session so long; a model writes the body of an action meanwhile. */
  prewarmMs: 15_000,
  /** Held at once, for everybody together. */
  prewarmed: 16,
  /** Sessions whose last image is remembered. */
  prewarmSessions: 1_024,

  // --- images (R3) ---
  imageArguments: 256,
  buildFiles: 256,
  buildRequirements: 64,
  buildMs: 300_000,
  buildMeans: { memoryMb: 1_024, cpus: 2, processes: 128, diskMb: 512 },
  /** Of a Dockerfile; each is an image of its own while it is built. */
  buildInstructions: 128,
  /** How often it is looked at what a build has written. */
  buildLookMs: 1_000,
  /** Images of tools that are kept; past it those go that were not used for the longest time. */
  toolImages: 256,
  /** What a build may say; past it the build ends. */
  buildLogBytes: 1_048_576,
  /** What of a build's log stands in the error of one that failed. */
  buildLogChars: 4_000,

  // --- ledger (R1) ---
  /** Ended jobs and their events are kept so long. */
  retentionMs: 24 * 3_600_000,
  /** Past it the oldest ended jobs are forgotten earlier. */
  ledgerBytes: 536_870_912,
  pruneEveryMs: 300_000,
  /** What jobs may print, as JSON, until the size is looked at again without waiting for that. */
  ledgerSlackChars: 33_554_432,
  /** A job whose end could not be written, as on a full disk, is tried again so much later. */
  ledgerRetryMs: 1_000,
  /** What a caller is told meanwhile, in seconds. */
  ledgerRetrySeconds: 5,
  /** Tokens of one minute, remembered while the ledger cannot be written; past it requests are refused. */
  tokensInMemory: 100_000,
  /** Names of files that were set aside, in `/health`. */
  setAsideNames: 20,
  /** Jobs that ended this recently are part of a stream that is opened without a place to resume from. */
  recentMs: 60_000,

  // --- events ---
  heartbeatMs: 5_000,
  /** Rows read from the ledger at a time for one reader. */
  eventRows: 256,

  // --- start and stop ---
  /** What running jobs get to end by themselves when the runner is told to stop, in seconds. */
  drainSeconds: 25,
  maxDrainSeconds: 3_600,
  /** What a refused caller is told meanwhile: the next runner, or the next life of this one. */
  stoppingRetrySeconds: 5,
  /** What a caller is told while the runner starts. */
  startingRetrySeconds: 1,
  /** Sandboxes held ready, of each kind. */
  warm: 2,
  maxWarm: 32,
  /** After one was taken, the next one is begun so much later. */
  refillMs: 40,
  warmUpMs: 30_000,
  probeMs: 10_000,

  // --- Docker engine (R2) ---
  /** What the engine may take for an answer that needs no work. */
  engineMs: 10_000,
  /** What it may take to make and to start a container, when much is going on. */
  engineStartMs: 30_000,
  /** After a kill: what still stands then is the engine's to end, and the job is `lost`. */
  engineKillMs: 15_000,
  /** A job's container that ended so long ago and still stands has no runner any more. */
  abandonedMs: 60_000,
  /** Files, directories and links in each of the places that a job may write to, and in the state of a relic. */
  inodes: 16_384,
} as const;
