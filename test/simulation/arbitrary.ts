/** Generates histories. Frequent values are harmless, so that most histories get far. */
import * as fc from 'fast-check';
import { ATTEMPT_ENDS, BRANCHES, CALL_FORMS, CALL_REPEATS, CUT_CAUSES, PROTOCOLS, STATEMENT_NAMES } from './history.ts';
import type {
  ActionScript,
  AgentSettings,
  AttemptEnd,
  AttemptScript,
  BranchScript,
  CallsScript,
  CutScript,
  DecisionScript,
  Fault,
  FileScript,
  GenerationScript,
  History,
  Item,
  MessageScript,
  Request,
  SeededScript,
  Target,
  ViaScript,
} from './history.ts';

/** The first value usually, otherwise one of the others. The first is also the simplest, for shrinking. */
function mostly<T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
}

/** Small numbers are frequent, because things that happen together find more. */
const moment = fc.oneof(
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 40 }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 400 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 8_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(60_000, 120_000) },
);

const duration = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(0, 1, 5, 10, 40) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
);

const attempt: fc.Arbitrary<AttemptScript> = fc.record({
  ms: duration,
  end: fc.oneof(
    { weight: 6, arbitrary: fc.constant('ok' as const) },
    // Questions: see below.
    { weight: 3, arbitrary: fc.constantFrom(...ATTEMPT_ENDS.filter((end) => end !== 'asks')) },
  ),
});

const places = (min: number, max: number, maxLength: number): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min, max }), { maxLength });

const action: fc.Arbitrary<ActionScript> = fc.record({
  target: fc.constantFrom('pure', 'unsafe', 'idempotent', 'unsafe', 'python', 'child', 'variable', 'late'),
  mode: fc.constantFrom('async', 'async', 'sync', 'fire_and_forget'),
  dependsOn: fc.option(
    fc.oneof({ weight: 5, arbitrary: places(-3, -1, 2) }, { weight: 1, arbitrary: places(-3, 3, 2) }),
    { freq: 2 },
  ),
  refers: mostly<readonly number[]>([], [-1], [-2], [-1, -2], [1]),
  when: mostly<boolean | null>(null, true, false),
  onError: mostly<'skip' | 'retry' | null>(null, 'skip', 'retry'),
  retries: mostly<number | null>(null, 1, 2, 4),
  timeoutS: mostly<number | null>(null, 1, 3),
  priority: mostly(0, 5, -5),
  key: mostly<number | null>(null, 0, 1, 1),
  attempts: fc.array(attempt, { minLength: 1, maxLength: 3 }),
});

const response: fc.Arbitrary<Item> = fc.record({
  type: fc.constant('response' as const),
  final: fc.constantFrom(true, true, false, null),
  refers: places(0, 3, 2),
});

const item: fc.Arbitrary<Item> = fc.oneof(
  { weight: 7, arbitrary: fc.record({ type: fc.constant('action' as const), action }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constantFrom('thought' as const, 'bare' as const),
      words: fc.integer({ min: 1, max: 120 }),
    }),
  },
  { weight: 2, arbitrary: response },
  { weight: 1, arbitrary: fc.constant({ type: 'broken' as const }) },
);

/** Endpoints, cuts and unknown reasons: see below. */
const PLAIN = { calls: fc.constant(null), cut: fc.constant(null), reason: fc.constant(null) };

const generation: fc.Arbitrary<GenerationScript> = fc
  .record({
    items: fc.array(item, { maxLength: 6 }),
    answer: fc.option(response, { freq: 2 }),
    finish: mostly<GenerationScript['finish']>('stop', 'stop', 'length', 'content_filter', 'error', 'throws', 'silent'),
    pieceChars: fc.constantFrom(1_000, 200, 40, 9, 9),
    gapMs: fc.constantFrom(0, 0, 1, 10, 200),
    reportsUsage: fc.boolean(),
    ...PLAIN,
  })
  .map(({ answer, items, ...rest }) => ({ ...rest, items: answer === null ? items : [...items, answer] }));

