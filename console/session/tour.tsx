/** The guide beside a session of the tour: where to look, what happened, and the next step. */
import { useEffect, useState } from 'preact/hooks';
import { access } from '../app/access.ts';
import { href } from '../app/router.ts';
import { useTask } from '../parts/task.tsx';
import type { SessionModel } from './session-model.ts';
import { startStep } from './start.ts';
import { TOUR, tourFacts } from './tour-steps.ts';

export function Tour({ session }: { readonly session: SessionModel }) {
  const { client, mode } = access.value;
  const { isBusy, fault, run: start } = useTask();
  const [isHidden, setHidden] = useState(false);
  const at = TOUR.findIndex(({ id }) => id === session.document.value?.metadata['tour']);
  const step = TOUR[at];
  const first = session.messages.value.find(({ run_id: run }) => run !== undefined)?.run_id;
  // After a reload, an earlier run is loaded for the tour.
  useEffect(() => {
    if (first !== undefined && mode !== 'view' && step !== undefined) {
      session.loadRun(first, false).catch(() => undefined);
    }
  }, [session, first]);
  const run = first === undefined ? null : session.run(first);
  // Called again when the run changes.
  const hasEnded = run !== null && run.version.value >= 0 && run.hasEnded;
  const next = TOUR[at + 1];
  if (step === undefined || mode === 'view' || isHidden) return null;

  return (
    <aside class="tour" aria-label="Tour">
      <p>
        <strong>
          {at + 1} of {TOUR.length}: {step.title}.
        </strong>{' '}
        {step.watch}
      </p>
      {hasEnded && (
        <div role="status">
          {tourFacts(run.events).map((fact) => (
            <p key={fact} class="tour-fact">
              <span aria-hidden="true">✓ </span>
              {fact}
            </p>
          ))}
        </div>
      )}
      {fault}
      <div class="row">
        {hasEnded &&
          (next === undefined ? (
            <>
              <a class="button primary" href={href([])}>
                Write your own message
              </a>
              <a class="button" href={href(['playground'])}>
                Write a program
              </a>
            </>
          ) : (
            <button
              type="button"
              class="primary"
              disabled={isBusy}
              onClick={() => void start(async () => await startStep(client, next))}
            >
              Next: {next.title}
            </button>
          ))}
        <button type="button" class="small plain" onClick={() => setHidden(true)}>
          Hide the tour
        </button>
      </div>
    </aside>
  );
}
