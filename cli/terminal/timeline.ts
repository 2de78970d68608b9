/** A Gantt chart of a run: redrawn in place on a terminal, printed once otherwise. */
import pc from 'picocolors';
import type { SessionEvent } from '../../src/domain/event.ts';
import { actionLabel } from './action-label.ts';
import { visible } from './visible.ts';

interface Row {
  readonly id: string;
  readonly label: string;
  queuedAt: number;
  startedAt: number | null;
  endedAt: number | null;
  status: string;
}

const MARKS: Readonly<Record<string, (text: string) => string>> = {
  completed: pc.green,
  running: pc.yellow,
  failed: pc.red,
  rejected: pc.red,
  cancelled: pc.magenta,
  skipped: pc.gray,
};

export class Timeline {
  /** By iteration and id: an id may come again in a later iteration. */
  readonly #rows = new Map<string, Row>();
  readonly #labels: ReadonlyMap<string, string>;
  readonly #width: number;
  #drawnLines = 0;
  #startedAt: number | null = null;

  constructor(labels: ReadonlyMap<string, string>, width = 56) {
    this.#labels = labels;
    this.#width = width;
  }

  take(event: SessionEvent): void {
    if (event.type === 'agent_started') this.#startedAt = event.timestamp;
    const id = event.action_id;
    if (id === undefined) return;
    const key = `${event.iteration} ${id}`;
    // Ignore a rejected action whose id belongs to an accepted one.
    if (event.type === 'action_rejected' && this.#rows.has(key)) return;
    const row = this.#rows.get(key) ?? {
      id,
      label: this.#labels.get(id) ?? visible(actionLabel(id, event.action_name)),
      queuedAt: event.timestamp,
      startedAt: null,
      endedAt: null,
      status: 'queued',
    };
    this.#rows.set(key, row);
    if (event.type === 'action_started') {
      row.startedAt ??= event.timestamp;
      row.status = 'running';
    }
    const end = /^action_(completed|failed|skipped|cancelled|rejected)$/.exec(event.type)?.[1];
    if (end !== undefined) {
      row.endedAt = event.timestamp;
      row.status = end;
    }
  }

  /** The measured rows, in the order of declaration. */
  get rows(): readonly Readonly<Row>[] {
    return [...this.#rows.values()];
  }

  /** Replaces the previous drawing, if the output is a terminal. */
  redraw(now: number): void {
    if (!process.stdout.isTTY) return;
    if (this.#drawnLines > 0) process.stdout.write(`\u001b[${this.#drawnLines}A\u001b[J`);
    const text = this.render(now);
    this.#drawnLines = text.split('\n').length;
    process.stdout.write(`${text}\n`);
  }

  render(now: number): string {
    const start = this.#startedAt ?? now;
    const end = this.rows.reduce((latest, row) => Math.max(latest, row.endedAt ?? now), start + 1);
    const column = (at: number): number => Math.round(((at - start) / (end - start)) * this.#width);
    const labelWidth = this.rows.reduce((width, { label }) => Math.max(width, label.length), 8);
    const lines = this.rows.map((row) => {
      const color = MARKS[row.status] ?? pc.dim;
      const from = column(row.startedAt ?? now);
      const to = Math.max(from + 1, column(row.endedAt ?? now));
      const wait = '·'.repeat(Math.max(0, from - column(row.queuedAt)));
      const bar = row.startedAt === null ? '' : '█'.repeat(to - from);
      const ms = row.startedAt === null ? row.status : `${(row.endedAt ?? now) - row.startedAt} ms`;
      const body = `${' '.repeat(column(row.queuedAt))}${pc.dim(wait)}${color(bar)}`;
      const used = column(row.queuedAt) + wait.length + bar.length;
      return `  ${row.label.padEnd(labelWidth)} │${body}${' '.repeat(Math.max(0, this.#width - used))}│ ${color(ms)}`;
    });
    const axis = `  ${' '.repeat(labelWidth)} └${'─'.repeat(this.#width)}┘ ${end - start} ms`;
    return [...lines, axis].join('\n');
  }
}
