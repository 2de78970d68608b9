/** The status of a run and its figures. */
import type { ComponentChildren } from 'preact';
import { cost, count, duration } from '../parts/format.ts';
import { Status } from '../parts/status.tsx';
import type { Bound } from './bound.ts';
import { Failed } from './failed.tsx';
import { Figures } from './figures.tsx';
import type { Trace } from './trace.ts';

interface RunHeadProps {
  readonly trace: Trace;
  readonly bound: Bound;
  readonly children: ComponentChildren;
}

export function RunHead({ trace, bound, children }: RunHeadProps) {
  const { totals, actions, settled, failures } = trace;
  return (
    <header class="run-head">
      <h2>
        Run <Status status={trace.status} />
      </h2>
      <Figures
        of={[
          trace.startedAt !== null && ['duration', duration(bound.actualMs)],
          [
            actions.length === 1 ? 'action' : 'actions',
            `${settled === actions.length ? '' : `${count(settled)} of `}${count(actions.length)}`,
          ],
          failures > 0 && ['failed', <span class="status-failed">{count(failures)}</span>],
          trace.calls.length > 0 && [
            totals.isEstimated ? 'tokens, estimated' : 'tokens',
            `${count(totals.prompt)} + ${count(totals.completion)}`,
          ],
          totals.cost > 0 && ['cost', cost(totals.cost)],
        ]}
      />
      {children}
      {trace.error !== null && <Failed error={trace.error} />}
    </header>
  );
}
