/** What a run changed, used and reported. */
import type { ComponentChildren } from 'preact';
import type { SessionEvent } from '../../src/client/index.ts';
import { List } from '../parts/bounded.tsx';
import { cost, count } from '../parts/format.ts';
import { JsonView } from '../parts/json-view.tsx';
import { Table } from '../parts/table.tsx';
import { offset } from './describe.ts';
import type { Trace } from './trace.ts';

interface TraceProps {
  readonly trace: Trace;
}

interface EventsProps<T> extends TraceProps {
  readonly events: readonly T[];
  /** What is said if there are none. */
  readonly none: string;
  readonly children: (event: T) => ComponentChildren;
}

function Events<T extends SessionEvent>({ trace, events, none, children }: EventsProps<T>) {
  if (events.length === 0) return <p class="quiet">{none}</p>;
  return (
    <List items={events}>
      {(event) => (
        <li key={event.seq}>
          <span class="mono quiet">{offset(event.timestamp - (trace.startedAt ?? 0))}</span> {children(event)}
        </li>
      )}
    </List>
  );
}

const CHANGES = ['added', 'updated', 'removed', 'deleted'];

export function Feeds({ trace }: TraceProps) {
  return (
    <Events trace={trace} events={trace.changes} none="This run has changed no feed and no variable.">
      {({ data }) => (
        <>
          <b class="mono">{'key' in data ? `$${data.key}` : data.id}</b>{' '}
          <span class="quiet">
            {['key' in data ? 'variable' : 'feed', ...CHANGES.filter((change) => change in data)].join(', ')}
          </span>
          {data.value !== undefined && <JsonView value={data.value} label="New value" />}
          {'error' in data && <p class="fault">{data.error}</p>}
        </>
      )}
    </Events>
  );
}

export function Tokens({ trace: { calls, totals, startedAt } }: TraceProps) {
  const rows = calls.map(({ iteration, timestamp, data }) => ({
    what: `${iteration}: ${data.model ?? 'unnamed'}${data.estimated === true ? ', estimated' : ''}`,
    at: offset(timestamp - (startedAt ?? 0)),
    prompt: data.prompt_tokens,
    cached: data.cached_tokens,
    completion: data.completion_tokens,
    cost: data.cost ?? 0,
  }));
  return (
    <>
      <Table
        label="Calls of the model"
        rows={[{ what: 'All calls', at: '', ...totals }, ...rows]}
        columns={[
          ['Iteration and model', ({ what }) => what],
          ['At', ({ at }) => at],
          ['Prompt', ({ prompt }) => count(prompt)],
          ['Cached', ({ cached }) => count(cached)],
          ['Completion', ({ completion }) => count(completion)],
          ['Cost', (row) => row.cost > 0 && cost(row.cost)],
        ]}
      />
      <p class="quiet">The own calls of this run, without those of its sub-agents and workflows.</p>
    </>
  );
}

export function Warnings({ trace }: TraceProps) {
  return (
    <Events trace={trace} events={trace.warnings} none="This run has no warnings.">
      {({ action_id: id, data }) => (
        <>
          {id !== undefined && <b>{id} </b>}
          <code>{'code' in data ? data.code : 'budget_exceeded'}</code>{' '}
          {'code' in data ? data.message : `${data.budget}: ${count(data.used)} of ${count(data.limit)}`}
        </>
      )}
    </Events>
  );
}
