/** A plan: what starts when, what waits for what, and what would be rejected (U5). */
import type { Plan } from '../../src/client/index.ts';
import { List } from '../parts/bounded.tsx';
import { Facts } from '../parts/facts.tsx';
import { count, duration, plural } from '../parts/format.ts';
import { TextView } from '../parts/json-view.tsx';
import * as limits from '../parts/limits.ts';
import { Table } from '../parts/table.tsx';
import { Issues } from './issues.tsx';
import { layoutPlan } from './plan-layout.ts';

export function PlanView({ plan }: { readonly plan: Plan }) {
  const { actions, rejected, warnings, responses, estimates, waves } = plan;
  const finding = ({
    id,
    code,
    message,
  }: {
    readonly id?: string;
    readonly code: string;
    readonly message: string;
  }) => (
    <>
      <code>
        {code} {id}
      </code>{' '}
      <p>{message}</p>
    </>
  );
  return (
    <>
      <p role="status">
        {plural(actions.length, 'action')} in {plural(waves.length, 'wave')}, {count(rejected.length)} rejected,{' '}
        {plural(warnings.length, 'warning')}
      </p>
      <Facts
        facts={[
          ['One after another', duration(estimates.sequential_ms)],
          ['Wave by wave', duration(estimates.waves_ms)],
          ['Critical path', duration(estimates.critical_path_ms)],
          ['Speed-up', `${estimates.speedup.toFixed(2)}×`],
        ]}
      />
      <Issues title="Rejected actions" issues={rejected}>
        {finding}
      </Issues>
      <Issues title="Warnings" isWarning issues={warnings}>
        {finding}
      </Issues>
      {actions.length > 0 && (
        <>
          <Waves plan={plan} />
          <h3>Actions</h3>
          <Table
            label="Table of actions"
            rows={actions}
            columns={[
              ['Id', ({ id }) => id],
              ['Calls', ({ type, name }) => (name === type ? type : `${type} ${name}`)],
              ['Depends on', (action) => action.depends_on.join(', ') || '—'],
              [
                'Mode',
                ({ mode, embedded_in_thought: inThought, repaired }) =>
                  `${mode}${inThought ? ', in a thought' : ''}${repaired ? ', repaired' : ''}`,
              ],
              ['Estimate', (action) => duration(action.estimate_ms)],
            ]}
          />
        </>
      )}
      {responses.length > 0 && <h3>Responses</h3>}
      <List items={responses}>
        {({ content, final }, at) => (
          <li key={at}>
            <TextView text={content} label={`Response ${at + 1}`} />
            <p class="quiet">
              {final === null ? 'Ends the run unless something is open' : final ? 'Ends the run' : 'The run goes on'}
            </p>
          </li>
        )}
      </List>
    </>
  );
}

function Waves({ plan }: { readonly plan: Plan }) {
  const { columns, rows, edges, critical } = layoutPlan(plan);
  const byId = new Map(plan.actions.map((action) => [action.id, action]));
  return (
    <>
      <h3>Waves</h3>
      <p class="quiet">
        Each column is a wave. An action starts as soon as what it depends on has ended; it never waits for its whole
        wave.{plan.actions.length > limits.planNodes && ` The first ${limits.planNodes} actions are drawn.`}
      </p>
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Waves">
        <div class="plan">
          <svg viewBox={`0 0 ${columns.length} ${rows}`} preserveAspectRatio="none" aria-hidden="true">
            <path d={edges} />
            <path d={critical} class="critical" />
          </svg>
          {columns.map((ids, at) => (
            <ul key={at} aria-label={`Wave ${at + 1}`}>
              {ids.map((id) => {
                const { type = '', name = '', estimate_ms: ms = 0 } = byId.get(id) ?? {};
                const isCritical = plan.critical_path.includes(id);
                return (
                  <li key={id} class={isCritical ? 'critical' : ''} title={`${id}: ${type} ${name}`}>
                    <strong class="clip">{id}</strong>
                    <span class="clip">{name || type}</span>
                    <span>
                      {duration(ms)}
                      {isCritical && ' · critical'}
                    </span>
                  </li>
                );
              })}
            </ul>
          ))}
        </div>
      </div>
    </>
  );
}