const message: fc.Arbitrary<MessageScript> = fc.record({
  type: mostly<MessageScript['type']>('message', 'text'),
  at: moment,
  ifBusy: mostly<MessageScript['ifBusy']>('queue', 'reject'),
  branch: fc.constant(null),
  repeats: mostly(false, true),
  via: fc.constant(null),
  files: fc.constant([]),
  generations: fc.array(generation, { minLength: 1, maxLength: 3 }),
});

const decision: fc.Arbitrary<DecisionScript> = fc.record({
  afterMs: fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 0, max: 500 }) },
    // Around and after the expiry.
    { weight: 1, arbitrary: fc.constantFrom(29_999, 30_000, 30_001, 90_000) },
  ),
  approved: fc.boolean(),
  times: mostly(1, 0, 2),
});

const request: fc.Arbitrary<Request> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      type: fc.constant('reader' as const),
      at: moment,
      fromEnd: fc.boolean(),
      pauseMs: mostly(0, 20, 300),
      reads: mostly<number | null>(null, 1, 3),
    }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('cancel' as const), at: moment }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('delete' as const),
      at: moment,
      exportMs: fc.constant(null),
      againMs: fc.constant(null),
    }),
  },
);

const keeps = fc.constantFrom(0, 1, 0.5);
const portCall = fc.oneof(
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 60 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 250 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 1_000 }) },
);
/** Later hosts exist only after earlier ones were lost. */
const life = fc.constantFrom(1, 1, 1, 2, 2, 2, 3, 3, 4, 5);

const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant('crash' as const), life, call: portCall, keeps }) },
  { weight: 5, arbitrary: fc.record({ type: fc.constant('eviction' as const), at: moment, keeps }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('write' as const),
      life,
      statement: fc.integer({ min: 20, max: 160 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('sync' as const),
      life,
      sync: fc.integer({ min: 1, max: 40 }),
      keeps,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('slow_disk' as const), at: moment, ms: fc.constantFrom(1, 20, 500) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('full_disk' as const),
      at: moment,
      forMs: fc.constantFrom(50, 1_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('clock' as const),
      at: moment,
      byMs: fc.constantFrom(-5_000, 5_000, 40_000, -600_000),
    }),
  },
);

const agent: fc.Arbitrary<AgentSettings> = fc.record({
  maxParallelActions: fc.constantFrom(5, 2, 1),
  maxIterations: fc.constantFrom(10, 3, 1),
  maxActions: mostly(2_000, 3, 6),
  modelCalls: mostly(100, 2, 4),
  seconds: mostly(3_600, 2, 20),
  failFast: mostly(false, true),
  supervised: mostly(false, true),
  policies: fc.constant(false),
  feed: mostly(false, true),
  expiryMs: mostly<number | null>(null, null, 60_000),
});

/** Long ones are stored in several rows. */
const seeded: fc.Arbitrary<SeededScript> = fc.record({
  type: fc.constantFrom('user', 'assistant', 'call'),
  words: mostly(1, 20, 60, 400),
});

const histories: fc.Arbitrary<History> = fc.record({
  order: fc.nat(),
  agent,
  messages: fc.oneof(
    { weight: 4, arbitrary: fc.array(message, { minLength: 1, maxLength: 3 }) },
    // More than the queue holds.
    { weight: 1, arbitrary: fc.array(message, { minLength: 4, maxLength: 6 }) },
  ),
  decisions: fc.array(decision, { maxLength: 3 }),
  requests: fc.array(request, { maxLength: 4 }),
  faults: fc.oneof(
    { weight: 1, arbitrary: fc.constant([]) },
    { weight: 4, arbitrary: fc.array(fault, { minLength: 1, maxLength: 4 }) },
    // A run whose hosts are lost again and again.
    { weight: 1, arbitrary: fc.array(fault, { minLength: 5, maxLength: 9 }) },
  ),
  // Last: what is generated before it stays the same for a seed.
  seeded: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(seeded, { minLength: 1, maxLength: 5 }) },
  ),
});

