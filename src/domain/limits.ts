/**
 * Every limit of the system, with unit and reason. Sizes in `Bytes` are UTF-8; in `Chars`, UTF-16 code units. What
 * exceeds a limit gets an error with a code; nothing crashes and nothing is dropped silently.
 * One long table, so that there is one place to look up a limit.
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
  /** A longer `$name.path[0]` is text: this limits the text that is held back while streaming (P4). */
  referenceChars: 512,
  /** Text after a `</response>` in an open inline code span: it is held back until the span closes or the line ends (P9). */
  inlineCodeChars: 512,
  /** Parser warnings per generation; the rest is reported in one warning. */
  warningsPerGeneration: 100,
  /** Maximum body that is repaired if it is not strict JSON: repair takes more than linear time (P8). */
  repairChars: 65_536,
  /** Quotes in such a body: each may be the end of a string. */
  repairQuotes: 16_384,
  /** Repaired text of all bodies of a generation: limits the cost of hostile text. */
  repairCharsPerGeneration: 262_144,
  /** What the references of one action may add to its parameters; beyond it, values are omitted (P12). */
  substitutedChars: 8_388_608,
  /** The same for all attempts of a run, because rendering takes time and memory. */
  runSubstitutedChars: 16_777_216,
  /** Rendered size of all references in a run's responses (P13). */
  runResponseChars: 4_194_304,
  /** A list is shown as a table in a response up to this size, else as JSON (P13). */
  tableRows: 100,
  tableColumns: 12,
  /** JSON in a response is indented up to this size (P13). */
  indentedJsonChars: 16_384,
  /** References without a value: that the model is shown, and that an event lists (P10). */
  missingShown: 10,
  gapsListed: 100,
  /** A `when` expression, and the nodes of its syntax tree (S9). */
  conditionChars: 2_000,
  conditionNodes: 256,
  /** Depth of a condition's values; cost of one evaluation and of all evaluations of a run, in steps of about 50 ns (S9). */
  conditionDepth: 200,
  conditionSteps: 1_000_000,
  conditionStepsPerRun: 10_000_000,
  /** Rules in one list of policies, lists that bind a run, and characters of a rule's message (C9). */
  policyRules: 50,
  policyLists: 8,
  policyMessageChars: 500,
  /** Cost of judging one action, in steps, about 50 ns each; expressions and compiled patterns that an isolate keeps. */
  policySteps: 2_000_000,
  policyExpressions: 2_000,
  policyPatterns: 200,
  /** Input quoted in messages. */
  excerptChars: 80,
  /** Stored prompts of a session, for debugging, in characters of JSON; the oldest are dropped. */
  promptsChars: 4_194_304,
  /** Parameters of an action as JSON in the document of a run, and in `action_started` (H7). */
  shownParametersChars: 16_384,
  /** An error message in the list of executions; the document of the run has the whole message. */
  executionErrorChars: 1_000,
  /** A response after its references are expanded (P13). */
  responseBytes: 1_048_576,
  /** Outputs of a workflow as JSON in `agent_completed`; larger ones are only in the document of the run. */
  workflowOutputsEventChars: 1_048_576,

  /** Steps of work per millisecond of pause: 1,000,000 steps take about 50 ms and are followed by 100 ms. */
  stepsPerPauseMs: 10_000,
  /** The longest pause. */
  pauseMs: 200,
  /** A longer pause than this means that the clock was set back. */
  pauseMostMs: 2_000,
  /** Work after which a session or a request queues, about 5 ms; and after which all work of an owner queues. */
  turnSteps: 100_000,
  busyTurnSteps: 60_000,
  ownerSteps: 400_000,
  /** Work of a run per step, about 10 ms, regardless of the number of inputs. */
  runTurnSteps: 200_000,
  /** How long an owner counts as active for others after its last work. */
  activeOwnerMs: 10_000,
  /** Cost of a run's event, and of each of its characters: parsing, deciding, journaling and sending. */
  eventSteps: 2_000,
  eventCharSteps: 3,
  /** Cost of a character of an action's parameters with resolved references: validation, transfer, redaction. */
  parameterCharSteps: 2,
  /** Cost of a character of model text, of a prompt, of a request, of a byte of its body, and of creating a session. */
  textCharSteps: 2,
  promptCharSteps: 1,
  requestSteps: 20_000,
  bodyByteSteps: 1,
  sessionSteps: 300_000,
  /** Evaluations below this cost never wait. */
  probeSteps: 5_000,
  /** Estimated duration of another's turn, and of its start; a share that has not polled for the stale time is removed. */
  turnEstimateMs: 2,
  turnStartMs: 4,
  turnStaleMs: 2_000,
  /** Owners whose use of the thread is remembered. */
  ownersRemembered: 1_000,

  /** Characters of posted protocol text that are parsed per slice. */
  programSliceChars: 8_192,

  // --- reading a session ---
  /** JSON that a request reads from or sends of a session per slice; at least one event. */
  sliceChars: 262_144,
  /** Cost of an event that is read, in addition to its text, and of one that is skipped. */
  eventChars: 512,
  passedEventChars: 16,
  /** Events that one statement skips. */
  passedEvents: 10_000,
  /** The same if their data is searched, up to `artifactBytes` each; and characters searched in the time of reading one. */
  searchedEvents: 500,
  searchedCharsPerChar: 16,

  // --- scheduling ---
  maxParallelActions: 5,
  maxIterations: 10,
  runSeconds: 3_600,
  /** Pause of the demo model before each piece of text. */
  demoDeltaMs: 10,
  modelCallsPerRun: 100,
  actionTimeoutMs: 60_000,
  /** agent, workflow and docker (S8). */
  longActionTimeoutMs: 300_000,
  /** Maximum timeout of an action. */
  maxActionTimeoutMs: 3_600_000,
  retryAttempts: 3,
  maxRetryAttempts: 10,
  retryDelayMs: 500,
  retryMaxDelayMs: 30_000,
  /** Iterations without a response and without an accepted action before the run fails (S11). */
  idleIterations: 2,
  lastGenerationTokens: 1_024,
  /** Minimum tokens of a generation; fewer are not enough for an answer. */
  leastGenerationTokens: 256,
  /** From the end of the time budget to the end of the last generation (S12). */
  lastGenerationMs: 60_000,
  /** Interrupted generations in a row until the run fails (P15). */
  brokenGenerations: 2,
  /** A call that awaits approval, as JSON: beyond it, the event has digest and size, and the call is read separately (J8). */
  approvalChars: 16_384,
  /** All calls of a run that await approval, as JSON: they stay in the journal, and one step may request all of them. */
  approvalBytesPerRun: 16_777_216,
  /** All calls that were prepared for approval, including those that were rejected as too large. */
  approvalBytesResolvedPerRun: 67_108_864,
  /** A page of open approvals: each has a call of up to `approvalChars`, and `GET /approvals` asks each session on it. */
  approvalRows: 25,
  /** Open approvals of one session in the list of all sessions, oldest first; `GET …/approvals` of the session has all. */
  approvalsListed: 100,
  /** What a person says about a decision. */
  approvalNoteChars: 2_000,
  /** Questions that the target of one action may ask. */
  questionsPerAction: 8,
  /** Who asks a question, in characters. */
  questionFromChars: 200,
  /** The text of a question; the rest is cut. */
  questionChars: 4_096,
  questionUrlChars: 2_048,
  /** The schema of a question's values, as JSON. */
  questionSchemaChars: 16_384,
  /** Values that a question may ask for. */
  questionValues: 64,
  /** What an executor keeps with its question, as JSON. */
  questionStateChars: 65_536,
  /** The values of an answer, as JSON. */
  questionContentChars: 65_536,
  /** An approval without a decision counts as denied after this time (J8). */
  approvalExpiryMs: 7 * 24 * 3_600_000,

  // --- client tools (C3) ---
  /** A call that the client does not answer fails after this time; and the greatest time-out of a manifest. */
  clientToolMs: 24 * 3_600_000,
  clientToolMostMs: 7 * 24 * 3_600_000,
  /** Parameters of one call as JSON, and of all calls of a run: each is in an event and in the document of the run. */
  clientCallBytes: 262_144,
  clientCallBytesPerRun: 16_777_216,
  /** Open calls in the document of a run, and their parameters as JSON; it says how many more there are. */
  pendingCalls: 100,
  pendingCallChars: 1_048_576,
  /** The body of a client's result. */
  clientOutputBytes: 1_048_576,
  /** Tools that a client passes with a message, and their JSON together: each generation shows them to the model. */
  clientTools: 32,
  clientToolBytes: 65_536,
  /** A client's own name of a conversation. */
  threadNameChars: 512,
  /** Within this time, a repeated request finds its first one. OpenAI's clients wait 10 minutes for an answer. */
  repeatedRequestMs: 900_000,
  /** The answer of an ended run is given again for this time, if its client may have lost it. */
  repeatedAnswerMs: 120_000,
  /** Parts of a message that another protocol's client sends: also those of the actions of a whole run. */
  surfaceParts: 16_384,
  /** Images and sounds in one result for a client of the Model Context Protocol; others are links. */
  mcpInlineBytes: 1_048_576,
  /** Links to artifacts in one result. */
  mcpLinks: 100,
  /** A call in the question for its approval. */
  mcpCallChars: 2_000,
  /** Content of one resource: it is in memory as base64. Larger artifacts are downloaded. */
  mcpResourceBytes: 8_388_608,
  /** Time after which a call becomes a task, if the client knows tasks, and how often it should ask for it. */
  mcpTaskAfterMs: 1_000,
  mcpTaskPollMs: 1_000,
  /** How long clients may keep the list of tools. */
  mcpToolListMs: 30_000,
  /** Instructions that come with a message: each generation of its run shows them to the model. */
  instructionChars: 65_536,
  callIdChars: 40,

  // --- earlier outcomes and durations (P6, S5) ---
  /** Cached results per session; the oldest are removed. */
  cachedOutcomes: 1_000,
  /** A longer result, as JSON, is not cached, because each hit is written to the journal again. */
  cachedOutcomeChars: 262_144,
  /** Idempotency keys per session; the oldest are removed. */
  idempotencyKeys: 10_000,
  /** Targets per session whose durations are learned. */
  learnedDurations: 1_000,
  /** Completed actions from which durations are rebuilt, and events that are searched for them. */
  durationsRead: 500,
  durationsEvents: 20_000,

  /** Completed actions of earlier runs that names can refer to; the oldest are removed (P12). */
  outcomeCache: 20_000,
  /** Outcomes of earlier runs that one run may reference, in total. */
  outcomeCacheBytes: 16_777_216,

  // --- session ---
  messageBytes: 1_048_576,
  /** Parts of a message: its texts, images and files (C2). */
  messageParts: 64,
  messagePartBytes: 8_388_608,
  /** All files of a message together. */
  messageFileBytes: 16_777_216,
  /** Parts of a message whose files are fetched, the length of a URL, how many are fetched at a time, and the time for all. */
  messageUrls: 16,
  messageUrlChars: 8_192,
  messageUrlsAtOnce: 4,
  messageUrlsMs: 30_000,
  /** Messages of a session whose files are being fetched: each may have `messageFileBytes` in memory. */
  fetchingMessages: 4,
  /** Smaller files are stored in the session's database also if there is object storage: a row costs less than an object. */
  objectFileLeastBytes: 65_536,
  /** All objects of a session together. They do not count towards `sessionBytes`. */
  sessionObjectBytes: 4_294_967_296,
  /** Objects of one message or commit that are put at the same time, and of one job that are read. */
  objectsAtOnce: 4,
  /** Messages of a session whose files are being put: each may have `messageFileBytes` in memory. */
  stagedMessages: 4,
  /** For one call of the object storage, and how often a call that fails is made. */
  objectTimeoutMs: 30_000,
  objectAttempts: 2,
  /** An object that no message has after this time is deleted: its host ended before the message was accepted. */
  unreferredFileMs: 600_000,
  /** An object that the workspace no longer has is deleted after this time: a program may rewrite a file often. */
  releasedFileMs: 60_000,
  /** Delay before objects are deleted again after a failure, and its maximum. */
  objectRetryMs: 60_000,
  objectRetryMostMs: 3_600_000,
  /** Objects that one call deletes. */
  objectsPerDeletion: 1_000,
  /** Bytes of files in an export; further files are named with the path of their download. */
  exportFileBytes: 67_108_864,
  /** The body of a message: its files in base64, and its text with JSON's escapes. */
  messageBodyBytes: 25_165_824,
  /**
   * A body beyond this size takes a place while it is received and stored: a message of 16 MiB of files needs about 40 MB
   * of the isolate's 128 MB. Places of the isolate, and of one namespace; a session has one.
   */
  largeBodyBytes: 1_048_576,
  largeBodies: 3,
  largeBodiesPerOwner: 2,
  /** Bodies that wait for a place, how long and how often they look; then the client is told to retry after this time. */
  largeBodiesWaiting: 16,
  largeBodyWaitMs: 20_000,
  largeBodyPollMs: 25,
  largeBodyRetryMs: 5_000,
  /** A place is lost to a waiting body after this time without a byte, and after this time in total. */
  largeBodyStallMs: 5_000,
  largeBodyMs: 60_000,
  queuedMessages: 8,
  /** Bytes of a page that a session sends to its fork; one longer value is a page of its own (C4). */
  forkPageBytes: 1_048_576,
  /** A fork that is not complete after this time is deleted. */
  forkMs: 900_000,
  /** Messages that one run can receive while it is active or waits (C5). */
  steeredMessages: 32,
  /** A seeded history: its messages, and all of them as JSON. The model sees the latest part (`history…`). */
  seededMessages: 2_000,
  seededBytes: 4_194_304,
  /** Parts of one of its messages. */
  seededParts: 1_000,
  /** Its images and files, and their bytes together. */
  seededFiles: 256,
  /** No request to a model shows more. */
  seededFileBytes: 8_388_608,
  /** The body that creates a session: a history, its files in base64, and variables, with JSON's escapes. */
  createBodyBytes: 16_777_216,
  sessionExpiryMs: 30 * 24 * 3_600_000,
  /** Of a session that was made for one request of a stateless client. */
  ephemeralExpiryMs: 3_600_000,
  /** Range of the deployment's setting. */
  sessionExpiryLeastMs: 60_000,
  sessionExpiryMostMs: 3_650 * 24 * 3_600_000,
  watchdogMs: 30_000,
  /** By how much an alarm may be early, so that it need not be moved with each step of a run. */
  alarmSlackMs: 15_000,

  // --- workspace (C7) ---
  /** All files of a workspace: without object storage they are in the session's database. */
  workspaceBytes: 33_554_432,
  /** The same with object storage. A sandbox has the files in its memory. */
  workspaceObjectBytes: 67_108_864,
  workspaceFiles: 2_000,
  workspaceFileBytes: 16_777_216,
  workspacePathBytes: 512,
  workspacePathDepth: 32,
  /** One name in a path, in bytes of UTF-8: the limit of most file systems. */
  workspaceNameBytes: 255,
  /** Entries that are not kept and that a warning names, and changed paths that an event lists. */
  workspaceSkippedShown: 20,
  workspaceListed: 100,
  /** Cost of comparing one file of a workspace, or writing its row, when files change. */
  workspaceFileSteps: 100,
  /** Files that a prompt lists, the latest ones. */
  workspacePromptFiles: 40,
  /** Bytes of files in one request to a runner, and in its answer; one larger file is sent alone. */
  workspaceTransferBytes: 8_388_608,
  /** For one of these requests. */
  workspaceTransferMs: 30_000,
  /** How often a job is submitted whose files the runner has deleted from its cache meanwhile. */
  workspaceAttempts: 3,

  // --- traces and metrics (O1, O2) ---
  /** From the end of a run to the export of its spans: runs that follow one another closely share an export. */
  telemetryDelayMs: 1_000,
  /** Events that one export reads; the rest is exported next. */
  telemetryEvents: 20_000,
  /** Spans of one request to the collector, and their characters of JSON. */
  telemetrySpans: 400,
  telemetryBodyChars: 1_048_576,
  /** From a request to the collector to its failure. */
  telemetryTimeoutMs: 10_000,
  /** The same while a session is being deleted, which waits for it. */
  telemetryCloseMs: 2_000,
  /** Delay before an export is repeated after a failure, doubled for each further one, and its maximum. */
  telemetryRetryMs: 5_000,
  telemetryRetryMostMs: 600_000,
  /** Exports of the same events; after them, they are dropped. Together with the delays: about an hour and a half. */
  telemetryAttempts: 16,
  /** Characters of the collector's answer that are read. */
  telemetryAnswerChars: 4_096,
  /** Characters of one text in a span, if texts are exported. */
  telemetryContentChars: 16_384,

  // --- directory of sessions (C6) ---
  /** Objects that list the sessions of a namespace. Changing it would hide sessions until their next change. */
  directoryShards: 16,
  /** From a change of a running session to its write: a short run costs one write. */
  directoryDelayMs: 1_000,
  /** Delay before a write is repeated after a failure, doubled for each further one, and its maximum. */
  directoryRetryMs: 2_000,
  directoryRetryMostMs: 900_000,
  /**
   * From a request to one of these objects to its failure: an object that hangs delays neither the writes of a session nor a
   * list for longer.
   */
  directoryTimeoutMs: 5_000,
  /** Runs in one write. */
  listedRuns: 100,
  /** A forgotten session is not listed by a write that arrives within this time. */
  directoryForgottenMs: 86_400_000,
  /** Forgotten sessions, and old runs, that one removal takes at most. */
  directoryPurgedRows: 100,
  /** Rows that are written, and time that passes, until the next write of a shard removes what is too old. */
  directoryPurgeAfterRows: 50,
  directoryPurgeMs: 60_000,
  /** Rows that a shard reads for a page; beyond it, the page is shorter than its limit. */
  directoryScannedRows: 5_000,
  /** The title of a session, and the characters of its first line that are read for it. */
  titleChars: 80,
  titleReadChars: 1_024,

  cancelGraceMs: 5_000,
  /** Generations of a run that a crash may interrupt; then it fails (J2). */
  cutGenerations: 3,
  /** Recoveries of one run: a run that kills its host each time must end. */
  recoveries: 20,
  /** Frozen starts in a row after which work that was in progress in each of them is quarantined. */
  frozenStarts: 3,
  /** A host that lives for this time after it resumed some work was not frozen by it. */
  provenMs: 10_000,
  /** Distance between pieces of work that were both in progress at a freeze. */
  quarantineSlotMs: 1_000,
  /** Additional time of work that runs alone: its note must be removed before the next one starts. */
  quarantineMarginMs: 5_000,
  variables: 1_000,
  variableBytes: 262_144,
  /** All variables of a session, names and values as JSON: every run has them in memory, and `GET …/state` returns them. */
  variablesBytes: 4_194_304,
  /** A client's metadata of a session; stored in the session's row. */
  metadataBytes: 65_536,
  /**
   * A session's database; beyond it, the session accepts no message and starts no action. A tenth of the platform's limit:
   * active work ends within its own limits, and reading, exporting and deleting need little space.
   */
  sessionBytes: 1_073_741_824,
  /** Statements after which the size of a session below half of it is read again: each writes a row or a few MiB. */
  sizeCheckStatements: 32,

  // --- sub-agents and workflows (M7) ---
  /** Maximum depth of sub-agents and workflows. */
  childDepth: 5,
  /** Cost of starting a child, in steps. */
  childStartSteps: 200_000,
  /** Sessions below one run, including indirect ones. Each child gets a share of the remaining number. */
  childrenPerRun: 64,
  /** Delay between attempts to reconnect to a child. */
  childRetryMs: 200,
  childRetryMaxMs: 5_000,
  /** Maximum age of a signed webhook. */
  webhookSeconds: 300,
  /** A scheduled run that could not start for this time is skipped. */
  scheduleGiveUpMs: 3_600_000,
  /** Default minimum time between two runs of a schedule (`CRON_MIN_SECONDS`). */
  cronMinMs: 60_000,
  /** Of a duration in a manifest: a time that much later is still a date. */
  durationMs: 36_525 * 24 * 3_600_000,
  /** Maximum of the operator's settings for schedules and feeds. */
  clockMinMostSeconds: 86_400,
  /** Schedules per catalogue: all of them may be due at the same time. */
  schedules: 100,
  /** Distance between starts of schedules that are due at the same time. */
  scheduleSpacingMs: 100,
  /** Workflows per event, including bundled ones. */
  eventWorkflows: 20,
  /** Cost of validating one cron expression in a slice of loading, in characters: up to 10 ms. */
  cronChars: 4_096,

  // --- journal (J6) ---
  /** Maximum size of a stored row; larger values use chunk rows. Production rows hold 2 MB. */
  rowBytes: 1_000_000,
  /** Events that one statement writes, as JSON: at three bytes per character they fit in a row. */
  batchChars: 262_144,
  /** Longer values are read separately from the rest of a page. Also the JSON of the earlier events of a row. */
  inlineBytes: 16_384,
  /** Events of a turn that one row holds: one of them is read with the others. */
  rowEvents: 16,
  /** Depth of an outcome. */
  outcomeDepth: 250,
  /** One action's outcome; the rest is truncated with a marker. */
  outcomeBytes: 8_388_608,
  outcomesInMemoryBytes: 8_388_608,
  /** Larger outputs, and files in outputs, are artifacts. */
  artifactBytes: 32_768,
  filesPerOutcome: 100,
  /** What one call of a code tool may write, and how its updates and errors are cut (K2). */
  codeToolFiles: 16,
  codeToolFileBytes: 4_194_304,
  codeToolUpdates: 1_000,
  codeToolUpdateChars: 4_096,
  codeToolErrorChars: 4_096,
  /** Time for the schema of a code tool to parse the parameters of an action. */
  codeToolParseMs: 10_000,
  /** Hosts that may end during calls of a code tool within this time; then it is set aside until the time has passed. */
  codeToolDeaths: 3,
  codeToolDeathsMs: 3_600_000,
  /** Deaths that several sessions report within this time are one, if the starter of the host does not number its lives. */
  codeToolDeathMs: 10_000,
  /** How long an isolate relies on what it knows of tools that are set aside. */
  codeToolStateMs: 10_000,
  fileNameChars: 100,
  /** Bytes that are read per page of the list of artifacts. */
  artifactPageBytes: 16_777_216,
  /** All outcomes of one run: bounds results that repeat others. */
  runOutcomeBytes: 16_777_216,
  /**
   * Streamed text that no event contains is written to the journal at this size or age: the first of a generation, and
   * the rest of it (J6).
   */
  unsavedTextChars: 2_048,
  unsavedTextMs: 1_000,
  unsavedTextLaterMs: 5_000,

  // --- prompt (L5) ---
  /** One result in a prompt; references still resolve to the full value. */
  resultPromptChars: 16_384,
  resultsPromptChars: 131_072,
  /**
   * Tools of an agent in its prompt, in estimated tokens: if all of them need more, some are listed in short form (L4).
   * Default of `protocol.tool_tokens`, and its range.
   */
  promptToolTokens: 6_000,
  promptToolLeastTokens: 100,
  promptToolMostTokens: 1_000_000,
  /** Tools in short form: one summary, one of a long list, and how many names are listed. */
  listedSummaryChars: 160,
  listedSummaryLeastChars: 40,
  listedTools: 1_000,
  /** Tools that are too large to be shown in full, after which the others are listed: each of them is rendered. */
  largeToolsSkipped: 8,
  /** Functions of one request: OpenAI accepts no more (P17). */
  nativeFunctions: 128,
  /**
   * Tools that one `describe_tools` describes, their JSON, which is less than `resultPromptChars`; and the parameters of one,
   * its summary, and its example.
   */
  describedTools: 20,
  describedToolsChars: 12_000,
  describedToolChars: 8_000,
  describedSummaryChars: 2_000,
  describedExampleChars: 1_000,
  /** Names that a search finds, and how many of them are described; its characters and words; and what it reads of a summary. */
  foundTools: 20,
  foundToolsDescribed: 3,
  toolSearchChars: 200,
  toolSearchWords: 12,
  toolSearchSummaryChars: 400,
  /** Unknown names for which similar ones are searched. */
  unknownToolsSuggested: 5,
  /** Cost of one `describe_tools`, in steps: a search of 20,000 tools with the longest summaries and words. */
  describeToolsSteps: 10_000_000,
  /** Parameters of a tool in short form in the error of a call with wrong ones. */
  toolHintChars: 2_000,
  /** The text of a manifest that replaces one part of the prompt, about 4,000 tokens. Each placeholder counts once. */
  promptPartChars: 16_384,
  /** One description of a skill in a prompt, and all of them together, about 3,000 tokens (C8). */
  skillSummaryPromptChars: 600,
  skillSummariesPromptChars: 12_000,
  /** Texts of loaded skills in one prompt, in addition to other results; each is shown as a whole or not at all (C8). */
  loadedSkillsPromptChars: 131_072,
  /** All feeds of one prompt, about 8,000 tokens (F4). */
  feedsPromptChars: 32_000,
  /** Images and files whose bytes are sent in one model request, and their bytes before base64: three copies are in memory. */
  attachmentsPerRequest: 20,
  attachmentBytesPerRequest: 8_388_608,
  /** Cost of one of these bytes, in steps: base64, JSON and sending take about 20 ns. */
  attachmentByteSteps: 0.4,
  /** Text files that are shown in one model request, their bytes, and the bytes of one; the rest of it is cut. */
  attachedTextsPerRequest: 20,
  attachedTextsBytes: 131_072,
  attachedTextBytes: 32_768,
  /**
   * Estimated tokens of an image: Anthropic scales images down to about this number (width x height / 750), and OpenAI's
   * high-detail tiles come to 765 to 1,445. And of a file: two pages of a PDF at Anthropic's 1,500 per page.
   */
  imageTokens: 1_600,
  fileTokens: 3_000,
  /** Default size of one feed (F1). */
  feedTokens: 1_000,
  /** Feeds of an agent's manifest. */
  feeds: 64,
  feedIntervalMs: 60_000,
  /** How long a model call waits for all of its feeds (F2). */
  feedDeadlineMs: 2_000,
  /** How long a reference, or the action that adds a feed, waits for the feed's first value. */
  feedReferenceMs: 10_000,
  /** Timeout of a feed's fetch. */
  feedFetchMs: 60_000,
  /** Periodic feeds pause after this time without a message (F3). */
  feedIdleMs: 600_000,
  /** How long a prompt waits for a shared feed that has an older value: less than its own deadline. */
  sharedFeedWaitMs: 1_000,
  /** A shared value that expires within this time is fetched: clocks of two machines differ. */
  sharedFeedSlackMs: 250,
  /** A shared value is deleted after this time without a fetch, or after two intervals, if that is later. */
  sharedFeedKeptMs: 3_600_000,
  /** Characters of a field in the log, and of a stack trace. */
  logFieldChars: 500,
  logStackChars: 4_000,
  /** An event whose repeats are limited is logged once in this time, with a count; so many different ones are tracked. */
  logRepeatMs: 60_000,
  logRepeats: 1_000,
  /** `/health`: a runner that has not answered within this time is `degraded` instead of `starting`. */
  healthStartMs: 120_000,
  /** A runner that has not answered for this time is reported as unreachable: longer than a restart. */
  runnerReportMs: 5_000,

  /** What `recent_actions` shows (F5). */
  recentActions: 10,
  /** Default minimum interval of a periodic feed (`FEED_MIN_SECONDS`). */
  feedMinMs: 5_000,
  /** Periodic feeds per agent, and per session including those that the model has added. */
  periodicFeeds: 8,
  historyTurns: 200,
  /** Earlier turns beyond this size or number of events are omitted, oldest first: about 500,000 tokens. */
  historyBytes: 2_097_152,
  historyEvents: 10_000,
  /** Characters that are read of a long result of an earlier turn: more than the prompt shows. */
  historyResultChars: 32_768,
  /**
   * The shape of a result in the prompt: depth, parts and keys that are read, items of a list that are compared, length
   * and words of a key of a result, and length of the text.
   */
  shapeDepth: 5,
  shapeParts: 100,
  shapeKeys: 24,
  shapeItems: 4,
  shapeKeyChars: 32,
  shapeKeyWords: 3,
  shapeChars: 400,
  /**
   * Copies of uploaded definitions (Z1): how long one is used without a request to the catalogue, and how long one is used
   * at most. In between, a message uses it at once, and the catalogue is asked afterwards. A conversation reads each turn
   * for some seconds, so 10 s is one request for a burst of messages; 5 minutes is a pause after which a client expects to
   * wait anyway, and the longest time that a removed manifest or a policy that was made stricter can remain unnoticed.
   */
  manifestStalenessMs: 10_000,
  manifestMaxAgeMs: 300_000,
  /** Copies of one isolate, and their characters together. */
  cachedDefinitions: 500,
  cachedDefinitionChars: 4_194_304,
  /** Texts of which an isolate keeps what it has derived from them (recent-texts.ts), and their characters together. */
  recentTexts: 100,
  recentTextChars: 1_048_576,
  /** How far the clock of a catalogue's object may be ahead. */
  clockSkewMs: 60_000,
  /** Pinned definitions that a session keeps in addition to those of its open runs and its latest run. */
  pinsIssued: 8,
  /** A description of a result, and the statements that create a relic's tables, in the prompt. */
  returnsChars: 200,
  tablesPromptChars: 4_000,
  /** A pattern, a format or a default of a parameter in the prompt; longer ones are not shown. */
  parameterLimitPromptChars: 80,
  /** The alternatives of a parameter in the prompt; longer ones are shown as `any`. */
  unionPromptChars: 400,
  /** Summary of older turns (`memory`): one question or answer (of which `summaryReadChars` are read), and in total. */
  summaryTurnChars: 300,
  summaryReadChars: 600,
  summaryChars: 16_384,
  /** Tokens of a summary that a model writes (`memory.summary.tokens`): default, least and most. */
  summaryTokens: 800,
  summaryLeastTokens: 100,
  summaryMostTokens: 4_000,
  /** How much longer than its budget it may be, because models count roughly: a factor. */
  summaryTolerance: 1.25,
  /** Further output tokens of the call, for models that reason before they answer. */
  summaryReasoningTokens: 2_048,
  /** The characters that are stored of such a text: more than the most tokens have. */
  summaryTextChars: 32_768,
  /** What the call reads: all turns together, a message or an answer, and one result. */
  summaryInputChars: 131_072,
  summaryInputTurnChars: 8_192,
  summaryInputResultChars: 512,
  /** Actions of a turn whose results the call reads: the latest ones. */
  summaryInputResults: 20,
  /** A template of the call (`memory.summary.template`). */
  summaryTemplateChars: 16_384,
  /**
   * Duration of the call; calls without progress, with those that a crash has interrupted; and calls after a run, where not all
   * turns fit into one.
   */
  summaryCallMs: 120_000,
  summaryAttempts: 3,
  summaryCallsPerRun: 8,
  /** The message and the answer of an earlier turn as a value (`$turn_3`), each. */
  turnValueChars: 65_536,

  // --- http ---
  bodyBytes: 8_388_608,
  /** Bytes that are read and discarded beyond a body's limit, so that the client gets its answer. */
  bodyDrainBytes: 67_108_864,
  /** Depth of a request's JSON. */
  requestDepth: 64,
  /** Values in a request's JSON, and members of one map, because each is validated. */
  requestValues: 200_000,
  requestMembers: 5_000,
  heartbeatMs: 5_000,
  /** Live events queued for a slow reader; beyond it, the reader falls back to the journal. */
  readerQueueBytes: 1_048_576,
  /** Coalescing window of text patches: imperceptible, and fewer chunks. */
  patchCoalesceMs: 8,
  /** Bytes that are prefetched from the journal for one reader. */
  readerPageBytes: 262_144,
  /** Open streams per session. */
  readersPerSession: 1_000,
  /** A page of history ends after this much text. */
  historyPageChars: 4_194_304,
  /** A page of history, executions or events. */
  pageRows: 100,

  /** Length of the name of an API key or namespace: it is part of names of objects, and is sent to the runner. */
  keyNameChars: 64,

  /** Length of a token, its default lifetime, and its maximum lifetime (H5). */
  sessionTokenChars: 2_048,
  /** Length of a sealed value that a client brings back. */
  sealedChars: 16_384,
  /** Names of agents in a user token. */
  tokenAgents: 32,
  /** Minimum length of the signing secret: the holder of a token could find a shorter one by trial. */
  tokenSecretChars: 32,
  sessionTokenSeconds: 3_600,
  sessionTokenMaxSeconds: 7 * 24 * 3_600,

  // --- manifests (M1) ---
  /** One manifest file, or a file that a manifest refers to. */
  manifestBytes: 1_048_576,
  /** YAML of one file: at most about 50 ms of parsing. Longer texts (scripts, personas) belong in separate files. */
  yamlChars: 262_144,
  /** Lexer tokens of one file, including line ends and spaces: about 3,000 lines, 50 ms of parsing. */
  yamlTokens: 20_000,
  /** Aliases of one YAML file. */
  manifestAliases: 100,
  /** Values of one YAML document with expanded aliases. */
  manifestNodes: 20_000,

  /** Errors, and warnings, reported per file; the rest of the file is not checked. */
  manifestProblems: 100,
  /** Characters that are parsed or built per slice. */
  manifestSliceChars: 8_192,
  /** Conditions of one workflow, in total. */
  workflowConditionChars: 65_536,
  /** Files of the folder that an image is built from. */
  contextFiles: 256,
  /** Endpoints of one relic. */
  relicEndpoints: 256,
  /** Names in one list of an import. */
  manifestImports: 200,
  /** YAML tokens in all files of one load: about 2.5 µs each. The bundled manifests have 231 each on average. */
  catalogTokens: 400_000,
  /** Files and bytes of one namespace's catalogue (M4). */
  catalogFiles: 500,
  catalogBytes: 4_194_304,
  /** Definitions of a catalogue, as JSON, including their files; a file of several definitions counts each time. */
  catalogDefinitionChars: 4_194_304,
  /** YAML for which a catalogue keeps the parsed form, so that a change parses only what it changes. */
  catalogMemoryChars: 4_194_304,
  /** Queued changes and validations of one catalogue. */
  catalogQueue: 32,
  /** Pause between two slices of a load, for other work. */
  catalogPauseMs: 2,
  /** One definition with its files; it must fit in a row. */
  definitionChars: 600_000,
  /** Files beside a tool's script, and paths at which its imports are searched. */
  scriptFiles: 64,
  scriptLookups: 400,
  /** Maximum length of a module's name in an import statement; a longer one is no file. */
  modulePathChars: 512,
  /** Text of a `SKILL.md` without its front matter, about 16,000 tokens: the model is shown all of it (C8). */
  skillTextChars: 65_536,
  /** Its description, as in the common format; the rest is left out. */
  skillDescriptionChars: 1_024,
  /** Files beside a `SKILL.md`, and their bytes: each session of an agent keeps a copy with its pinned manifests. */
  skillFiles: 100,
  skillFilesBytes: 524_288,
  /** Skills of one agent: each prompt has their names and descriptions. */
  agentSkills: 32,
  /** Versions per manifest; the oldest are removed. */
  manifestVersions: 50,
  /** Steps in one list of a workflow, and nested lists (M6). */
  workflowSteps: 100,
  workflowDepth: 8,
  /** Rounds of a `loop`. */
  workflowRounds: 100,

  // --- relics (R5, R6) ---
  relicKeyChars: 512,
  /** A page of keys, entries or rows. */
  relicPageRows: 1_000,
  /** Default quota of an edge relic. */
  relicQuotaBytes: 10_485_760,
  /** Size of the store's own tables, in addition to the quota. */
  relicOwnBytes: 65_536,
  relicValueBytes: 524_288,
  /** Entries or rows in one response. */
  relicAnswerChars: 1_048_576,
  /** Rows scanned for one page of keys or of the log. */
  relicScannedRows: 5_000,
  relicScannedBytes: 4_194_304,
  /** Expired entries that one alarm removes; the next alarm follows immediately. */
  relicPurgedRows: 1_000,
  /** Maximum quota of an edge relic. */
  relicQuotaMostBytes: 268_435_456,
  relicStatementChars: 65_536,
  /** Depth of a statement, and the instructions of its compiled program. */
  relicStatementDepth: 100,
  relicProgramInstructions: 12_000,
  /** `SELECT`s of one statement, including expanded views and common table expressions. */
  relicStatementSelects: 64,
  /** Tokens of one statement after expanding columns, as SQLite does. */
  relicWrittenTokens: 300_000,
  /** The same for a table's generated columns. */
  relicGeneratedCopies: 1_000,
  /** Function calls in one statement, and window functions among them: SQLite compares them with each other. */
  relicStatementCalls: 500,
  relicStatementWindows: 20,
  /** Joins of one statement with `NATURAL` or `USING`, for which SQLite compares all columns. */
  relicNamedJoins: 6,
  /** Maximum cost of one statement in units of about ten nanoseconds, because it cannot be interrupted. */
  relicStatementWork: 20_000_000,
  /** Units per step of other evaluations. */
  relicWorkPerStep: 5,
  /** Maximum charge of one store's calls, in steps; each kind of call has a lower limit. */
  relicCallSteps: 10_000_000,
  /** Charge for a statement that was analysed and rejected. */
  relicRefusalSteps: 500_000,
  /** Cost of an entry that is scanned for a page. */
  relicRowSteps: 40,
  /** Tables, indexes and views of one store, and the characters of their definitions: SQLite parses all of them again. */
  relicSchemaObjects: 200,
  relicSchemaChars: 131_072,
  /** Statements in the manifest of a store. */
  relicSchemaStatements: 100,
  /** SQLite's own limits in a Durable Object: the longest value, and the longest pattern of LIKE. */
  relicSqliteValueBytes: 4_194_304,
  relicPatternBytes: 50,
  /** Rows that are counted before a statement runs; a scan of more is rejected. */
  relicCountedRows: 500_000,
  /** Values that are measured for one statement; others count as the longest possible. */
  relicMeasuredValues: 500_000,
  /** Calls whose outcome an edge relic remembers, for idempotency. */
  relicRememberedCalls: 1_000,
  /** Maximum lifetime of an entry: ten years. */
  relicTtlMs: 315_360_000_000,
  relicIdleMs: 600_000,
  relicHealthMs: 10_000,
  relicStartMs: 30_000,

  // --- facts about users (C10) ---
  factKeyChars: 64,
  /** Of a value after its white space was joined. */
  factValueChars: 500,
  /** Default and maximum number of facts about one user. */
  facts: 50,
  factsMost: 200,
  /** Default and maximum size of all of them in the prompt. */
  factTokens: 1_000,
  factTokensMost: 4_000,
  /** Calls that the store of one user remembers, for idempotency: more than the actions of the runs that may be retried. */
  factCalls: 2_000,
  /** Forgotten keys whose time the store of one user remembers. */
  factDeletions: 200,
  /** How long a request waits for a store. */
  factsTimeoutMs: 10_000,

  // --- secrets (X3) ---
  /** Shorter values are usually ordinary words and are not redacted. */
  secretChars: 6,

  // --- evaluations: limits of one evaluation, in steps of about 50 ns ---
  /** A JMESPath expression; its names, operators and brackets; the depth of the expression, its data and its result. */
  queryChars: 8_192,
  queryTokens: 1_000,
  queryDepth: 200,
  querySteps: 1_000_000,
  /** A query's result as JSON, counting shared parts each time. */
  queryResultChars: 2_097_152,
  /** An expression of the calculator, and the cost of its evaluation. */
  calculatorChars: 65_536,
  calculatorSteps: 1_000_000,
  /** A regular expression in a schema, and its states with expanded repetitions. */
  patternChars: 500,
  patternStates: 1_000,
  /**
   * Redaction of outgoing text (C9): patterns of one list; characters of a pattern; patterns of a run, with those of the
   * deployment and of all sessions above it; characters of the longest match of a pattern.
   */
  redactPatterns: 16,
  redactPatternChars: 240,
  redactPatternsPerRun: 128,
  redactMatchChars: 512,
  /** Compiling the patterns of the deployment; those of a manifest count with its schemas. */
  redactCompileSteps: 2_000_000,
  /** Searching one event or document. What is left is hidden as a whole. */
  redactSteps: 50_000_000,
  /** A text that is JSON as a whole, and how often JSON may be a string in such JSON: else it is redacted as other text. */
  redactJsonChars: 1_048_576,
  redactJsonDepth: 3,
  /** Characters outside of ASCII of which a pattern remembers whether they may occur in a match. */
  redactKnownChars: 4_096,
  /** A JSON Schema: its parts with resolved references, its depth, and the cost of one validation. */
  schemaParts: 5_000,
  schemaDepth: 300,
  schemaSteps: 1_000_000,
  /** Parsing the schemas and patterns of one manifest. */
  manifestSchemaSteps: 500_000,
  /** Searching for names similar to unknown ones in one folder of manifests. */
  manifestSuggestionSteps: 2_000_000,
  /** Errors, and warnings, listed per request. */
  manifestIssues: 1_000,
  /** Definitions of one folder of manifests. */
  catalogDefinitions: 2_000,
  /** Protocol text of `POST /plan`; a generation may be longer. */
  planChars: 1_048_576,
  /** Lines of a drawn graph of manifests, and its depth. */
  graphLines: 5_000,
  graphDepth: 40,
  /** Errors of one validation; the rest is omitted. */
  schemaErrors: 100,

  // --- outbound http (X2) ---
  /** Characters of parameters in the URL and headers of one request; the platform accepts URLs of 16 KB. */
  filledRequestChars: 16_384,
  fetchBytes: 2_097_152,
  /** A response of at most this many bytes, by its `content-length`, is read before it is passed on. */
  fetchAtOnceBytes: 65_536,
  fetchRedirects: 5,
  fetchTimeoutMs: 30_000,
  /** Connections of an I/O context that wait for response headers at once, on every plan of the platform. */
  platformConnections: 6,
  /** Outbound requests of one invocation, by the platform's plan. */
  platformFreeSubrequests: 50,
  platformPaidSubrequests: 10_000,
  /** The last of them are for the model and the runner. */
  platformReservedSubrequests: 10,
  /** Connections of a session's object that its tools may use; the others are for the model and the runner. */
  directToolConnections: 4,
  /**
   * Helper invocations of a session's object, with six connections each: half of the invocations that the platform allows
   * for one request.
   */
  outboundHelpers: 16,
  /** Requests of one helper, because an invocation has limits of its own; and how long an idle one stays open. */
  outboundHelperRequests: 500,
  outboundHelperIdleMs: 5_000,
  /** An answer up to this size comes from a helper in one piece, because a stream costs more. */
  outboundHelperBytes: 65_536,
  /** How long a resolved name is cached. Connections go to the checked addresses, so it need not be shorter. */
  egressNameMs: 10_000,
  egressNames: 256,
  /** A model's answer through a runner, which is also the runner's limit. */
  egressModelBytes: 67_108_864,
  /** Tags and texts of one web page; the rest is omitted. */
  htmlEvents: 50_000,
  /** Tags and texts, and bytes, of a web page per slice. */
  htmlEventsPerTurn: 500,
  htmlPieceBytes: 16_384,
  /** Text that the selectors of one request match, in total. */
  htmlMatchedChars: 4_194_304,
  /** CSS selectors per request, and their length: each is matched against every element. */
  htmlSelectors: 20,
  htmlSelectorChars: 200,

  // --- MCP servers (E5) ---
  /** Servers of an agent. */
  mcpServers: 16,
  /** Tools of a server that an agent gets; the rest is left out with a warning. `tools` of the manifest chooses. */
  mcpToolsPerServer: 1_000,
  /** Tools and characters of their definitions, of all servers of an agent. */
  mcpTools: 2_000,
  mcpToolsChars: 1_048_576,
  /** A schema of a tool as JSON, and its depth. Of a larger one, parameters are not checked here. */
  mcpSchemaChars: 32_768,
  mcpSchemaDepth: 64,
  /** What a server says about a tool, and how much of it the model sees of a server that is not trusted. */
  mcpDescriptionChars: 4_096,
  mcpUntrustedDescriptionChars: 500,
  mcpUntrustedNoteChars: 200,
  /** Bytes and pages of a list of tools, and how long a run waits for a list, and for a newer one. */
  mcpListBytes: 8_388_608,
  mcpListPages: 200,
  mcpListWaitMs: 5_000,
  mcpRefreshMs: 1_000,
  /** How long a list is valid if the server does not say it, and at most; how long it counts if the server is down. */
  mcpListTtlMs: 300_000,
  mcpListTtlMaxMs: 3_600_000,
  mcpListStaleMs: 86_400_000,
  /** How long a server is not asked again after it failed to list its tools. */
  mcpListRetryMs: 10_000,
  /** How long it counts which protocol a server speaks. */
  mcpKnownMs: 3_600_000,
  /** A longer description of a server is not kept: its connections ask again. */
  mcpKnownChars: 32_768,
  /** Lists that an isolate keeps; the oldest are removed. */
  mcpListsKept: 32,
  /** All answers of one call, and of one list. */
  mcpResponseBytes: 16_777_216,
  /** Connections of a session to a server of 2025-11-25, each for one call at a time; and how long an idle one is kept. */
  mcpConnections: 16,
  mcpIdleMs: 15_000,
  /** How long the handshake may take. */
  mcpConnectMs: 10_000,
  /** How long a server of 2025-11-25 is kept waiting for the answer of a person. */
  mcpQuestionMs: 600_000,
  /** How long an answer may come after the end of its stream. */
  mcpLostAnswerMs: 100,
  /** Questions that one answer of a server may have, and characters of the state that it wants back. */
  mcpQuestions: 8,
  mcpStateChars: 65_536,
  /** Progress of one call; the rest is dropped. */
  mcpUpdates: 1_000,
  mcpUpdateChars: 4_096,
  /** Text of an error of a server. */
  mcpErrorChars: 4_096,
  /** A cut stream of a server of 2025-11-25 is resumed this often, and with these delays. */
  mcpReconnects: 2,
  mcpReconnectMs: 1_000,
  mcpReconnectMaxMs: 5_000,
  /** The least delay, whatever the server asks for. */
  mcpReconnectLeastMs: 100,

  // --- model (L2) ---
  /** An id or a signature of a native call, which is sent back with the conversation (P17). */
  callStateChars: 16_384,
  firstTokenMs: 60_000,
  /** For a local model, which may have to be loaded first. */
  localFirstTokenMs: 300_000,
  betweenTokensMs: 60_000,
  modelAttempts: 3,
  /** Maximum delay before the second attempt; doubled for each further one, up to `retryMaxDelayMs`. */
  modelRetryMs: 1_000,
  /** Fallback models. */
  modelFallbacks: 4,
  /** Failures in a row until the circuit breaker opens, and for how long; doubled with each further failure. */
  breakerFailures: 5,
  breakerOpenMs: 30_000,
  breakerOpenMaxMs: 300_000,
  /** Lifetime of a measured time to the first token; then the endpoint is measured again. */
  latencySampleMs: 600_000,
  /** Remembered endpoints per namespace, and models per endpoint; the oldest are removed. */
  knownEndpoints: 100,
  knownModels: 100,
  /** Maximum `Retry-After` of external servers. */
  retryAfterMaxMs: 300_000,
  /** Lifetime of a circuit breaker's last report. */
  endpointReportMs: 900_000,
  /** One line of a model's stream, and an error answer: bounds memory for broken or hostile endpoints. */
  modelLineBytes: 8_388_608,
  modelErrorBytes: 65_536,
  /** Wait after the finish reason, for endpoints that send usage after it. */
  usageGraceMs: 2_000,

  /** Characters of a message that the demo model reads: its patterns take more than linear time (L3). */
  demoMessageChars: 8_192,

  // --- runner (R3, R8) ---
  jobOutputBytes: 1_048_576,
  jobInputBytes: 8_388_608,
  /** Lifetime of a signed request to the runner (R7). */
  runnerTokenSeconds: 60,
  /** Timeout of a request to the runner, which accepts jobs immediately. */
  runnerRequestMs: 10_000,
  /** Attempts to submit one job; the runner accepts an id only once. */
  runnerAttempts: 3,
  runnerRetryMs: 100,
  runnerRetryMaxMs: 2_000,
  /** The stream of job events counts as cut after this time without a byte, including heartbeats. */
  runnerSilenceMs: 15_000,
  /** A running job is lost after its runner has been unreachable for this time. */
  runnerLostMs: 30_000,
  /** How long the stream of job events stays open after the last job. */
  runnerLingerMs: 5_000,
  /** With several runners: how long an idempotent job's runner may be unreachable before another one runs the job (R7). */
  runnerMoveMs: 5_000,
  /** How long a sign of life of a runner is valid; then it is checked before a job is submitted. */
  runnerAliveMs: 2_000,
  /** Poll interval of runners while an action waits for one. */
  runnerWaitPollMs: 500,
  /** An action stops waiting for a runner this long before its timeout, to report why (a tenth of a shorter timeout). */
  runnerWaitMarginMs: 500,
  /** How long an unreachable runner is not chosen. */
  runnerDownMs: 5_000,
  /** A runner without a free place may have one again after this time, so it is asked. */
  runnerLoadMs: 2_000,
  /** How long a job waits while all runners are full, before it fails for the scheduler to retry: a share of its timeout. */
  runnerBusyShare: 0.5,
  /** After rejections in a row, the pause before the next offer doubles, up to this factor. */
  runnerBusyMostFactor: 4,
  /** Allowance for network and start-up, in addition to a relic call's timeout. */
  relicGraceMs: 5_000,
  /** A runner in a Cloudflare Container: maximum time to its first answer, and poll interval. */
  containerStartMs: 8_000,
  containerPollMs: 100,
  /** How long it may take to answer one health check before work; how often it is started for one request. */
  containerProbeMs: 1_000,
  containerStarts: 3,
  /** Jobs that were sent to it and must not be sent again: more than it takes while a client repeats a request. */
  containerSentJobs: 4_096,
  /** Health questions reach it only for this time after a job, because they would keep it awake. */
  containerQuietMs: 10_000,
  /** It sleeps after this time without a request. */
  containerIdleMs: 600_000,
  containerInstances: 20,
  /** Sessions whose runner is remembered; the oldest are removed. */
  runnerSessions: 1_000,
} as const;
