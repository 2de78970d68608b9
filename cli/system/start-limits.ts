/** Limits of `npm start`: timeouts and restarts of services. Milliseconds. */
export const startLimits = {
  /** From the start of a service to its first answer. */
  startMs: 60_000,
  /** The same for a runner with status `starting`: it may have to build all base images. */
  runnerStartMs: 900_000,
  /** A starting service that accepts connections without answering for this time is frozen. */
  startFreezeMs: 30_000,
  /** From the moment that all services serve until the Worker reports it. */
  readyMs: 10_000,
  /** Poll interval of a starting service. */
  startPollMs: 50,
  /** Timeout of one health check of a starting service, and of a running one. */
  startAnswerMs: 2_000,
  answerMs: 4_000,
  /** Interval of health checks. */
  checkMs: 1_000,
  /** The processes of a service are recorded again after this many answers. */
  noteEvery: 5,
  /** Failed health checks in a row until the service counts as frozen. */
  freezeMisses: 4,
  /** The same if the port is closed or a process of the service is gone. */
  deadMisses: 2,
  /** Maximum time of a rebuild of the Worker, during which it need not answer: modules of code tools can use their limit. */
  rebuildMs: 90_000,
  /** A starting service that is silent for this time is recorded as possibly frozen, in case this process is killed. */
  lateMs: 10_000,
  /** Number of frozen lives of the Worker that are remembered. */
  frozenLives: 100,
  /** Maximum restarts of a service that died, per `restartWindowMs`. The backoff doubles each time. */
  restarts: 5,
  restartWindowMs: 600_000,
  /** The same for one that froze. Each piece of work that freezes it needs three such starts to be quarantined. */
  freezeRestarts: 20,
  freezeWindowMs: 3_600_000,
  restartBackoffMs: 500,
  restartBackoffMaxMs: 8_000,
  /** Time between TERM and KILL. */
  stopGraceMs: 5_000,
  /** The same for processes of an earlier start. */
  orphanGraceMs: 3_000,
  /** Time until killed processes are gone. */
  killedMs: 5_000,
  /** Poll interval of the check whether the parent process is alive. */
  starterPollMs: 1_000,
  /** Interval of progress messages during an image build. */
  progressMs: 5_000,
} as const;
