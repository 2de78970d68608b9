/** The events of a run as lines. Only lines in view are drawn. */
import { useMemo, useState } from 'preact/hooks';
import type { SessionEvent } from '../../src/client/index.ts';
import { plural } from '../parts/format.ts';
import { offset, summaryOf } from './describe.ts';
import { keyOf } from './trace-types.ts';
import { useViewport } from './viewport.ts';

/** In root ems. */
const ROW = 1.625;
const OVERSCAN = 6;

interface LogProps {
  /** Up to the moment of the replay. */
  readonly events: readonly SessionEvent[];
  readonly select: (key: string) => void;
  readonly show: (seq: number | null) => void;
}

export function Log({ events, select, show }: LogProps) {
  const [words, setWords] = useState('');
  const { box, view } = useViewport();
  const wanted = words.trim().toLowerCase();
  const found = useMemo(
    () => (wanted === '' ? events : events.filter((event) => textOf(event).includes(wanted))),
    [events.length, wanted],
  );
  const row = ROW * view.rem;
  const first = Math.max(0, Math.floor(view.top / row) - OVERSCAN);
  const shown = found.slice(first, Math.ceil((view.top + view.height) / row) + OVERSCAN);
  return (
    <section class="log" aria-label="Log">
      <div class="row">
        <input
          type="search"
          aria-label="Filter events"
          placeholder="Filter: a type, an action, or a word"
          value={words}
          onInput={({ currentTarget: { value } }) => setWords(value)}
        />
        <span class="quiet">{plural(found.length, 'event')}</span>
      </div>
      {/* oxlint-disable-next-line */}
      <div class="part-box" ref={box} tabIndex={0} role="region" aria-label="Events">
        <ol style={{ height: `${found.length * row}px` }}>
          {shown.map((event, index) => (
            <li key={event.seq} style={{ top: `${(first + index) * row}px`, height: `${row}px` }}>
              <button type="button" class="plain small" title="Show this moment" onClick={() => show(event.seq)}>
                {offset(event.timestamp - (events[0]?.timestamp ?? 0))}
              </button>
              <span class={`status-${event.type.split('_').at(-1)}`}>{event.type}</span>
              {event.action_id === undefined ? (
                <span />
              ) : (
                <button
                  type="button"
                  class="plain small"
                  onClick={() => select(keyOf(event.iteration, event.action_id ?? ''))}
                >
                  {event.action_id}
                </button>
              )}
              <span class="quiet">{summaryOf(event)}</span>
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}

const texts = new WeakMap<SessionEvent, string>();

/** What the filter searches. */
function textOf(event: SessionEvent): string {
  let text = texts.get(event);
  if (text === undefined) {
    text = `${event.type} ${event.action_id} ${event.action_name} ${summaryOf(event)}`.toLowerCase();
    texts.set(event, text);
  }
  return text;
}
