/**
 * The collector of traces, which outlives the hosts, behind a network that takes time and fails as the history plans.
 *
 * Invariants:
 *  1. What a host has sent arrives, also after the end of the host.
 *  2. It is sent when everything that the host has written before is durable, as the platform guarantees.
 */
import type { Logger } from '../../../src/domain/log.ts';
import { objectNotes } from '../../../src/engine/session/object-notes.ts';
import type { Session } from '../../../src/engine/session/session.ts';
import { TelemetryOutbox } from '../../../src/telemetry/outbox.ts';
import type { SendResult, Signal } from '../../../src/telemetry/outbox.ts';
import { exportOf } from '../../../src/telemetry/project.ts';
import { EVERYTHING } from '../../support/otlp.ts';
import type { Fault } from '../history.ts';
import type { Exported } from '../observation.ts';
import type { Life } from './life.ts';
import type { Stage } from './stage.ts';

/** Slow, so that hosts end meanwhile. */
const ONE_WAY_MS = 60;
const RESOURCE = { 'service.name': 'test' };

export class WorldCollector {
  readonly received: Exported['received'][number][] = [];
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** As a host has it. */
  outboxOf(life: Life, session: Session, log: Logger): TelemetryOutbox {
    return new TelemetryOutbox({
      storage: objectNotes(() => session.notes, life.notes),
      clock: life.clock,
      journal: () => session.telemetry,
      read: ({ after, until, since }) => {
        const runs = session.telemetry?.runs({ after, until }, EVERYTHING, false) ?? [];
        return exportOf(runs, RESOURCE, { after, since });
      },
      send: (signal, body) => this.#take(life, signal, body),
      log,
    });
  }

  async #take(life: Life, signal: Signal, body: string): Promise<SendResult> {
    await life.gate();
    const { promise, resolve } = Promise.withResolvers<SendResult>();
    const { time } = this.#stage;
    time.after(ONE_WAY_MS, () => {
      const fault = this.#fault();
      const isLost = this.#stage.broken.losesSpans === true || fault?.loses === true;
      const isKept = signal === 'traces' && (fault === null || fault.works) && !isLost;
      if (isKept) this.received.push(...spanTexts([body]));
      const isAnswered = fault === null || fault.loses === true;
      time.after(ONE_WAY_MS, () =>
        resolve(isAnswered ? { type: 'sent' } : { type: 'failed', why: 'away', afterMs: null }),
      );
    });
    return await life.answered(promise);
  }

  #fault(): Extract<Fault, { type: 'collector' }> | null {
    const { history, time } = this.#stage;
    const now = history.faults.flatMap((fault) =>
      fault.type === 'collector' && fault.at <= time.now && time.now < fault.at + fault.forMs ? [fault] : [],
    );
    return now[0] ?? null;
  }
}

/** The spans in bodies of requests, as JSON. */
export function spanTexts(bodies: readonly string[]): { readonly spanId: string; readonly text: string }[] {
  return bodies.flatMap((body) => {
    const { resourceSpans = [] } = JSON.parse(body) as {
      resourceSpans?: { scopeSpans: { spans: { spanId: string }[] }[] }[];
    };
    const spans = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
    return spans.map((span) => ({ spanId: span.spanId, text: JSON.stringify(span) }));
  });
}
