/** What a session exports to a collector: its runs and their events, as its readers may see them (O1, O2). */
import { textOfContent, readContent } from '../../domain/content.ts';
import type { SessionEvent } from '../../domain/event.ts';
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

  /** Where the export begins in a session that has exported nothing: before what is open, but after what a fork began with. */
  get first(): number {
    const { journal, record } = this.#parts;
    const [newest] = journal.runs.list(1);
    const isOlder = newest !== undefined && newest.startedAt < record.created_at;
    return isOlder ? (newest.lastSeq ?? journal.ends.beforeOpen) : journal.ends.beforeOpen;
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
   * @param hasContent whether spans may have texts
   */
  *runs(
    { after, until }: { readonly after: number; readonly until: number },
    sampling: Sampling,
    hasContent: boolean,
  ): Generator<ExportedRun> {
    const { journal, record } = this.#parts;
    for (const number of journal.ends.runsWithin(after, until)) {
      const stored = journal.runs.get(number);
      const trace = stored === null ? null : traceOfRun({ sampling }, stored);
      if (stored === null || trace === null) continue;
      yield {
        run: {
          runId: stored.runId,
          trace,
          sessionId: record.session_id,
          agent: record.workflow ?? record.agent,
          kind: record.workflow === undefined ? 'agent' : 'workflow',
          namespace: record.owner,
        },
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
    /** Parameters of the actions, by their ids. */
    const parameters = new Map<string, string>();
    return {
      see: (event) => {
        if (event.type === 'action_queued') parameters.set(event.action_id, cut(JSON.stringify(event.data.parameters)));
      },
      error: (seq) => {
        const event = journal.event(seq);
        return event !== null && 'error' in event.data ? cut(messageIn(event.data.error)) : null;
      },
      attributes: (observed) => {
        if (observed.kind === 'attempt') {
          const ended = journal.event(observed.seq);
          return {
            'gen_ai.tool.call.arguments': parameters.get(observed.action.id),
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
