/**
 * Every limit of the runner, with unit and reason. Sizes in `Bytes` are UTF-8. A request or a job that exceeds a limit
 * gets an error or an end with a code; nothing is dropped silently.
 */
export const limits = {
  // --- admission (R8); the operator can change these (operator-limits.ts), up to the `most…` values ---
  /** Concurrent jobs; each runs in a separate process. */
  jobsRunning: 8,
  /** Queued jobs; further jobs get 429. */
  jobsQueued: 64,
  mostJobsRunning: 1_024,
  mostJobsQueued: 65_536,
  /** Further places of the queue for sessions without queued jobs, as a share of `jobsQueued`. */
  queueReserve: 0.25,
  /** `Retry-After` in seconds: about one short job. */
  retryAfterSeconds: 1,

  // --- requests ---
  /** Code and inputs of one job, as JSON. */
  bodyBytes: 12_582_912,
  jobIdChars: 256,
  sessionChars: 128,
  /** Nesting of `inputs`; deeper input is rejected before parsing. */
  jsonDepth: 64,

  // --- authentication (R7) ---
  /** Lifetime of a signed request. */
  tokenSeconds: 60,
  /** Maximum difference between the clocks of the Worker and the runner. */
  clockSkewSeconds: 10,
  secretChars: 32,
  /** Length of a tenant's name. */
  tenantChars: 200,

  // --- resources of a job (R3, R4); the operator can change `max…`, up to the `most…` values ---
  /** Each of stdout and stderr; beyond it the job ends as `output_limit`. */
  outputBytes: 1_048_576,
  minOutputBytes: 1_024,
  /** Output events are split at this length, to keep a reader's frames small. */
  outputEventChars: 65_536,
  /** Maximum of one argument, and of the whole environment. The system rejects 128 KiB. */
  argumentBytes: 98_304,
  timeoutMs: 60_000,
  maxTimeoutMs: 3_600_000,
  memoryMb: 256,
  minMemoryMb: 64,
  maxMemoryMb: 2_048,
  /** Time between TERM and KILL. */
  killGraceMs: 2_000,
  /** How long pipes of a dead process may stay open without output, and how many such times with it. */
  drainMs: 1_000,
  drains: 10,
  /** Searches for processes that outlive a program at the level `process`, and the time between them. */
  processSweeps: 50,
  processSweepMs: 20,
  processes: 64,
  maxProcesses: 512,
  mostProcesses: 32_768,
  cpus: 1,
  minCpus: 0.1,
  maxCpus: 64,
  mostCpus: 1_024,
  openFiles: 256,
  /** Maximum of one file, and of the work directory and the temporary directory each. */
  diskMb: 64,
  maxDiskMb: 2_048,
  /** Maximum of memory and of files in memory: a terabyte. */
  mostMebibytes: 1_048_576,

  // --- workspace (C7) ---
  /** All files of a workspace; a job may ask for less. */
  workspaceBytes: 67_108_864,
  workspaceFiles: 2_000,
  workspaceFileBytes: 16_777_216,
  workspacePathBytes: 512,
  workspacePathDepth: 32,
  workspaceNameBytes: 255,
  /** Entries, kept or not, that are read from a sandbox. */
  workspaceEntries: 20_000,
  /** Entries that are not kept, with a reason in the answer. */
  workspaceSkippedShown: 20,
  /** Size of `/workspace` in a sandbox: room for replacing files. It counts as memory of the program. */
  workspaceRoomMb: 96,
  /** Body and answer of one transfer of files. */
  workspaceBodyBytes: 17_825_792,
  workspaceTransferBytes: 8_388_608,
  /** Cached files of all sessions on disk; the least recently used sessions are removed first. */
  workspaceCacheBytes: 2_147_483_648,
  /** The cache of a session is removed after this time without a job. */
  workspaceCacheMs: 24 * 3_600_000,
  /** Cached files of one session; beyond it, its least recently used files are removed. */
  workspaceSessionCacheBytes: 536_870_912,
  /** A smaller file counts as this much: it needs a block on disk, a name and an entry in memory. */
  workspaceCacheFileBytes: 16_384,
  /** A file that arrives is kept in memory up to this size, and on disk beyond it. */
  workspaceBufferBytes: 262_144,
  /** Concurrent transfers of files; further ones get 429. An upload needs its size on disk twice. */
  workspaceTransfers: 64,
  /** How long reading what a program left may take. */
  workspaceCollectMs: 15_000,
  /** Bytes of the archive between two of its entries. Names take kilobytes. */
  workspaceHeaderBytes: 8_388_608,

  // --- relics (R5) ---
  relicNameChars: 64,
  relicPathChars: 8_192,
  /** Concurrent relics, in total and per scope. */
  relicsRunning: 16,
  relicsPerScope: 8,
  mostRelics: 1_024,
  /** Concurrent calls of one relic, and queued calls; further calls get 429. */
  relicCalls: 16,
  relicCallsWaiting: 64,
  /** Size of one answer. */
  relicAnswerBytes: 1_048_576,
  /** From the start until the first successful health check. */
  relicStartMs: 15_000,
  relicStartMaxMs: 120_000,
  relicStartPollMs: 20,
  relicHealthMs: 10_000,
  relicHealthMinMs: 100,
  /** The timeout of a health check is its interval, within these bounds. */
  relicHealthTimeoutMs: 5_000,
  relicHealthLeastMs: 500,
  /** Failed health checks in a row until the relic is restarted. */
  relicHealthMisses: 3,
  relicIdleMs: 600_000,
  relicIdleMaxMs: 7 * 24 * 3_600_000,
  /** Backoff before a restart; doubled after each death in a row. */
  relicBackoffMs: 100,
  relicBackoffMaxMs: 30_000,
  /** Deaths in a row until the relic pauses, and the duration of the pause. */
  relicDeaths: 5,
  relicRestMs: 30_000,
  /** Deaths are forgotten after the relic has run for this time. */
  relicStableMs: 60_000,
  relicProcesses: 64,
  /** Minimum free disk space; below it, relics with state are stopped. */
  relicSpareBytes: 1_073_741_824,
  /** Relics with stored state, running or not. */
  relicStates: 256,
  /** How long the end of a relic waits for its last output. */
  relicLastWordsMs: 1_000,
  /** Maximum of the last output that is reported with a relic's death. */
  relicTailChars: 2_000,

  // --- outbound requests of tools (egress/) ---
  /** Timeout of one DNS query; there are two attempts. */
  egressQueryMs: 1_500,
  /** Timeout of name resolution in total. */
  egressResolveMs: 5_000,
  /** Concurrent queries of the system's resolver. Each blocks one of four threads that file access and hashing share. */
  egressLookups: 2,
  /** Addresses of one name. */
  egressAddresses: 16,
  hostChars: 253,
  /** Concurrent requests, in total and per session; further ones get 429. */
  egressRunning: 256,
  egressPerSession: 32,
  egressHeaders: 64,
  egressUrlChars: 16_384,
  /** One answer, after decompression. */
  egressBytes: 67_108_864,
  /** Lifetime of an idle connection: less than that of most servers. */
  egressIdleMs: 4_000,
  /** Idle connections per destination. */
  egressIdleSockets: 4,

  // --- prewarm ---
  /** How long a sandbox is reserved for a session: the time in which a model writes the body of an action. */
  prewarmMs: 15_000,
  /** Concurrent reservations in total. */
  prewarmed: 16,
  /** Sessions whose last image is remembered. */
  prewarmSessions: 1_024,

  // --- images (R3) ---
  imageArguments: 256,
  buildFiles: 256,
  buildRequirements: 64,
  /** Maximum `RUN pip install` of a Dockerfile that are installed before the build; each has a container of its own. */
  buildPackageSteps: 8,
  buildMs: 300_000,
  buildResources: { memoryMb: 1_024, cpus: 2, processes: 128, diskMb: 512 },
  /** Instructions of a Dockerfile; each one creates an intermediate image. */
  buildInstructions: 128,
  /** Interval at which the size of a build is checked. */
  buildPollMs: 1_000,
  /** Cached tool images; beyond it, the least recently used ones are removed. */
  toolImages: 256,
  /** Maximum log of a build; beyond it, the build is aborted. */
  buildLogBytes: 1_048_576,
  /** Part of the build log in the error of a failed build. */
  buildLogChars: 4_000,

  // --- ledger (R1) ---
  /** Retention of ended jobs and their events. */
  retentionMs: 24 * 3_600_000,
  /** Beyond this size, the oldest ended jobs are deleted earlier. */
  ledgerBytes: 536_870_912,
  pruneEveryMs: 300_000,
  /** The ledger's size is checked after this many characters of new output. */
  ledgerSlackChars: 33_554_432,
  /** Delay of a retry when a job's end cannot be written, for example because the disk is full. */
  ledgerRetryMs: 1_000,
  /** `Retry-After` meanwhile, in seconds. */
  ledgerRetrySeconds: 5,
  /** Used tokens that are kept in memory while the ledger cannot be written; beyond it, requests are rejected. */
  tokensInMemory: 100_000,
  /** Files that were set aside and that `/health` lists. */
  setAsideNames: 20,
  /** A stream without a position starts with jobs that ended within this time. */
  recentMs: 60_000,

  // --- events ---
  heartbeatMs: 5_000,
  /** Rows read from the ledger per query for one reader. */
  eventRows: 256,
  /** Characters after which a query ends: the end of a job with many changed files is long. */
  eventBatchChars: 16_777_216,

  // --- spans of jobs (O1) ---
  /** Spans that wait or are being sent; further ones are dropped. About 2 MiB. */
  spanQueue: 2_048,
  /** Spans of one request. */
  spanBatch: 512,
  /** Time until a batch is sent that is not full. */
  spanDelayMs: 2_000,
  /** One request to the collector, with its retries. */
  spanExportMs: 5_000,
  /** The last requests when the runner stops. */
  spanFlushMs: 2_000,

  // --- start and stop ---
  /** Time for running jobs to end after SIGTERM, in seconds. */
  drainSeconds: 25,
  maxDrainSeconds: 3_600,
  /** `Retry-After` while the runner drains. */
  stoppingRetrySeconds: 5,
  /** `Retry-After` while the runner starts. */
  startingRetrySeconds: 1,
  /** Warm sandboxes of each kind. */
  warm: 2,
  maxWarm: 32,
  /** Delay before a used sandbox is replaced. */
  refillMs: 40,
  warmUpMs: 60_000,
  probeMs: 10_000,

  // --- Docker engine (R2) ---
  /** Timeout of the engine for simple requests. */
  engineMs: 10_000,
  /** Timeout for creating and starting a container under load. */
  engineStartMs: 30_000,
  /** Timeout for killing a container; after it, the job is `lost`. */
  engineKillMs: 15_000,
  /** An exited job container of this age has no runner. */
  abandonedMs: 60_000,
  /** Files, directories and links in each writable directory of a job, and in the state of a relic. */
  inodes: 16_384,
} as const;