/** With a failure of the disk while the session is created, sometimes. */
const creations: fc.Arbitrary<History> = fc
  .tuple(
    histories,
    fc.option(
      fc.oneof(
        fc.record({
          type: fc.constant('write' as const),
          life: fc.constant(1),
          statement: fc.integer({ min: 1, max: 40 }),
        }),
        fc.record({
          type: fc.constant('crash' as const),
          life: fc.constant(1),
          call: fc.integer({ min: 1, max: 60 }),
          keeps,
        }),
      ),
      { freq: 2 },
    ),
  )
  .map(([history, failure]) =>
    failure === null || history.seeded.length === 0 ? history : { ...history, faults: [...history.faults, failure] },
  );

/** Sometimes, the client executes the actions of one target. What is generated before stays the same for a seed. */
const withClients: fc.Arbitrary<History> = fc
  .tuple(
    creations,
    fc.oneof(
      { weight: 2, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.constantFrom<Target>('pure', 'unsafe', 'idempotent') },
    ),
  )
  .map(([history, replaced]) =>
    replaced === null
      ? history
      : {
          ...history,
          messages: history.messages.map((sent) => ({
            ...sent,
            generations: sent.generations.map((one) => replacing(one, replaced, 'client')),
          })),
        },
  );

function replacing(script: GenerationScript, replaced: Target, target: Target): GenerationScript {
  const items = script.items.map((given) =>
    given.type === 'action' && given.action.target === replaced
      ? { ...given, action: { ...given.action, target } }
      : given,
  );
  return { ...script, items };
}

const file: fc.Arbitrary<FileScript> = fc.record({
  form: fc.oneof(
    { weight: 10, arbitrary: fc.constant('image' as const) },
    { weight: 6, arbitrary: fc.constant('text' as const) },
    { weight: 4, arbitrary: fc.constant('artifact' as const) },
    { weight: 1, arbitrary: fc.constantFrom<FileScript['form']>('large', 'false_type', 'unknown_artifact') },
  ),
  // Messages share files.
  body: fc.constantFrom(0, 0, 1, 1, 2, 3),
});

/** Messages with files. What is generated before stays the same for a seed. */
const withFiles: fc.Arbitrary<History> = fc
  .tuple(
    withClients,
    fc.array(
      fc.oneof(
        { weight: 1, arbitrary: fc.constant([]) },
        { weight: 1, arbitrary: fc.array(file, { minLength: 1, maxLength: 3 }) },
      ),
      { minLength: 6, maxLength: 6 },
    ),
  )
  .map(([history, files]) => ({
    ...history,
    messages: history.messages.map((sent, index) =>
      sent.type === 'message' ? { ...sent, files: files[index] ?? [] } : sent,
    ),
  }));

/** Sometimes, the session is deleted and made again. What is generated before stays the same for a seed. */
const withAgain: fc.Arbitrary<History> = fc
  .tuple(
    withFiles,
    fc.oneof(
      { weight: 4, arbitrary: fc.constant([]) },
      {
        weight: 1,
        arbitrary: fc.array(
          fc.record({
            type: fc.constant('delete' as const),
            at: moment,
            exportMs: mostly<number | null>(null, 0, 5, 60, 1_000),
            againMs: fc.constantFrom(0, 0, 1, 10, 200, 5_000),
          }),
          { minLength: 1, maxLength: 3 },
        ),
      },
    ),
    // Clients that delete the session together.
    fc.option(fc.constantFrom(0, 1, 5), { freq: 2 }),
  )
  .map(([history, [first, ...further], laterMs]) => {
    if (first === undefined) return history;
    const together = further.map((one) => (laterMs === null ? one : { ...one, at: first.at + laterMs }));
    return { ...history, requests: [...history.requests, first, ...together] };
  });

