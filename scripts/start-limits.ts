/** What bounds `npm start`: how long it waits for a service, and how often it starts one again. Milliseconds. */
export const startLimits = {
  /** From the launch of a service until it answers for the first time. */
  startMs: 60_000,
  /** The same for a runner that says that it is starting: its images may be built from nothing. */
  runnerStartMs: 900_000,
  /** A service that takes connections at its start and answers none of them for so long is frozen. */
  startFreezeMs: 30_000,
  /** All parts serve: how long the Worker may take to say so. */
  readyMs: 10_000,
  /** Between two looks at a service that starts. */
  startPollMs: 50,
  /** One question to a service that starts, and to one that runs. */
  startAnswerMs: 2_000,
  answerMs: 4_000,
  /** Between two questions to a service that runs. */
  checkMs: 1_000,
  /** After so many answers the processes of a service are written down anew. */
  noteEvery: 5,
  /** Questions in a row without an answer; then the service is frozen. */
  freezeMisses: 4,
  /** The same where nothing listens any more, or where a process of the service has gone. */
  deadMisses: 2,
  /** A start without an answer for so long is written down as one that may be frozen, should it be killed. */
  lateMs: 10_000,
  /** Frozen lives of the Worker that are remembered. */
  frozenLives: 100,
  /** How often a service that died is started again within `restartWindowMs`, and what is waited before: doubled each time. */
  restarts: 5,
  restartWindowMs: 600_000,
  /** The same for one that froze: three such starts are needed for each piece of work that freezes it, to set it aside. */
  freezeRestarts: 20,
  freezeWindowMs: 3_600_000,
  restartBackoffMs: 500,
  restartBackoffMaxMs: 8_000,
  /** TERM, then so long, then KILL. */
  stopGraceMs: 5_000,
  /** The same for what an earlier start has left behind. */
  orphanGraceMs: 3_000,
  /** How long what was killed may take to be gone. */
  killedMs: 5_000,
  /** Between two looks at whether the process that started this one is still there. */
  starterPollMs: 1_000,
  /** Between two lines about an image that is being built. */
  progressMs: 5_000,
} as const;
