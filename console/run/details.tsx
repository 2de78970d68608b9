/** The selected action: what it got, what it gave, and how it went. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { href } from '../app/router.ts';
import { count, duration } from '../parts/format.ts';
import { JsonView, TextView } from '../parts/json-view.tsx';
import * as limits from '../parts/limits.ts';
import { Status } from '../parts/status.tsx';
import { Table } from '../parts/table.tsx';
import { Values } from '../parts/values.tsx';
import { offset, targetOf } from './describe.ts';
import { Failed } from './failed.tsx';
import { Figures } from './figures.tsx';
import type { RunViewProps } from './run-view.ts';
import { beganAt, ranMs } from './trace-types.ts';
import type { Attempt, TraceAction } from './trace-types.ts';

interface DetailsProps extends RunViewProps {
  readonly action: TraceAction;
  /** Whether child sessions can be opened. */
  readonly linksSessions: boolean;
  /** What can be done with it. */
  readonly children: ComponentChildren;
}

export function Details({ trace, bound, action, now, linksSessions, select, children }: DetailsProps) {
  const box = useRef<HTMLElement>(null);
  const { id, key, written, iteration, attempts, waits, queuedAt, endedAt, error, childSessionId, progress } = action;
  useEffect(() => box.current?.focus(), [key]);
  const start = trace.startedAt ?? queuedAt;
  const began = beganAt(action);
  const ran = ranMs(action, now);
  const tags = [
    `iteration ${iteration}`,
    written.mode?.replaceAll('_', ' '),
    written.embedded_in_thought === true && 'in a thought',
    action.isCached && 'cached',
    written.repaired === true && 'repaired JSON',
    bound.path.has(key) && 'critical path',
  ];
  const values = [
    ['Parameters', written.parameters],
    ['Parameters, as executed', action.executed],
    ['Output', action.output],
  ] as const;
  return (
    <aside class="details" aria-label={`Action ${id}`} ref={box} tabIndex={-1}>
      <header class="row">
        <h3 class="mono">{id}</h3>
        <Status status={action.status} />
        {children}
        <button type="button" class="small" onClick={() => select(null)}>
          Close
        </button>
      </header>
      <p class="row">
        {targetOf(action)}
        {tags.map(
          (tag) =>
            tag && (
              <span key={tag} class="tag">
                {tag}
              </span>
            ),
        )}
      </p>
      {error !== null && <Failed error={error} />}
      <Figures
        of={[
          ['closing tag', offset(queuedAt - start)],
          began !== null && ['started', offset(began - start)],
          began !== null && ['waited to start', duration(began - queuedAt)],
          ran !== null && [endedAt === null ? 'runs for' : 'ran', duration(ran)],
        ]}
      />
      <Links title="Waits for" actions={action.dependencies} select={select} />
      <Links title="Needed by" actions={action.dependents} select={select} />
      {childSessionId !== null && linksSessions && (
        <p>
          <a href={href(['sessions', childSessionId])}>Open the session of this {written.type ?? 'action'}</a>
        </p>
      )}
      {values.map(
        ([title, value]) =>
          value !== undefined &&
          (isObject(value) ? (
            <Values key={title} title={title} values={value} />
          ) : (
            <section key={title}>
              <h4>{title}</h4>
              <JsonView value={value} label={`${title} of ${id}`} />
            </section>
          )),
      )}
      {progress !== '' && (
        <>
          <h4>Live output{progress.length >= limits.progressChars && ', the end of it'}</h4>
          <TextView
            text={progress.slice(-limits.progressChars)}
            label={`Live output of ${id}`}
            maxChars={limits.progressChars}
          />
        </>
      )}
      {(attempts.length > 1 || waits.length > 0) && (
        <Table
          label={`Attempts of ${id}`}
          rows={[
            ...waits.map(({ for: what, from, to }) => ({ what: `wait for ${what}`, from, to })),
            ...attempts.map((attempt) => ({ what: wordsOf(attempt), from: attempt.startedAt, to: attempt.endedAt })),
          ]}
          columns={[
            ['Attempts and waits', ({ what }) => what],
            ['Start', ({ from }) => offset(from - start)],
            ['Took', ({ from, to }) => duration((to ?? now) - from)],
          ]}
        />
      )}
    </aside>
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wordsOf({ attempt, error, retryDelayMs }: Attempt): string {
  const failed = error === null ? '' : `: ${error.code}: ${error.message}`;
  return `attempt ${attempt}${failed}${retryDelayMs === null ? '' : `, again after ${duration(retryDelayMs)}`}`;
}

interface LinksProps {
  readonly title: string;
  readonly actions: readonly TraceAction[];
  readonly select: (key: string) => void;
}

function Links({ title, actions, select }: LinksProps) {
  if (actions.length === 0) return null;
  const rest = actions.length - limits.linksShown;
  return (
    <p class="row">
      <span class="quiet">{title}</span>
      {actions.slice(0, limits.linksShown).map(({ key, id }) => (
        <button key={key} type="button" class="small mono" onClick={() => select(key)}>
          {id}
        </button>
      ))}
      {rest > 0 && <span class="quiet">and {count(rest)} more</span>}
    </p>
  );
}