const via: fc.Arbitrary<ViaScript> = fc.record({
  protocol: fc.constantFrom(...PROTOCOLS),
  reads: fc.constantFrom(null, 1, 2, 3, 5, 8),
  pauseMs: mostly(0, 20, 300),
});

/** Messages of other protocols. What is generated before stays the same for a seed. */
const withProtocols: fc.Arbitrary<History> = fc
  .tuple(
    withAgain,
    fc.array(fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: via }), {
      minLength: 6,
      maxLength: 6,
    }),
    // What the run asks of them.
    fc.record({
      replaced: fc.constantFrom<Target | null>(null, 'pure', 'unsafe'),
      supervised: mostly(false, true),
    }),
  )
  .map(([history, clients, asks]) => {
    const messages = history.messages.map((sent, index) =>
      sent.type === 'message' ? { ...sent, ...viaOf(clients[index] ?? null, sent, asks.replaced) } : sent,
    );
    const isAsked = asks.supervised && messages.some((sent) => sent.via !== null);
    return { ...history, messages, ...(isAsked ? { agent: { ...history.agent, supervised: true } } : {}) };
  });

/** These clients neither send files nor ask to be rejected. */
function viaOf(client: ViaScript | null, sent: MessageScript, replaced: Target | null): Partial<MessageScript> {
  if (client === null || sent.files.length > 0 || sent.ifBusy === 'reject') return {};
  const { generations } = sent;
  return {
    via: client,
    generations: replaced === null ? generations : generations.map((one) => replacing(one, replaced, 'client')),
  };
}

const indexFault: fc.Arbitrary<Fault> = fc.record({
  type: fc.constant('index' as const),
  at: moment,
  forMs: fc.constantFrom(0, 0, 5, 50, 1_000, 20_000, 600_000, 3_600_000, 7_200_000),
  works: fc.boolean(),
});

/** Sometimes, the session is listed in an index. What is generated before stays the same for a seed. */
const withIndex: fc.Arbitrary<History> = fc
  .tuple(
    withProtocols,
    fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(indexFault, { minLength: 1, maxLength: 3 }) },
    ),
  )
  .map(([history, faults]) => (faults.length === 0 ? history : { ...history, faults: [...history.faults, ...faults] }));

const branch: fc.Arbitrary<BranchScript> = fc.record({
  how: fc.constantFrom(...BRANCHES),
  back: mostly(0, 0, 1, 2),
  nth: mostly(0, 1),
});

/** A generation with actions, so that a further one follows it. */
const working: fc.Arbitrary<GenerationScript> = fc
  .record({
    actions: fc.array(action, { minLength: 1, maxLength: 2 }),
    recalls: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 2 }),
    gapMs: fc.constantFrom(0, 1, 10),
  })
  .map(({ actions, recalls, gapMs }) => ({
    items: [
      ...actions.map((one) => ({ type: 'action' as const, action: one })),
      ...recalls.map((of) => ({ type: 'recall' as const, of })),
    ],
    finish: 'stop',
    pieceChars: 1_000,
    gapMs,
    reportsUsage: false,
    calls: null,
    cut: null,
    reason: null,
  }));

/** Often while the first messages are answered, so that there is a run that is active. */
const later = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 120 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 1_000 }) },
  { weight: 1, arbitrary: moment },
);

const further: fc.Arbitrary<MessageScript> = fc.record({
  type: fc.constant('message' as const),
  at: later,
  ifBusy: fc.constantFrom<MessageScript['ifBusy']>('queue', 'steer', 'steer'),
  branch: fc.option(branch, { freq: 3 }),
  repeats: mostly(false, true),
  via: fc.constant(null),
  files: fc.oneof(
    { weight: 5, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(file, { minLength: 1, maxLength: 2 }) },
  ),
  generations: fc.array(working, { minLength: 1, maxLength: 2 }),
});

