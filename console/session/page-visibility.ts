/** Whether the page is visible: a page that is hidden for long gives its connection back. */

/** How long a hidden page keeps its stream. */
const HIDDEN_MS = 20_000;

/** Calls back if the page is hidden for `HIDDEN_MS`. @returns ends that */
export function whenHidden(then: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  const check = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = document.hidden ? setTimeout(then, HIDDEN_MS) : null;
  };
  document.addEventListener('visibilitychange', check);
  check();
  return () => {
    document.removeEventListener('visibilitychange', check);
    if (timer !== null) clearTimeout(timer);
  };
}

/** Resolves when the page is visible or the signal is aborted. */
export async function visible(closed: AbortSignal): Promise<void> {
  if (!document.hidden || closed.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      if (document.hidden && !closed.aborted) return;
      document.removeEventListener('visibilitychange', done);
      closed.removeEventListener('abort', done);
      resolve();
    };
    document.addEventListener('visibilitychange', done);
    closed.addEventListener('abort', done);
  });
}
