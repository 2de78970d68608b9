/** A form that starts a run and shows it. */
import type { ComponentChildren } from 'preact';
import type { BaseClient, Run } from '../../src/client/index.ts';
import { access } from '../app/access.ts';
import { fromHere, href } from '../app/router.ts';
import { useTask } from '../parts/task.tsx';

export function RunForm({
  start,
  isReady,
  children,
}: {
  /** Begins the run. The signal ends its stream. @throws CortexError, which the form shows */
  readonly start: (client: BaseClient, signal: AbortSignal) => Promise<Run>;
  readonly isReady: boolean;
  readonly children: ComponentChildren;
}) {
  const { isBusy, fault, run } = useTask();
  const begin = async (): Promise<void> => {
    const goOn = fromHere();
    const leave = new AbortController();
    const { id, sessionId } = await start(access.peek().client, leave.signal);
    // The page of the session follows the run.
    leave.abort();
    goOn(href(['sessions', sessionId, 'runs', id]));
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(begin);
      }}
    >
      {children}
      {fault}
      <button type="submit" class="primary" disabled={isBusy || !isReady}>
        {isBusy ? 'Starting …' : 'Run'}
      </button>
    </form>
  );
}