/**
 * In a quarter of the histories, further messages with a place of their own in the tree of runs, messages for active runs, and
 * moves of the head. What is generated before stays the same for a seed.
 */
const withBranches: fc.Arbitrary<History> = fc
  .tuple(
    withIndex,
    fc.oneof(
      { weight: 3, arbitrary: fc.constant(null) },
      {
        weight: 1,
        arbitrary: fc.record({
          messages: fc.array(further, { minLength: 1, maxLength: 4 }),
          heads: fc.array(
            fc.record({ type: fc.constant('head' as const), at: later, back: fc.integer({ min: 0, max: 2 }) }),
            { maxLength: 2 },
          ),
          isSteered: fc.boolean(),
        }),
      },
    ),
  )
  .map(([history, more]) => {
    if (more === null) return history;
    const messages = history.messages.map((sent) =>
      more.isSteered && sent.type === 'message' && sent.via === null ? { ...sent, ifBusy: 'steer' as const } : sent,
    );
    return {
      ...history,
      messages: [...messages, ...more.messages.map(placed)],
      requests: [...history.requests, ...more.heads],
    };
  });

/** A message for an active run has no place of its own. Retries and actions that run again have no files. */
function placed(sent: MessageScript): MessageScript {
  if (sent.branch === null) return sent;
  const { how } = sent.branch;
  const files = how === 'retry' || how === 'rerun' ? [] : sent.files;
  return { ...sent, files, ifBusy: sent.ifBusy === 'steer' ? 'queue' : sent.ifBusy };
}

/** In some histories, forks of the session. What is generated before stays the same for a seed. */
const withForks: fc.Arbitrary<History> = fc
  .tuple(
    withBranches,
    fc.oneof(
      { weight: 5, arbitrary: fc.constant([]) },
      {
        weight: 1,
        arbitrary: fc.array(
          fc.record({ type: fc.constant('fork' as const), at: moment, back: fc.integer({ min: 0, max: 2 }) }),
          { minLength: 1, maxLength: 2 },
        ),
      },
    ),
  )
  .map(([history, forks]) =>
    forks.length === 0 ? history : { ...history, requests: [...history.requests, ...forks] },
  );

/** In some histories, code tools of the project. What is generated before stays the same for a seed. */
const withCodeTools: fc.Arbitrary<History> = fc
  .tuple(
    withForks,
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.constantFrom<Target>('unsafe', 'late', 'pure') },
    ),
  )
  .map(([history, replaced]) => {
    if (replaced === null) return history;
    const messages = history.messages.map((sent) => ({
      ...sent,
      generations: sent.generations.map((one) => replacing(one, replaced, 'code')),
    }));
    return { ...history, messages };
  });

/** Tools whose attempts may ask. */
const ASKERS: ReadonlySet<Target> = new Set<Target>(['pure', 'idempotent', 'unsafe', 'late']);

/** In some histories, tools ask people instead of ending in one of the ways. What is generated before stays the same for a seed. */
const withQuestions: fc.Arbitrary<History> = fc
  .tuple(
    withCodeTools,
    fc.oneof(
      { weight: 3, arbitrary: fc.constant(null) },
      {
        weight: 1,
        arbitrary: fc.record({
          replaced: fc.constantFrom<AttemptEnd>('fails', 'refuses', 'unreached', 'throws', 'lost', 'ok'),
          // The attempts after those that the script has.
          last: fc.constantFrom<AttemptEnd>('ok', 'ok', 'fails', 'asks'),
          // Long ones are interrupted by crashes.
          ms: fc.constantFrom(1, 40, 400),
        }),
      },
    ),
  )
  .map(([history, asks]) => {
    if (asks === null) return history;
    const asking = ({ target, attempts, ...rest }: ActionScript): ActionScript => {
      const asked = attempts.map((one) => (one.end === asks.replaced ? { ...one, end: 'asks' as const } : one));
      const isChanged = ASKERS.has(target) && asked.some(({ end }) => end === 'asks');
      return { ...rest, target, attempts: isChanged ? [...asked, { ms: asks.ms, end: asks.last }] : attempts };
    };
    const messages = history.messages.map((sent) => ({
      ...sent,
      generations: sent.generations.map((one) => ({
        ...one,
        items: one.items.map((given) => (given.type === 'action' ? { ...given, action: asking(given.action) } : given)),
      })),
    }));
    return { ...history, messages };
  });

