/** Stops what runs and waits in a session. */
import { useTask } from '../parts/task.tsx';

interface StopButtonProps {
  /** @throws CortexError, which is shown */
  readonly stop: () => Promise<void>;
  /** The focus may go on: the button will be gone. */
  readonly stopped?: () => void;
}

export function StopButton({ stop, stopped }: StopButtonProps) {
  const { fault, run } = useTask();
  const press = async (): Promise<void> => {
    await stop();
    stopped?.();
  };
  return (
    <>
      {fault}
      <button type="button" class="danger" onClick={() => void run(press)}>
        Stop
      </button>
    </>
  );
}
