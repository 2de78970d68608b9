/**
 * Fault switches: one broken promise of a port each, and the invariant that must notice it. They show that the simulation
 * can fail. Faults of the code itself are the subject of `npm run test:mutation`.
 */
import type { SessionEvent } from '../../../src/domain/event.ts';
import { isTextPatch } from '../../../src/domain/event.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { ChatMessage, ModelRequest } from '../../../src/domain/ports/model.ts';
import { exportingHistoryOf } from '../exporting.ts';
import type { History } from '../history.ts';
import type { BrokenPorts } from '../world/broken-ports.ts';

export interface Switch {
  /** What is broken, as one sentence. */
  readonly name: string;
  /** The invariant that must notice it. */
  readonly invariant: string;
  /** Default: the usual histories. */
  readonly historyOf?: (seed: number) => History;
  /** For one history: some count. */
  readonly ports: () => BrokenPorts;
}

/** A table whose new rows are lost. */
function losing(table: string): () => BrokenPorts {
  const insert = new RegExp(`^\\s*INSERT (?:OR REPLACE )?INTO ${table}\\b`);
  return () => ({ writes: (text) => !insert.test(text) });
}

/** The session gets a definition that differs from that of the history. */
function defining(change: (agent: ResolvedAgent['agent']) => Partial<ResolvedAgent['agent']>): () => BrokenPorts {
  return () => ({ agent: (found) => ({ ...found, agent: { ...found.agent, ...change(found.agent) } }) });
}

/** The model gets other messages. */
function showing(change: (message: ChatMessage) => ChatMessage): () => BrokenPorts {
  const changed = ({ messages, ...rest }: ModelRequest): ModelRequest => ({ ...rest, messages: messages.map(change) });
  return () => ({ request: changed });
}

/** Readers get other events. */
function reading(change: (event: SessionEvent) => SessionEvent): () => BrokenPorts {
  return () => ({ event: change });
}

const CLIENT_RESULTS = /<action_result id="\w+" name="client"[^>]*>\n[^<]*\n<\/action_result>/g;
const EARLIER_MARK = /#m0#/g;

