/**
 * One run in this page: its events and what is folded from them.
 *
 * Invariants:
 *  1. Each journaled event is applied once, in order, wherever it came from.
 *  2. `version` changes at most once per frame, after everything that it announces.
 */
import { signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import { hasEnded } from '../../src/client/index.ts';
import type { EventOf, Message, SessionEvent } from '../../src/client/index.ts';
import { Trace } from '../run/trace.ts';
import { steeredBy } from './steered.ts';
import type { Steered } from './steered.ts';

export class RunModel {
  readonly id: string;
  /** The journaled events, in order: what the scrubber replays. */
  readonly events: SessionEvent[] = [];
  /** The live state of the run view. */
  readonly trace: Trace;
  /** Messages that were sent into it. */
  #steered: readonly Steered[] = [];
  readonly #version = signal(0);
  #started: EventOf<'agent_started'> | null = null;
  #isWhole = false;

  constructor(id: string) {
    this.id = id;
    this.trace = new Trace(id);
  }

  /** Read it to be called again after events; then read the rest. */
  get version(): ReadonlySignal<number> {
    return this.#version;
  }

  get message(): Message {
    return this.trace.message;
  }

  /** Its first event; null before. */
  get started(): EventOf<'agent_started'> | null {
    return this.#started;
  }

  /** Messages that were sent into it: those that the model has seen, or may still see. */
  get steered(): readonly Steered[] {
    const last = this.trace.iterations.at(-1)?.iteration ?? 0;
    return this.hasEnded ? this.#steered.filter(({ iteration }) => iteration < last) : this.#steered;
  }

  get hasEnded(): boolean {
    return hasEnded(this.trace.message);
  }

  /** Whether no earlier event is missing: it is followed from its first event on, or has been loaded. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  complete(): void {
    this.#isWhole = true;
    announce(this);
  }

  apply(event: SessionEvent): void {
    if (event.seq !== null) {
      if (event.seq <= (this.events.at(-1)?.seq ?? 0)) return;
      this.events.push(event);
    }
    if (event.type === 'agent_started') this.#started = event;
    const steered = steeredBy(event);
    if (steered !== null) this.#steered = [...this.#steered, steered];
    this.trace.apply(event);
    announce(this);
  }

  /** Use `announce`. */
  changed(): void {
    this.#version.value += 1;
  }
}

const waiting = new Set<RunModel>();

/** Tells those who show the run in the next frame, or soon if the page is hidden and has no frames. */
function announce(run: RunModel): void {
  waiting.add(run);
  if (waiting.size > 1) return;
  let isDone = false;
  const tell = (): void => {
    if (isDone) return;
    isDone = true;
    const runs = [...waiting];
    waiting.clear();
    for (const each of runs) each.changed();
  };
  requestAnimationFrame(tell);
  setTimeout(tell, 100);
}