/** In some histories, the agent has policies. What is generated before stays the same for a seed. */
const withPolicies: fc.Arbitrary<History> = fc
  .tuple(
    withQuestions,
    fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 2, arbitrary: fc.constant(true) }),
  )
  .map(([history, policies]) => (policies ? { ...history, agent: { ...history.agent, policies } } : history));

const cut: fc.Arbitrary<CutScript> = fc.record({
  tag: fc.constantFrom(0, 1, 2, 3, 1, 2, null),
  chars: fc.nat(400),
  // Text is saved after 150 ms, and at the latest after 600 ms (small-limits.ts).
  pauseMs: fc.constantFrom(200, 0, 800),
  cause: fc.constantFrom(...CUT_CAUSES, 'host', 'host'),
  keeps: fc.constantFrom(1, 1, 0.5, 0),
});

/** One of the generations that the model writes. */
type Changed = Partial<Pick<GenerationScript, 'cut' | 'reason' | 'calls' | 'items'>>;

function withGenerations(history: History, change: (script: GenerationScript, place: number) => Changed): History {
  let place = 0;
  const messages = history.messages.map((sent) => ({
    ...sent,
    generations: sent.generations.map((script, call) =>
      sent.type === 'text' && call === 0 ? script : { ...script, ...change(script, place++) },
    ),
  }));
  return { ...history, messages };
}

const written = (history: History): number =>
  history.messages.reduce((sum, { type, generations }) => sum + generations.length - (type === 'text' ? 1 : 0), 0);

/** In some histories, generations are cut off at any character. What is generated before stays the same for a seed. */
const withCuts: fc.Arbitrary<History> = fc
  .tuple(
    withPolicies,
    fc.oneof(
      { weight: 3, arbitrary: fc.constant(null) },
      {
        weight: 1,
        arbitrary: fc.record({
          cuts: fc.array(fc.record({ nth: fc.nat(5), cut }), { minLength: 1, maxLength: 3 }),
          // A thought before it, so that nothing but the tag is bare text.
          isThoughtFirst: fc.boolean(),
        }),
      },
    ),
  )
  .map(([history, given]) => {
    const count = written(history);
    if (given === null || count === 0) return history;
    return withGenerations(history, ({ items }, place) => {
      const found = given.cuts.find(({ nth }) => nth % count === place);
      if (found === undefined) return {};
      const isFirst = given.isThoughtFirst && items.length > 0;
      return { cut: found.cut, items: isFirst ? [{ type: 'thought', words: 1 }, ...items] : items };
    });
  });

const calls: fc.Arbitrary<CallsScript> = fc.record({
  written: fc.constantFrom(...CALL_FORMS),
  repeats: fc.constantFrom(...CALL_REPEATS),
});

const CALLED: ReadonlySet<Target> = new Set<Target>(['pure', 'unsafe', 'late', 'python', 'variable', 'code']);

/** A call has a name and parameters, and nothing else. Clients and files have forms of protocol text. */
function called({ target, attempts }: ActionScript): ActionScript {
  return {
    target: CALLED.has(target) ? target : 'unsafe',
    mode: 'async',
    dependsOn: null,
    refers: [],
    when: null,
    onError: null,
    retries: null,
    timeoutS: null,
    priority: 0,
    key: null,
    attempts,
  };
}

