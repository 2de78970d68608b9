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
  /** Quotes in such a body: each may be where any string ends. */
  repairQuotes: 16_384,
  /** Mended text of one generation, all bodies together: bounds what hostile text can cost. */
  repairCharsPerGeneration: 262_144,
  /** What the references of one action may add to its parameters; past it a value is left out (P12). */
  substitutedChars: 8_388_608,
  /** The same for all attempts of a run together: what is rendered for them takes time and memory. */
  runSubstitutedChars: 16_777_216,
  /** What the references of a run's responses may be rendered to, all together (P13). */
  runResponseChars: 4_194_304,
  /** A `when` expression, and the nodes of its syntax tree (S9). */
  conditionChars: 2_000,
  conditionNodes: 256,
  /** How deep the values of a condition may nest; what one evaluation may cost, and all those of a run, in steps of about 50 ns (S9). */
  conditionDepth: 200,
  conditionSteps: 400_000,
  conditionStepsPerRun: 4_000_000,
  /** Input quoted in messages. */
  excerptChars: 80,
  /** A response after its references are expanded (P13). */
  responseBytes: 1_048_576,

  /** Steps of work for which the thread is left free for a millisecond: 1,000,000 take about 50 ms and are followed by 100. */
  stepsPerPauseMs: 10_000,
  /** The longest of these pauses. */
  pauseMs: 200,
  /** A pause that is longer than any, however far apart the times are that objects of a thread see: the clock was put back. */
  pauseMostMs: 2_000,
  /** What a session or a request does before it has to take a turn, about 5 ms; what an owner does before all of its do. */
  turnSteps: 100_000,
  busyTurnSteps: 60_000,
  ownerSteps: 400_000,
  /** What a run does in one turn, about 10 ms, with as many inputs as there are. */
  runTurnSteps: 200_000,
  /** For so long after its last work an owner is a neighbour of others. */
  neighbourMs: 10_000,
  /** What an event of a run stands for, and a character of it: they are parsed, decided on, journaled and sent. */
  eventSteps: 2_000,
  eventCharSteps: 3,
  /** A character of an action's parameters, references written out: they are checked, passed on, and taken secrets out of. */
  parameterCharSteps: 2,
  /** What reading a character of a model's text stands for, a request, a byte of its body, and a session that it makes. */
  textCharSteps: 2,
  requestSteps: 20_000,
  bodyByteSteps: 1,
  sessionSteps: 300_000,
  /** Evaluations that take less wait for nothing. */
  probeSteps: 5_000,
  /** How long those in front are guessed to take; after so much silence one of them is gone. */
  turnGuessMs: 2,
  turnBeginMs: 4,
  turnStaleMs: 2_000,
  /** Owners whose use of the thread is remembered, before those without any are forgotten. */
  ownersRemembered: 1_000,

  /** Of a posted program, what is parsed in one turn. */
  turnChars: 8_192,

  // --- reading a session ---
  /** JSON that a request reads of a session, or sends of it, before others of the thread have their turn. One event at least. */
  sliceChars: 262_144,
  /** What an event that is read counts for beside its text, and one that is passed over. */
  eventChars: 512,
  passedEventChars: 16,
  /** Events that one statement passes over. */
  passedEvents: 10_000,
  /** The same where their data is searched, up to `artifactBytes` of each; and characters searched in the time of reading one. */
  searchedEvents: 500,
  searchedCharsPerChar: 16,

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
  /** A call that a person is asked about, as JSON: past it the event names digest and size, and the call is read by itself (J8). */
  approvalChars: 16_384,
  /** All calls that one run asks about, as JSON: they stay in the journal, and one turn may ask about all of them. */
  approvalBytesPerRun: 16_777_216,
  /** Calls that were resolved for a question, those that were refused as too large among them. */
  approvalBytesResolvedPerRun: 67_108_864,
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

  /** Completed actions of earlier runs that names can stand for; the oldest have none any more (P12). */
  outcomeCache: 20_000,
  /** Outcomes of earlier runs that one run may refer to, all together. */
  outcomeCacheBytes: 16_777_216,

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
  /** Starts of the host in a row that ended because it answered nothing any more, after which work that was taken up at each of them is set aside. */
  frozenStarts: 3,
  /** A host that lives so long after it took up a piece of work has not been frozen by it. */
  provenMs: 10_000,
  /** Between two pieces of work that are taken up after a freeze in which both were under way. */
  suspectSlotMs: 1_000,
  /** What a suspect that has the host to itself gets beyond `provenMs`: its note has to be gone before the next one begins. */
  suspectMarginMs: 5_000,
  variables: 1_000,
  variableBytes: 262_144,
  /** All variables of a session, names and values as JSON: every run has them in memory, and `GET …/state` sends them. */
  variablesBytes: 4_194_304,
  /** What a client keeps with a session; it stands in the session's own row. */
  metadataBytes: 65_536,
  /**
   * A session's database, past which it takes no message and starts no action. A tenth of what the platform lets an
   * object hold: what is at work ends within its own limits, and reading, exporting and deleting need little room.
   */
  sessionBytes: 1_073_741_824,

  // --- sub-agents and workflows (M7) ---
  /** How many sessions may stand above one that an action started. */
  childDepth: 5,
  /** What the start of a child counts for, in steps of work. */
  childStartSteps: 200_000,
  /** Sessions below one run: those that its actions start, with those that these start. Each gets a part of what is left. */
  childrenPerRun: 64,
  /** Between two tries to reach a child whose stream broke off. */
  childRetryMs: 200,
  childRetryMaxMs: 5_000,
  /** How far the time of a signed webhook may be from ours. */
  webhookSeconds: 300,
  /** A scheduled run that could not be started for so long is left out. */
  scheduleGiveUpMs: 3_600_000,
  /** Least time between two runs of a schedule, where the operator says nothing (`CRON_MIN_SECONDS`). */
  cronMinMs: 60_000,
  /** What the operator may say at most, for schedules and for feeds. */
  clockMinMostSeconds: 86_400,
  /** Schedules of one catalogue: all of them may be due in the same minute. */
  schedules: 100,
  /** Between the starts of two schedules that are due at once. */
  scheduleSpacingMs: 100,
  /** Workflows that one event starts, those that come with the system among them. */
  eventWorkflows: 20,
  /** What judging one cron expression counts for in a slice of loading, in characters: up to 10 ms. */
  cronChars: 4_096,

  // --- journal (J6) ---
  /** A stored row; larger payloads stand in chunk rows. Production rows hold 2 MB. */
  rowBytes: 1_000_000,
  /** Events of one turn that are written by one statement, as JSON: three bytes a character stay below a row's size. */
  batchChars: 262_144,
  /** A longer value is not read together with the rest of a page, but by itself. */
  inlineBytes: 16_384,
  /** Brackets within brackets in an outcome. */
  outcomeDepth: 250,
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
  runOutcomeBytes: 16_777_216,
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
  /** Least period of a periodic feed, where the operator says nothing (`FEED_MIN_SECONDS`). */
  feedMinMs: 5_000,
  /** Periodic feeds of an agent, and of a session with those that the model has added. */
  periodicFeeds: 8,
  historyTurns: 200,
  /** Earlier turns with more bytes or events together are left out, oldest first: about 500,000 tokens. */
  historyBytes: 2_097_152,
  historyEvents: 10_000,
  /** What is read of one long result of an earlier turn: more than the prompt shows. */
  historyResultChars: 32_768,
  /** What is told of older turns (`memory`): of one question or answer, and altogether. */
  summaryTurnChars: 300,
  summaryChars: 16_384,

  // --- http ---
  bodyBytes: 8_388_608,
  /** Read and thrown away past a body's limit, so that the client gets its answer. */
  bodyDrainBytes: 67_108_864,
  /** Brackets within brackets in a request's JSON. */
  requestDepth: 64,
  /** Values in a request's JSON, and members of one map of it: what is made of a small text, and checked one by one. */
  requestValues: 200_000,
  requestMembers: 5_000,
  heartbeatMs: 5_000,
  /** Live events waiting for one slow reader; past it they are left to the journal, and read there when there is room. */
  readerQueueBytes: 1_048_576,
  /** Text patches that follow each other sooner are sent together: no eye sees it, and each chunk has its price. */
  patchCoalesceMs: 8,
  /** What is read from the journal ahead of one reader. */
  readerPageBytes: 262_144,
  /** Streams that are open on one session. */
  readersPerSession: 1_000,
  /** A page of history holds no further run past so much text. */
  historyPageChars: 4_194_304,
  /** A page of history, executions or events. */
  pageRows: 100,

  /** Of an API key's name: it goes into names of objects, and to the runner. */
  keyNameChars: 64,

  /** A session token, and how long one is good for: without a wish, and at most (H5). */
  sessionTokenChars: 2_048,
  /** Of the secret that signs them: a shorter one could be found by trying, by anyone who holds a token. */
  tokenSecretChars: 32,
  sessionTokenSeconds: 3_600,
  sessionTokenMaxSeconds: 7 * 24 * 3_600,

  // --- manifests (M1) ---
  /** One manifest file, or a file that a manifest names. */
  manifestBytes: 1_048_576,
  /** YAML of one file: about 50 ms of reading at the worst. A larger text (a script, a persona) is a file that a manifest names. */
  yamlChars: 262_144,
  /** The lexer's tokens of one file, line ends and spaces included: about 3,000 lines, 50 ms of reading. */
  yamlTokens: 20_000,
  /** Aliases of one YAML file. */
  manifestAliases: 100,
  /** Values of one YAML document, its aliases expanded. */
  manifestNodes: 20_000,

  /** Problems, and warnings, that are told of one file; the rest of it is not looked at. */
  manifestProblems: 100,
  /** Characters that are read or built before others of the thread have their turn. */
  manifestSliceChars: 8_192,
  /** Conditions of one workflow, all together. */
  workflowConditionChars: 65_536,
  /** Endpoints of one relic. */
  relicEndpoints: 256,
  /** Names in one list of an import. */
  manifestImports: 200,
  /** Tokens of YAML in all files of one load: about 2.5 µs each. The bundled manifests have 231 each on average. */
  catalogTokens: 400_000,
  /** Files and bytes of one namespace's catalogue (M4). */
  catalogFiles: 500,
  catalogBytes: 4_194_304,
  /** Definitions of one namespace's catalogue, as JSON, with the files that they name: a file that several name counts each time. */
  catalogDefinitionChars: 4_194_304,
  /** YAML of which a catalogue keeps what it has read, so that a change reads only what it changes. */
  catalogMemoryChars: 4_194_304,
  /** Changes and checks of one catalogue that wait for each other. */
  catalogQueue: 32,
  /** Between two slices of a load: others of the thread have their turn. */
  catalogPauseMs: 2,
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
  /** What is looked at for one page of keys or of the log, however little of it is shown. */
  relicScannedRows: 5_000,
  relicScannedBytes: 4_194_304,
  /** Expired entries that one alarm removes; the next one follows at once. */
  relicPurgedRows: 1_000,
  /** What a manifest may let an edge relic hold. */
  relicQuotaMostBytes: 268_435_456,
  relicStatementChars: 65_536,
  /** Brackets within brackets, and the instructions of the program that SQLite makes of a statement. */
  relicStatementDepth: 100,
  relicProgramInstructions: 12_000,
  /** `SELECT`s of one statement, with those that its views and common table expressions stand for. */
  relicStatementSelects: 64,
  /** Words of one statement when names of columns are replaced by what they stand for, as SQLite does. */
  relicWrittenTokens: 300_000,
  /** The same for a table's generated columns: how often one may be written out in another. */
  relicGeneratedCopies: 1_000,
  /** Calls of functions in one statement, and window functions among them: SQLite compares them with each other. */
  relicStatementCalls: 500,
  relicStatementWindows: 20,
  /** Joins of one statement by `NATURAL` or `USING`, for which SQLite compares all columns. */
  relicNamedJoins: 6,
  /** Work of one statement at most, in units of about ten nanoseconds: it cannot be interrupted. */
  relicStatementWork: 20_000_000,
  /** How many of these units are one step of other evaluations. */
  relicWorkPerStep: 5,
  /** What the calls of one store are charged at most, in steps; the limits of each kind of call lie below. */
  relicCallSteps: 10_000_000,
  /** What a statement is charged that was judged and refused. */
  relicRefusalSteps: 500_000,
  /** An entry that is looked at for a page. */
  relicRowSteps: 40,
  /** Tables, indexes and views of one store, and the characters of their definitions: SQLite reads all of them anew. */
  relicSchemaObjects: 200,
  relicSchemaChars: 131_072,
  /** Statements in the manifest of a store. */
  relicSchemaStatements: 100,
  /** SQLite's own limits in a Durable Object: the longest value, and the longest pattern of LIKE. */
  relicSqliteValueBytes: 4_194_304,
  relicPatternBytes: 50,
  /** Rows of the tables of one statement that are counted before it runs; a scan of more is refused. */
  relicCountedRows: 500_000,
  /** Values of tables and indexes that are measured for one statement; what is not counts as the longest possible. */
  relicMeasuredValues: 500_000,
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

  // --- evaluations: what one may cost, in steps of about 50 ns ---
  /** A JMESPath expression, the names, operators and brackets in it, and how deep it, its data and its result nest. */
  queryChars: 8_192,
  queryTokens: 1_000,
  queryDepth: 200,
  querySteps: 1_000_000,
  /** A query's result as JSON, with parts that it holds several times counted each time. */
  queryResultChars: 2_097_152,
  /** An expression of the calculator, and what its evaluation may cost. */
  calculatorChars: 65_536,
  calculatorSteps: 1_000_000,
  /** A regular expression of a schema, and its states when its repetitions are written out. */
  patternChars: 500,
  patternStates: 1_000,
  /** A JSON Schema: its parts with its references followed, how deep it nests, and what one check of a value may cost. */
  schemaParts: 5_000,
  schemaDepth: 300,
  schemaSteps: 1_000_000,
  /** Reading the schemas and patterns of one manifest. */
  manifestSchemaSteps: 500_000,
  /** Looking for the names that mistyped ones in one folder of manifests were meant to be. */
  manifestSuggestionSteps: 2_000_000,
  /** Problems, and warnings, of one request that are listed. */
  manifestIssues: 1_000,
  /** Definitions of one folder of manifests. */
  catalogDefinitions: 2_000,
  /** Protocol text that `POST /plan` reads; a generation may have more. */
  planChars: 1_048_576,
  /** Lines of a drawn graph of manifests, and how deep one unfolds. */
  graphLines: 5_000,
  graphDepth: 40,
  /** What a check says of a value; the rest is left out. */
  schemaErrors: 100,

  // --- outbound http (X2) ---
  fetchBytes: 2_097_152,
  fetchRedirects: 5,
  fetchTimeoutMs: 30_000,
  /** What a runner is told of a name counts so long; connections go to what was judged, so that it need not be shorter. */
  egressNameMs: 10_000,
  egressNames: 256,
  /** An answer of a model through a runner; the runner takes no more. */
  egressModelBytes: 67_108_864,
  /** Tags and texts that are read of one web page; the rest is left out. */
  htmlEvents: 50_000,
  /** Tags and texts, and bytes, that are read of a web page in one turn. */
  htmlEventsPerTurn: 500,
  htmlPieceBytes: 16_384,
  /** Text that the selectors of one request find together. */
  htmlMatchedChars: 4_194_304,
  /** CSS selectors of one request, and the length of one: each is tried on every element. */
  htmlSelectors: 20,
  htmlSelectorChars: 200,

  // --- model (L2) ---
  /** An id or a signature that an endpoint gives a native call, to get it back with the conversation (P17). */
  callStateChars: 16_384,
  firstTokenMs: 60_000,
  /** Of a model on one's own machine, which may have to be loaded first. */
  localFirstTokenMs: 300_000,
  betweenTokensMs: 60_000,
  modelAttempts: 3,
  /** Longest wait before the second attempt; doubled for each further one, at most `retryMaxDelayMs`. */
  modelRetryMs: 1_000,
  /** Other models that may stand in for the first. */
  modelFallbacks: 4,
  /** Failures in a row until an endpoint is left alone, and for how long: doubled with each further failure. */
  breakerFailures: 5,
  breakerOpenMs: 30_000,
  breakerOpenMaxMs: 300_000,
  /** A time to the first token says nothing any more when it is older; then the endpoint is tried anew. */
  latencySampleMs: 600_000,
  /** Endpoints whose ways and failures are remembered for one API key, and models of one endpoint; the oldest make room. */
  knownEndpoints: 100,
  knownModels: 100,
  /** Longest wait that somebody else's server can ask for by `Retry-After`. */
  retryAfterMaxMs: 300_000,
  /** A breaker's last word counts for so long where nothing more is heard of it. */
  endpointReportMs: 900_000,
  /** One line of a model's stream, and an error answer: what a broken or hostile endpoint may make us hold. */
  modelLineBytes: 8_388_608,
  modelErrorBytes: 65_536,
  /** After the finish reason, for the usage that some endpoints send behind it. */
  usageGraceMs: 2_000,

  /** What the demo model reads of one message: its patterns take more than linear time (L3). */
  demoMessageChars: 8_192,

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
  /** A sign of life of a runner that is older says nothing: it is asked before a job is handed over. */
  runnerAliveMs: 2_000,
  /** Where no runner can be reached, how often they are asked while an action waits. */
  runnerWaitPollMs: 500,
  /** An action stops waiting for a runner so long before its time is up, to say why (a tenth of a shorter time). */
  runnerWaitMarginMs: 500,
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