export const SWITCHES: readonly Switch[] = [
  // Storage
  {
    name: 'a crash loses what a sync has confirmed',
    invariant: 'unsafe once',
    ports: () => ({ sync: 'never' }),
  },
  {
    name: 'a sync is answered before the write is durable',
    invariant: 'recorded first',
    ports: () => ({ sync: 'early' }),
  },
  {
    name: 'the events of completed actions are not written',
    invariant: 'one end',
    ports: () => ({
      writes: (text, parameters) => !(text.startsWith('INSERT INTO events') && parameters.includes('action_completed')),
    }),
  },
  { name: 'inputs are not written', invariant: 'saved text', ports: losing('inputs') },
  { name: 'the parts of files are not written', invariant: 'files stored', ports: losing('blobs') },
  { name: 'the seeded history is not written', invariant: 'history first', ports: losing('seeded') },
  { name: 'received messages are not written', invariant: 'taken once', ports: losing('steered') },
  {
    name: 'nothing is ever deleted',
    invariant: 'bounded',
    ports: () => ({ writes: (text) => !/^\s*DELETE/.test(text) }),
  },
  { name: 'the prompts of runs are not written', invariant: 'same replay', ports: losing('prompts') },
  // Clock and platform
  {
    name: 'a timer that was cancelled counts on',
    invariant: 'parked is free',
    ports: () => ({ keepsTimers: true }),
  },
  { name: 'no alarm is set', invariant: 'everything ends', ports: () => ({ losesAlarm: true }) },
  {
    name: 'the clock goes back again and again',
    invariant: 'drawn run',
    ports: () => {
      let reads = 0;
      return { now: (ms) => ms - ((reads += 1) % 5) * 40 };
    },
  },
  {
    name: 'a session that is made again gets the ids of the earlier one',
    invariant: 'own answers',
    ports: () => ({ incarnation: () => 1 }),
  },
  // Catalogue
  {
    name: 'the definition allows one action more at once',
    invariant: 'within limits',
    ports: defining(({ loop }) => ({ loop: { ...loop, maxParallelActions: loop.maxParallelActions + 1 } })),
  },
  {
    name: 'the definition has lost its patterns',
    invariant: 'redacted',
    ports: defining(() => ({ redact: [] })),
  },
  // Executors and the runner
  {
    name: 'a call arrives with another parameter',
    invariant: 'judged first',
    ports: () => ({ call: (call) => ({ ...call, parameters: { ...call.parameters, another: true } }) }),
  },
  {
    name: 'a call arrives without its parameters',
    invariant: 'complete calls',
    ports: () => ({ call: (call) => ({ ...call, parameters: {} }) }),
  },
  {
    name: 'a call arrives without the answer to its question',
    invariant: 'answered once',
    ports: () => ({ call: ({ answer: _lost, ...call }) => call }),
  },
  {
    name: 'one of the files of a job does not arrive',
    invariant: 'kept files',
    ports: () => ({ left: (workspace) => ({ ...workspace, changes: workspace.changes.slice(1) }) }),
  },
  {
    name: 'reports about code tools are lost',
    invariant: 'reported tools',
    ports: () => ({ losesReports: true }),
  },
  // The model
  {
    name: 'the model does not write its dependencies',
    invariant: 'order',
    ports: () => ({ text: (text) => text.replaceAll(/"depends_on":\[[^\]]+\]/g, '"depends_on":[]') }),
  },
  {
    name: 'every generation seems to end by itself',
    invariant: 'nothing after the end',
    ports: () => ({ finish: () => 'stop' }),
  },
  {
    name: 'a lost connection to the model seems to be its end',
    invariant: 'whole answer',
    ports: () => ({ finish: (finish) => (finish === 'throws' ? 'stop' : finish) }),
  },
  {
    name: 'requests arrive without the results of clients',
    invariant: 'results shown',
    ports: showing((message) => ({ ...message, content: message.content.replaceAll(CLIENT_RESULTS, '') })),
  },
  {
    name: 'requests arrive without their files',
    invariant: 'images shown',
    ports: showing(({ attachments: _lost, ...message }) => message),
  },
  {
    name: 'requests arrive without the first message',
    invariant: 'own branch',
    ports: showing((message) => ({ ...message, content: message.content.replaceAll(EARLIER_MARK, '') })),
  },
  // Clients
  {
    name: 'a decision arrives as its opposite',
    invariant: 'approved first',
    ports: () => ({ decision: (approved) => !approved }),
  },
  {
    name: 'another result arrives than the client has sent',
    invariant: 'settled once',
    ports: () => ({ result: () => ({ output: 'another' }) }),
  },
  {
    name: 'the last events of a page of a fork do not arrive',
    invariant: 'whole fork',
    ports: () => ({ page: (page) => page.slice(0, -1) }),
  },
  // Streams
  {
    name: 'every third batch of events arrives twice',
    invariant: 'same events',
    ports: () => {
      let batches = 0;
      return { batch: (batch) => ((batches += 1) % 3 === 0 ? [...batch, ...batch] : batch) };
    },
  },
  {
    name: 'the second frame of a batch does not arrive',
    invariant: 'same compact events',
    ports: () => ({ compact: (frames) => frames.toSpliced(1, 1) }),
  },
  {
    name: 'every second patch of text does not arrive',
    invariant: 'folded text',
    ports: () => {
      let patches = 0;
      return { batch: (batch) => batch.filter((event) => !isTextPatch(event) || (patches += 1) % 2 === 0) };
    },
  },
  {
    name: 'a failed run is shown as completed',
    invariant: 'no false success',
    ports: reading((event) =>
      event.type === 'agent_failed'
        ? ({ ...event, type: 'agent_completed', data: { response: '', iterations: 1 } } as unknown as SessionEvent)
        : event,
    ),
  },
  {
    name: 'a piece of a stream of another protocol arrives twice',
    invariant: 'closed parts',
    ports: () => ({ pieces: (nth) => (nth === 2 ? 2 : 1) }),
  },
  {
    name: 'a piece of a stream of another protocol does not arrive',
    invariant: 'same message',
    ports: () => ({ pieces: (nth) => (nth === 2 ? 0 : 1) }),
  },
  // Other objects
  {
    name: 'the directory answers and keeps nothing',
    invariant: 'listed sessions',
    ports: () => ({ losesEntries: true }),
  },
  {
    name: 'the collector answers and keeps nothing',
    invariant: 'exported spans',
    historyOf: exportingHistoryOf,
    ports: () => ({ losesSpans: true }),
  },
];
