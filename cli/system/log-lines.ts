/** Converts entries of the Worker's log to lines for people: one per entry, with the time (X5, src/domain/log.ts). */
import pc from 'picocolors';
import { LOG_EVENTS } from '../../src/domain/log.ts';
import type { LogEvent, LogFields, LogLevel } from '../../src/domain/log.ts';
import { visible } from '../terminal/visible.ts';

interface Entry extends Omit<LogFields, 'fault'> {
  readonly level: LogLevel;
  readonly event: LogEvent;
  readonly count?: number;
  readonly stack?: string;
}

const COLOURS = { info: pc.green, warn: pc.yellow, error: pc.red } as const;

export class LogLines {
  readonly #now: () => Date;
  #isStarting: boolean;
  /** Runners whose silence was shown. */
  readonly #silent = new Set<string>();

  /** @param isStarting until `started`, a runner that does not answer yet is not shown */
  constructor(now: () => Date = () => new Date(), isStarting = false) {
    this.#now = now;
    this.#isStarting = isStarting;
  }

  started(): void {
    this.#isStarting = false;
  }

  /**
   * @param line a line of the Worker's output; `wrangler dev` puts a label before an entry
   * @returns undefined if the line is not a log entry; null if the entry is not printed
   */
  read(line: string): string | null | undefined {
    const entry = entryOf(line);
    if (entry === null) return undefined;
    if (!this.#isShown(entry)) return null;
    const at = this.#now().toTimeString().slice(0, 8);
    const repeats = entry.count === undefined ? '' : ` (${entry.count} times)`;
    return COLOURS[entry.level](`${at} ${visible(textOf(entry))}${repeats}`);
  }

  #isShown({ event, runner = '' }: Entry): boolean {
    if (event === 'runner_unreachable') {
      if (!this.#isStarting) this.#silent.add(runner);
      return !this.#isStarting;
    }
    return event !== 'runner_reachable' || this.#silent.delete(runner);
  }
}

function entryOf(line: string): Entry | null {
  const from = line.indexOf('{"level":"');
  if (from < 0) return null;
  try {
    const entry = JSON.parse(line.slice(from, line.lastIndexOf('}') + 1)) as Entry;
    return Object.hasOwn(LOG_EVENTS, entry.event) && Object.hasOwn(COLOURS, entry.level) ? entry : null;
  } catch {
    return null;
  }
}

function textOf({
  event,
  code,
  message = '',
  agent,
  workflow,
  run_id: run,
  session_id: session,
  ...rest
}: Entry): string {
  const what = [code, message].filter((part) => part !== undefined && part !== '').join(': ');
  const whose = workflow === undefined ? `agent ${agent ?? 'unknown'}` : `workflow ${workflow}`;
  switch (event) {
    case 'run_failed':
      return `run failed: ${whose}, ${run ?? ''}: ${what}`;
    case 'summary_failed':
      return `summary failed: ${whose}, ${run ?? ''}: ${what}`;
    case 'telemetry_dropped':
      return `telemetry dropped: ${message}`;
    case 'schedule_failed':
      return `schedule failed: ${whose}: ${what}`;
    case 'webhook_refused':
      return `webhook refused: ${workflow === undefined ? '' : `${whose}: `}${what}`;
    case 'setting_invalid':
      return `invalid setting: ${message}`;
    case 'runner_unreachable':
      return `runner unreachable: ${rest.runner ?? ''}: ${message}`;
    case 'runner_reachable':
      return `runner reachable: ${rest.runner ?? ''}: ${message}`;
    case 'work_quarantined':
      return message;
    case 'request_failed':
      return `request failed: ${rest.method ?? ''} ${rest.path ?? ''}: ${what}`;
    case 'internal_error': {
      const where = rest.path === undefined ? (session ?? 'no session') : `${rest.method ?? ''} ${rest.path}`;
      const frame = rest.stack
        ?.split('\n')
        .find((row) => row.trim().startsWith('at '))
        ?.trim();
      return `internal error: ${where}: ${what}${frame === undefined ? '' : ` (${frame})`}`;
    }
  }
}
