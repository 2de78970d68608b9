/** Shows another version of a message, with what followed it (C4). */
import { fromHere, href } from '../app/router.ts';
import { useTask } from '../parts/task.tsx';
import type { SessionModel } from '../session/session-model.ts';
import { announce } from './announcer.tsx';

interface VersionSwitchProps {
  readonly session: SessionModel;
  /** Runs of all versions, oldest first. */
  readonly versions: readonly string[];
  /** The one that is shown. */
  readonly runId: string;
}

export function VersionSwitch({ session, versions, runId }: VersionSwitchProps) {
  const { fault, run } = useTask();
  const at = versions.indexOf(runId);
  const button = (label: string, sign: string, to: number) => {
    const version = versions[to];
    return (
      <button
        type="button"
        class="small plain"
        aria-label={label}
        // A button that is disabled would lose the focus.
        aria-disabled={version === undefined}
        onClick={() =>
          version !== undefined &&
          void run(async () => {
            const goOn = fromHere();
            goOn(href(['sessions', session.id], { branch: await session.leafOf(version) }));
            announce(`Version ${to + 1} of ${versions.length}`);
          })
        }
      >
        <span aria-hidden="true">{sign}</span>
      </button>
    );
  };
  return (
    <span class="row versions" role="group" aria-label="Versions">
      {button('Previous version', '‹', at - 1)}
      {at + 1} of {versions.length}
      {button('Next version', '›', at + 1)}
      {fault}
    </span>
  );
}
