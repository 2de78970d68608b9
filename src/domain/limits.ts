/**
 * Every limit of the system, with unit and reason. Sizes in `Bytes` are UTF-8; in `Chars`, UTF-16
 * code units. A block past its limit gets a named error; nothing crashes and nothing is lost in silence.
 */
export const limits = {
  // --- protocol (P16) ---
  /** One action's JSON body. */
  actionBodyBytes: 1_048_576,
  /** One opening or closing tag, attributes included. */
  tagBytes: 8_192,
  /** Model text of one generation. */
  generationBytes: 4_194_304,
  actionsPerGeneration: 256,
  actionsPerRun: 2_000,
  jsonDepth: 64,
  /** Ids, output keys, feed ids (P12). */
  idChars: 64,
  referenceNameChars: 64,
  idempotencyKeyChars: 256,
  /** A `$name.path[0]` longer than this is text: what is held back while streaming stays bounded (P4). */
  referenceChars: 512,
  /** Parser warnings of one generation; the rest is summed up in one. */
  warningsPerGeneration: 100,
  /** A body that is not strict JSON and longer than this is refused: mending costs more than linear time (P8). */
  repairChars: 65_536,
  /** Mended text of one generation, all bodies together: bounds what hostile text can cost. */
  repairCharsPerGeneration: 262_144,
  /** What the references of one action may add to its parameters; past it a value is left out (P12). */
  substitutedChars: 8_388_608,
  /** A `when` expression, and the nodes of its syntax tree (S9). */
  conditionChars: 2_000,
  conditionNodes: 256,
  /** Input quoted in messages. */
  excerptChars: 80,
  /** A response after its references are expanded (P13). */
  responseBytes: 1_048_576,

  // --- scheduling ---
  maxParallelActions: 5,
  maxIterations: 10,
  runSeconds: 3_600,
  modelCallsPerRun: 100,
  actionTimeoutMs: 60_000,
  /** agent, workflow and docker (S8). */
  longActionTimeoutMs: 300_000,
  /** An operator's ceiling for what an action may ask for. */
  maxActionTimeoutMs: 3_600_000,
  retryAttempts: 3,
  maxRetryAttempts: 10,
  retryDelayMs: 500,
  retryMaxDelayMs: 30_000,
  /** Iterations without a response and without an accepted action before the run fails (S11). */
  idleIterations: 2,
  lastGenerationTokens: 1_024,
  /** What a generation may write at least, however little is left: less would be no answer. */
  leastGenerationTokens: 256,
  /** From the end of a run's seconds to the end of its last generation (S12). */
  lastGenerationMs: 60_000,
  /** Generations in a row that may break off by an error before the run fails (P15). */
  brokenGenerations: 2,
  /** What a person is shown of the values that an action would get, as JSON; past it the references stand (J8). */
  approvalChars: 16_384,
  /** An approval that nobody gives counts as denied (J8). */
  approvalExpiryMs: 7 * 24 * 3_600_000,

  // --- earlier outcomes and durations (P6, S5) ---
  /** Cached results of a session; the oldest make room. */
  cachedOutcomes: 1_000,
  /** A longer result, as JSON, is not cached: every hit writes it into the journal once more. */
  cachedOutcomeChars: 262_144,
  /** Idempotency keys that a session remembers; the oldest make room. */
  idempotencyKeys: 10_000,
  /** Targets whose durations a session remembers. */
  learnedDurations: 1_000,
  /** Latest completed actions that durations are read back from, and how many events are looked through for them. */
  durationsRead: 500,
  durationsEvents: 20_000,

  // --- session ---
  messageBytes: 1_048_576,
  queuedMessages: 8,
  sessionExpiryMs: 30 * 24 * 3_600_000,
  /** What a deployment may choose in its place. */
  sessionExpiryLeastMs: 60_000,
  sessionExpiryMostMs: 3_650 * 24 * 3_600_000,
  watchdogMs: 30_000,
  cancelGraceMs: 5_000,
  /** Generations of one run that a crash may cut; after them it fails (J2). */
  cutGenerations: 3,
  /** How often one run is taken up again after a crash, whatever it was doing: what kills its host each time must end. */
  recoveries: 20,
  variables: 1_000,
  variableBytes: 262_144,
  /** What a client keeps with a session; it stands in the session's own row. */
  metadataBytes: 65_536,

  // --- sub-agents and workflows (M7) ---
  /** How many sessions may stand above one that an action started. */
  childDepth: 5,
  /** Between two tries to reach a child whose stream broke off. */
  childRetryMs: 200,
  childRetryMaxMs: 5_000,
  /** How far the time of a signed webhook may be from ours. */
  webhookSeconds: 300,
  /** A scheduled run that could not be started for so long is left out. */
  scheduleGiveUpMs: 3_600_000,

  // --- journal (J6) ---
  /** A stored row; larger payloads stand in chunk rows. Production rows hold 2 MB. */
  rowBytes: 1_000_000,
  /** Events of one turn that are written by one statement, as JSON: three bytes a character stay below a row's size. */
  batchChars: 262_144,
  /** A longer value is not read together with the rest of a page, but by itself. */
  inlineBytes: 16_384,
  /** One action's outcome; the rest is cut with a marker. */
  outcomeBytes: 8_388_608,
  outcomesInMemoryBytes: 8_388_608,
  /** A larger output can be fetched by itself; so can the files in an output. */
  artifactBytes: 32_768,
  filesPerOutcome: 100,
  fileNameChars: 100,
  /** What is read for one page of the list of artifacts. */
  artifactPageBytes: 16_777_216,
  /** All outcomes of one run together: a result that repeats others cannot grow without end. */
  runOutcomeBytes: 33_554_432,
  /** Streamed text is written when so much of it, or so old a piece, stands in memory only (J6). */
  unsavedTextChars: 2_048,
  unsavedTextMs: 1_000,

  // --- prompt (L5) ---
  /** One result told to the model; the full value stays under its reference. */
  resultPromptChars: 16_384,
  resultsPromptChars: 131_072,
  /** All feeds of one prompt, about 8,000 tokens (F4). */
  feedsPromptChars: 32_000,
  /** One feed, when its manifest does not say (F1). */
  feedTokens: 1_000,
  /** Feeds of an agent's manifest. */
  feeds: 64,
  feedIntervalMs: 60_000,
  /** How long a model call waits for its feeds, all of them together (F2). */
  feedDeadlineMs: 2_000,
  /** A feed that takes longer is given up altogether. */
  feedFetchMs: 60_000,
  /** Periodic feeds stand still when nobody has said anything for so long (F3). */
  feedIdleMs: 600_000,
  /** What `recent_actions` shows (F5). */
  recentActions: 10,
  /** A periodic feed is not refreshed more often. */
  feedMinIntervalMs: 1_000,
  historyTurns: 200,
  /** What is told of older turns (`memory`): of one question or answer, and altogether. */
  summaryTurnChars: 300,
  summaryChars: 16_384,

  // --- http ---
  bodyBytes: 8_388_608,
  /** Read and thrown away past a body's limit, so that the client gets its answer. */
  bodyDrainBytes: 67_108_864,
  /** Brackets within brackets in a request's JSON. */
  requestDepth: 64,
  heartbeatMs: 5_000,
  /** Live events waiting for one slow reader; past it they are left to the journal, and read there when there is room. */
  readerQueueBytes: 1_048_576,
  /** Text patches that follow each other sooner are sent together: no eye sees it, and each chunk has its price. */
  patchGatherMs: 8,
  /** What is read from the journal ahead of one reader. */
  readerPageBytes: 262_144,
  /** Streams that are open on one session. */
  readersPerSession: 1_000,
  /** A page of history holds no further run past so much text. */
  historyPageChars: 4_194_304,
  /** A page of history, executions or events. */
  pageRows: 100,

  /** A session token, and how long one is good for: without a wish, and at most (H5). */
  sessionTokenChars: 2_048,
  sessionTokenSeconds: 3_600,
  sessionTokenMaxSeconds: 7 * 24 * 3_600,

  // --- manifests (M1) ---
  /** One manifest file, or a file that a manifest names. */
  manifestBytes: 1_048_576,
  /** How often the aliases of one YAML document may be expanded. */
  manifestAliases: 100,

  /** Names in one list of an import. */
  manifestImports: 200,
  /** Files and bytes of one namespace's catalogue (M4). */
  catalogFiles: 500,
  catalogBytes: 8_388_608,
  /** One definition with the files that it names: a row of storage holds it. */
  definitionChars: 600_000,
  /** Versions of one manifest that are kept; the oldest make room. */
  manifestVersions: 50,
  /** Steps in one list of a workflow, and lists within lists (M6). */
  workflowSteps: 100,
  workflowDepth: 8,

  // --- relics (R5, R6) ---
  relicKeyChars: 512,
  /** A page of keys, entries or rows. */
  relicPageRows: 1_000,
  /** What an edge relic may hold when its manifest does not say. */
  relicQuotaBytes: 10_485_760,
  /** Beside the quota: the store's own tables. */
  relicOwnBytes: 65_536,
  relicValueBytes: 524_288,
  /** Of entries or rows in one answer. */
  relicAnswerChars: 1_048_576,
  relicStatementChars: 65_536,
  /** Rows that one statement may go through, loop within loop, by SQLite's plan: some seconds' work. */
  relicStatementSteps: 200_000_000,
  /** Calls whose outcome an edge relic remembers, so that none takes effect twice. */
  relicRememberedCalls: 1_000,
  /** The longest time that an entry can be given: ten years. */
  relicTtlMs: 315_360_000_000,
  relicIdleMs: 600_000,
  relicHealthMs: 10_000,
  relicStartMs: 30_000,

  // --- secrets (X3) ---
  /** Shorter values are words more often than secrets; taking them out would only shred texts. */
  secretChars: 6,

  // --- outbound http (X2) ---
  fetchBytes: 2_097_152,
  fetchRedirects: 5,
  fetchTimeoutMs: 30_000,

  // --- model (L2) ---
  /** An id or a signature that an endpoint gives a native call, to get it back with the conversation (P17). */
  callStateChars: 16_384,
  firstTokenMs: 60_000,
  /** Of a model on one's own machine, which may have to be loaded first. */
  localFirstTokenMs: 300_000,
  betweenTokensMs: 60_000,
  modelAttempts: 3,
  /** Other models that may stand in for the first. */
  modelFallbacks: 4,
  /** Failures in a row until an endpoint is left alone, and for how long: doubled with each further failure. */
  breakerFailures: 5,
  breakerOpenMs: 30_000,
  breakerOpenMaxMs: 300_000,
  /** A time to the first token says nothing any more when it is older; then the endpoint is tried anew. */
  latencySampleMs: 600_000,
  /** Endpoints whose ways and failures are remembered; the oldest make room. */
  knownEndpoints: 100,
  /** A breaker's last word counts for so long where nothing more is heard of it. */
  endpointReportMs: 900_000,
  /** One line of a model's stream, and an error answer: what a broken or hostile endpoint may make us hold. */
  modelLineBytes: 8_388_608,
  modelErrorBytes: 65_536,
  /** After the finish reason, for the usage that some endpoints send behind it. */
  usageGraceMs: 2_000,

  // --- runner (R3, R8) ---
  jobOutputBytes: 1_048_576,
  jobInputBytes: 8_388_608,
  jobsRunning: 8,
  jobsQueued: 64,
  /** A signed request to the runner is good for so long (R7). */
  runnerTokenSeconds: 60,
  /** The runner's answer to one request; jobs are accepted at once. */
  runnerRequestMs: 10_000,
  /** Tries to hand over one job; the runner takes an id only once. */
  runnerAttempts: 3,
  runnerRetryMs: 100,
  runnerRetryMaxMs: 2_000,
  /** Without a byte for so long, heartbeats included, the stream of job events counts as cut. */
  runnerSilenceMs: 15_000,
  /** A running job whose runner cannot be reached for so long counts as lost. */
  runnerLostMs: 30_000,
  /** The stream of job events stays open for so long after the last job. */
  runnerLingerMs: 5_000,
  /** With several runners: what an idempotent job's own one may be out of reach before another one runs it (R7). */
  runnerMoveMs: 5_000,
  /** A runner that could not be reached is left out of the choice for so long. */
  runnerDownMs: 5_000,
  /** How old a runner's load may be when a runner is chosen. */
  runnerLoadMs: 2_000,
  /** The choice does not wait longer for a runner's load, if another one has answered. */
  runnerChoiceMs: 300,
  /** On top of a relic call's own time, for the way there and a start. */
  relicGraceMs: 5_000,
  /** A runner in a Cloudflare Container: how long it may take to answer for the first time, and how often it is asked. */
  containerStartMs: 8_000,
  containerPollMs: 100,
  /** Without a request for so long it sleeps. */
  containerIdleMs: 600_000,
  containerInstances: 20,
  /** Sessions whose runner is remembered; the oldest make room. */
  runnerSessions: 1_000,
} as const;
