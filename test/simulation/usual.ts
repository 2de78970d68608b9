/**
 * The usual, simplest values of a history: a shrunk history has them, and a printed or stored one leaves them out. A change of one
 * also changes the stored histories, which then may not show their fault any more.
 */
import type { ActionScript, AgentSettings, AttemptScript, GenerationScript } from './history.ts';

export const USUAL_AGENT: AgentSettings = {
  maxParallelActions: 5,
  maxIterations: 10,
  maxActions: 2_000,
  modelCalls: 100,
  seconds: 3_600,
  failFast: false,
  supervised: false,
  policies: false,
  feed: false,
  expiryMs: null,
};

const USUAL_ATTEMPT: AttemptScript = { ms: 0, end: 'ok' };

export const USUAL_ACTION: ActionScript = {
  target: 'pure',
  mode: 'async',
  dependsOn: null,
  refers: [],
  when: null,
  onError: null,
  retries: null,
  timeoutS: null,
  priority: 0,
  key: null,
  attempts: [USUAL_ATTEMPT],
};

export const USUAL_GENERATION: GenerationScript = {
  items: [],
  finish: 'stop',
  pieceChars: 1_000,
  gapMs: 0,
  reportsUsage: false,
  calls: null,
  cut: null,
  reason: null,
};

/** The usual value of each other member, by its name. Members that are not listed keep their value. */
const USUAL_OTHERS = {
  order: 0,
  at: 0,
  exportMs: null,
  againMs: null,
  ifBusy: 'queue',
  branch: null,
  how: 'follows',
  back: 0,
  nth: 0,
  of: 0,
  names: null,
  tag: null,
  chars: 0,
  repeats: false,
  via: null,
  form: 'image',
  body: 0,
  words: 1,
  final: true,
  afterMs: 0,
  approved: true,
  times: 1,
  fromEnd: false,
  pauseMs: 0,
  reads: null,
  life: 1,
  call: 1,
  keeps: 0,
  statement: 1,
  sync: 1,
  forMs: 0,
  byMs: 0,
  works: false,
};

/** The usual value of a member of a history, by its name; no two parts of a history use a name differently. */
export const USUAL: ReadonlyMap<string, unknown> = new Map(
  Object.entries({ ...USUAL_AGENT, ...USUAL_ATTEMPT, ...USUAL_ACTION, ...USUAL_GENERATION, ...USUAL_OTHERS }),
);
