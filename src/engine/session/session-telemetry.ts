/** What a session exports to a collector: its runs and their events, as its readers may see them (O1, O2). */
import { textOfContent, readContent } from '../../domain/content.ts';
import { journaledWhere } from '../../domain/event-table.ts';
import type { EventType, SessionEvent } from '../../domain/event.ts';
import { limits } from '../../domain/limits.ts';
import type { RunRecord, SessionRecord } from '../../domain/session.ts';
import type { Slices } from '../../domain/work.ts';
import type { Journal } from '../../journal/journal.ts';
import { OBSERVED_EVENTS } from '../../telemetry/observe.ts';
import type { ExportedRun } from '../../telemetry/project.ts';
import type { Sampling } from '../../telemetry/run-trace.ts';
import type { SpanContent } from '../../telemetry/spans.ts';
import type { OutgoingText } from './outgoing-text.ts';
import { traceOfRun } from './run-setup.ts';

interface Parts {
  readonly journal: Journal;
  readonly record: SessionRecord;
  readonly slices: Slices;
  readonly outgoing: () => OutgoingText;
}

export class SessionTelemetry {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The last event that may be exported. */
  get lastSeq(): number {
    return this.#parts.journal.syncedSeq;
  }

  /** Where the export begins in a session that has exported nothing: before what is open, else after everything. */
  get first(): number {
    const { journal } = this.#parts;
    return journal.ends.beforeOpen ?? journal.syncedSeq;
  }

  get hasOpen(): boolean {
    return this.#parts.journal.runs.open().length > 0;
  }

  /** Time of the first end after this event, epoch milliseconds; null: nothing has ended. */
  endAfter(seq: number): number | null {
    return this.#parts.journal.ends.firstAfter(seq);
  }

  /**
   * The runs with events above `after` up to `until`.
   *
   * @param sampling null: no traces are exported
   * @param hasContent whether spans may have texts
   */
  *runs(
    { after, until }: { readonly after: number; readonly until: number },
    sampling: Sampling | null,
    hasContent: boolean,
  ): Generator<ExportedRun> {
    const { journal, record } = this.#parts;
    for (const number of journal.ends.runsWithin(after, until)) {
      const stored = journal.runs.get(number);
      if (stored === null) continue;
      yield {
        run: {
          runId: stored.runId,
          sessionId: record.session_id,
          agent: record.workflow ?? record.agent,
          kind: record.workflow === undefined ? 'agent' : 'workflow',
          namespace: record.owner,
        },
        trace: traceOfRun({ sampling }, stored),
        content: hasContent ? this.#contentOf(stored) : null,
        events: this.#events(stored, until),
      };
    }
  }

  async *#events({ run, firstSeq }: RunRecord, until: number): AsyncGenerator<SessionEvent> {
    const { journal, slices } = this.#parts;
    for (let after = firstSeq - 1; after < until;) {
      const slice = journal.slice({ run, after, until, only: OBSERVED_EVENTS });
      yield* slice.found;
      after = slice.next;
      slices.count(slice.chars);
      if (slices.full) await slices.pause();
    }
  }

  /** The journal's events have been redacted; the message is redacted here. */
  #contentOf(run: RunRecord): SpanContent {
    const { journal, outgoing } = this.#parts;
    /** Parameters of the actions that have not ended, by iteration and id. */
    const parameters = new Map<string, string>();
    /** Of the event before. */
    let ended: string | null = null;
    return {
      see: (event) => {
        if (ended !== null) parameters.delete(ended);
        ended = null;
        if (event.action_id === undefined) return;
        const key = keyOf(event.iteration, event.action_id);
        if (event.type === 'action_queued') parameters.set(key, cut(JSON.stringify(event.data.parameters)));
        else if (ENDS.has(event.type)) ended = key;
      },
      error: (seq) => {
        const event = journal.event(seq);
        return event !== null && 'error' in event.data ? cut(messageIn(event.data.error)) : null;
      },
      attributes: (observed) => {
        if (observed.kind === 'attempt') {
          const ended = journal.event(observed.seq);
          return {
            'gen_ai.tool.call.arguments': parameters.get(keyOf(observed.iteration, observed.action.id)),
            'gen_ai.tool.call.result':
              ended?.type === 'action_completed' ? cut(JSON.stringify(ended.data.output)) : undefined,
          };
        }
        if (observed.kind !== 'run') return {};
        const event = journal.event(observed.seq);
        const asked = readContent(run.input['content']);
        const said = asked === null ? null : textOfContent(outgoing().content(asked));
        return {
          ...(said === null ? {} : { 'gen_ai.input.messages': messages('user', said) }),
          ...(event?.type === 'agent_completed'
            ? { 'gen_ai.output.messages': messages('assistant', event.data.response) }
            : {}),
        };
      },
    };
  }
}

const ENDS: ReadonlySet<EventType> = new Set<EventType>(journaledWhere(({ ends }) => ends === 'action'));

function keyOf(iteration: number, id: string): string {
  return `${iteration}/${id}`;
}

function messageIn(error: unknown): string {
  const { message } = error as { readonly message?: unknown };
  return typeof message === 'string' ? message : '';
}

/** In the form of the conventions. */
function messages(role: 'user' | 'assistant', text: string): string {
  return JSON.stringify([{ role, parts: [{ type: 'text', content: cut(text) }] }]);
}

function cut(text: string): string {
  const { telemetryContentChars: most } = limits;
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}
