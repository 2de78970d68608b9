/**
 * Reads something again when it may have changed.
 *
 * Invariants:
 *  1. Asked often, it reads once, soon.
 *  2. It reads one at a time, and once more if it was asked meanwhile: an old answer never replaces a newer one.
 */

/** Events arrive in bursts. */
const REFRESH_MS = 150;

/**
 * @param read never rejects
 * @param pause before each read
 * @returns asks for it
 */
export function refresher(read: () => Promise<void>, pause = soon): () => void {
  let isAsked = false;
  let isReading = false;
  const work = async (): Promise<void> => {
    while (isAsked) {
      await pause();
      isAsked = false;
      await read();
    }
    isReading = false;
  };
  return () => {
    isAsked = true;
    if (isReading) return;
    isReading = true;
    void work();
  };
}

async function soon(): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, REFRESH_MS);
  });
}
