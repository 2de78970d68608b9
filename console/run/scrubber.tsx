/** Replays a run: a slider over its journaled events. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { SessionEvent } from '../../src/client/index.ts';
import { offset } from './describe.ts';
import { play } from './replay.ts';

const FRAME_MS = 33;

/** @param seq number of the last event that is shown; null: all. @param sinceMs milliseconds since it happened */
export type ShowMoment = (seq: number | null, sinceMs?: number) => void;

interface ScrubberProps {
  /** At least two: a slider that cannot move is not drawn. */
  readonly events: readonly SessionEvent[];
  /** Of the event that is shown. */
  readonly position: number;
  /** Whether all events are shown, also those to come. */
  readonly isAtEnd: boolean;
  readonly isLive: boolean;
  readonly show: ShowMoment;
}

export function Scrubber({ events, position, isAtEnd, isLive, show }: ScrubberProps) {
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const last = events.length - 1;
  const current = events[position];
  const since = offset((current?.timestamp ?? 0) - (events[0]?.timestamp ?? 0));
  const what = `${current?.type ?? ''} ${current?.action_id ?? ''}`;

  /** Shows the event at a position; at the last one, also those to come. */
  const moveTo = (to: number, sinceMs = 0): void => {
    if (to >= last) setPlaying(false);
    show(to >= last ? null : (events[to]?.seq ?? null), sinceMs);
  };
  const latest = useRef({ position, moveTo });
  latest.current = { position, moveTo };
  useEffect(() => {
    if (!isPlaying) return undefined;
    let restMs = 0;
    let before = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      const next = play(events, latest.current.position, restMs + (now - before) * speed);
      before = now;
      restMs = next.restMs;
      latest.current.moveTo(next.position, restMs);
    }, FRAME_MS);
    return () => clearInterval(timer);
  }, [isPlaying, speed, events]);

  return (
    <div class="scrubber" role="group" aria-label="Replay">
      <button
        type="button"
        class="small"
        onClick={() => {
          if (!isPlaying && position >= last) moveTo(0);
          setPlaying(!isPlaying);
        }}
      >
        <span aria-hidden="true">{isPlaying ? '❚❚' : '▶'}</span> {isPlaying ? 'Pause' : 'Play'}
      </button>
      <button
        type="button"
        class="small plain"
        aria-label={`Speed ${speed}×`}
        onClick={() => setSpeed(speed === 1 ? 4 : 1)}
      >
        {speed}×
      </button>
      <input
        type="range"
        class="grow"
        aria-label="Moment of the run"
        aria-valuetext={`${since}: ${what}`}
        max={last}
        value={position}
        onInput={({ currentTarget: { value } }) => {
          setPlaying(false);
          moveTo(Number(value));
        }}
      />
      <span class="mono">{since}</span>
      <span class="scrubber-event clip mono quiet">{what}</span>
      <button type="button" class="small" aria-pressed={isAtEnd} onClick={() => moveTo(last)}>
        {isLive ? 'Live' : 'End'}
      </button>
    </div>
  );
}
