/** The section "Load" of docs/benchmarks.md. */
import { percentile, table } from '../report.ts';
import { BARE, OURS } from './client.ts';
import type { Subject } from './client.ts';
import type { Memory, SessionMemory } from './memory.ts';
import type { LoadOptions } from './options.ts';
import { BOUNDS } from './ramp.ts';
import type { Stage } from './ramp.ts';
import { ANSWER_MS, SCRIPT } from './script.ts';
import type { Wake } from './wake.ts';

/** Memory of an isolate in production, in KiB. */
const ISOLATE_KB = 128 * 1_024;
/** Target for an idle session with a reader, in KiB of resident memory. */
const IDLE_TARGET_KB = 350;

export interface Measured {
  readonly options: LoadOptions;
  readonly memory: ReadonlyMap<Subject, SessionMemory>;
  readonly wakes: readonly Wake[];
  readonly stages: ReadonlyMap<Subject, readonly Stage[]>;
}

const ms = (samples: readonly number[], share: number): string =>
  samples.length === 0 ? '' : `${percentile(samples, share).toFixed(1)} ms`;
const kib = ({ resident, heap }: Memory): string => `${resident.toFixed(0)} (${heap.toFixed(0)})`;

/** Live sessions of the largest stage within all bounds; 0: none was. */
function carried(stages: readonly Stage[]): number {
  return Math.max(0, ...stages.filter(({ exceeded }) => exceeded === null).map(({ sessions }) => sessions));
}

export function report({ options, memory, wakes, stages }: Measured): string {
  const seconds = (value: number): string => (value / 1_000).toFixed(0);
  const found = memory.get(OURS);
  const idleKb = found?.idle;
  return `A live session is a conversation with a turn every ${options.intervalSeconds} s on average. A turn streams ${SCRIPT.words} words in ${seconds(ANSWER_MS)} s, and every ${SCRIPT.callEvery}th turn of
Cortex Edge first calls an HTTP tool. The times of the messages do not depend on the answers (open loop), and each turn is measured from
its planned time, so a queue counts. Model and tool run in their own process, the load generator in another one, and everything
shares the machine. The bare object forwards the same words and stores nothing.

${[OURS, BARE].map((subject) => rampOf(subject, stages.get(subject) ?? [], options.intervalSeconds * 1_000)).join('\n\n')}

The ramp ends at the first stage whose 99th percentile of the first byte exceeds ${options.p99Ms} ms, in which a turn fails, in which workerd
uses more than ${(BOUNDS.core * 100).toFixed(0)}% of a core (it runs all objects in one thread), or in which less than ${(BOUNDS.freeMemory * 100).toFixed(0)}% of the memory is free; one more
stage is half-way to it. "Machine" is the use of all cores by all processes.
"Sessions per core" is the number of live sessions whose turns would use one core completely.

### Memory for a session

Resident memory of workerd for each of ${options.memory} sessions in KiB, after a garbage collection; in parentheses the JavaScript heap of it. Each
subject has its own workerd. The rest of the resident memory is outside of JavaScript: SQLite, connections, streams.

${table(
  ['', 'created', 'reader connected', 'idle after a turn, reader connected', 'running', 'evicted'],
  [OURS, BARE].map((subject) => {
    const found = memory.get(subject);
    if (found === undefined) return [subject.name];
    return [subject.name, kib(found.fresh), kib(found.opened), kib(found.idle), kib(found.running), kib(found.evicted)];
  }),
)}

Target: at most ${IDLE_TARGET_KB} KiB for a session with a connected reader: **${(found?.opened.resident ?? Infinity) <= IDLE_TARGET_KB ? 'met' : 'missed'}**. An isolate has 128 MB in production, which is ${Math.floor(ISOLATE_KB / (idleKb?.heap ?? Number.NaN)).toLocaleString('en')} idle sessions by
their JavaScript heap.

### A turn on a waking object

Time from the message to the first text of the answer. Cold: the platform has evicted the object${options.evictSeconds === 0 ? ' (not in this run)' : `, ${options.evictSeconds} s without a request`}; warm: the next
turn. ${options.cold} sessions for each row, which take turns.

${table(
  ['', 'turns before', 'cold p50', 'cold p95', 'warm p50', 'cold − warm', 'cold, relative to the bare object'],
  wakes.map(({ subject, turns, coldMs, warmMs }) => {
    const bare = wakes.find((wake) => wake.subject === BARE)?.coldMs ?? [];
    return [
      subject.name,
      String(turns),
      ms(coldMs, 0.5),
      ms(coldMs, 0.95),
      ms(warmMs, 0.5),
      `${(percentile(coldMs, 0.5) - percentile(warmMs, 0.5)).toFixed(1)} ms`,
      `${(percentile(coldMs, 0.5) / percentile(bare, 0.5)).toFixed(2)} ×`,
    ];
  }),
)}`;
}

function rampOf(subject: Subject, stages: readonly Stage[], intervalMs: number): string {
  const last = stages.at(-1);
  const most = carried(stages);
  const held = stages.find(({ sessions }) => sessions === most);
  const perCore = held === undefined ? '0' : (intervalMs / held.cpuMsPerTurn).toFixed(0);
  const end = last?.exceeded ?? 'the largest stage; no bound was exceeded';
  return `### ${subject.name}: ${most} live sessions

${table(
  [
    'live sessions',
    'turns',
    'first byte p50',
    'p99',
    'dispatch p50',
    'p99',
    'generator late p99',
    'CPU per turn',
    'sessions per core',
    'workerd, of a core',
    'machine',
    'memory per session',
  ],
  stages.map((stage) => [
    String(stage.sessions),
    String(stage.turns),
    ms(stage.firstMs, 0.5),
    ms(stage.firstMs, 0.99),
    ms(stage.dispatchMs, 0.5),
    ms(stage.dispatchMs, 0.99),
    ms(stage.lateMs, 0.99),
    `${stage.cpuMsPerTurn.toFixed(1)} ms`,
    (intervalMs / stage.cpuMsPerTurn).toFixed(0),
    `${(stage.core * 100).toFixed(0)}%`,
    `${(stage.machine * 100).toFixed(0)}%`,
    `${stage.residentKb.toFixed(0)} KiB`,
  ]),
)}

Largest stage within all bounds: **${most} live sessions** (${perCore} per core). End of the ramp: ${end}.`;
}