/** In some histories, actions are function calls of an endpoint. What is generated before stays the same for a seed. */
const withCalls: fc.Arbitrary<History> = fc
  .tuple(
    withCuts,
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.record({ calls, places: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }) }) },
    ),
  )
  .map(([history, given]) => {
    if (given === null) return history;
    return withGenerations(history, ({ items }, place) => {
      const hasActions = items.some(({ type }) => type === 'action');
      if (!hasActions || (place > 0 && given.places[place % given.places.length] === true)) return {};
      const kept = items.flatMap((one): Item[] => {
        if (one.type === 'action') return [{ ...one, action: called(one.action) }];
        if (one.type === 'broken' || one.type === 'recall') return [];
        return [one.type === 'response' ? { ...one, refers: [] } : one];
      });
      return { calls: given.calls, items: kept };
    });
  });

/** Finish reasons that are not known. */
const REASONS = ['malformed_function_call', 'repetition', 'engine_overloaded', 'unspecified'] as const;

/** In some histories, generations end with a reason that is not known. What is generated before stays the same for a seed. */
const withReasons: fc.Arbitrary<History> = fc
  .tuple(
    withCalls,
    fc.oneof(
      { weight: 7, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.record({ nth: fc.nat(3), reason: fc.constantFrom(...REASONS) }) },
    ),
  )
  .map(([history, given]) => {
    const count = written(history);
    if (given === null || count === 0) return history;
    return withGenerations(history, (_, place) => (given.nth % count === place ? { reason: given.reason } : {}));
  });

const statement: fc.Arbitrary<Fault> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('statement' as const),
      in: fc.constant('session' as const),
      does: fc.constant('write' as const),
      names: fc.constant(null),
      statement: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 250 })),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('statement' as const),
      in: fc.constant('session' as const),
      does: fc.constant('write' as const),
      // The frequent ones first.
      names: fc.oneof(
        {
          weight: 1,
          arbitrary: fc.constantFrom(...STATEMENT_NAMES.slice(0, 6), 'transaction' as const, 'alarm' as const),
        },
        { weight: 1, arbitrary: fc.constantFrom(...STATEMENT_NAMES) },
      ),
      statement: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 30 })),
    }),
  },
);

const statementOf = (where: 'fork' | 'index', does: 'write' | 'read', most: number): fc.Arbitrary<Fault> =>
  fc.record({
    type: fc.constant('statement' as const),
    in: fc.constant(where),
    does: fc.constant(does),
    names: fc.constant(null),
    statement: fc.integer({ min: 1, max: most }),
  });

/** In some histories, single statements fail. What is generated before stays the same for a seed. */
const withStatements: fc.Arbitrary<History> = fc
  .tuple(
    withReasons,
    fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(statement, { minLength: 1, maxLength: 2 }) },
    ),
    fc.record({
      further: fc.option(
        fc.record({ type: fc.constant('fork' as const), at: moment, back: fc.integer({ min: 0, max: 2 }) }),
        { freq: 3 },
      ),
      faults: fc.array(fc.oneof(statementOf('fork', 'write', 30), statementOf('fork', 'read', 30)), {
        minLength: 1,
        maxLength: 2,
      }),
    }),
    fc.option(statementOf('index', 'write', 12), { freq: 2 }),
  )
  .map(([history, faults, fork, ofIndex]) => {
    // Where statements fail, more sessions are forked.
    const forks = faults.length > 0 && fork.further !== null ? [fork.further] : [];
    const requests = [...history.requests, ...forks];
    const hasForks = requests.some(({ type }) => type === 'fork');
    const hasIndex = history.faults.some(({ type }) => type === 'index');
    const more = [...faults, ...(hasForks ? fork.faults : []), ...(hasIndex && ofIndex !== null ? [ofIndex] : [])];
    return more.length === 0 ? history : { ...history, requests, faults: [...history.faults, ...more] };
  });

/** The history of a seed: always the same for the same generator. */
export function historyOf(seed: number): History {
  const [history] = fc.sample(withStatements, { seed, numRuns: 1 });
  if (history === undefined) throw new Error('no history was generated');
  return history;
}
