/** Waits until nothing is left to do but to wait for time to pass. */

// Fake timers of a test do not change them.
const { setImmediate } = globalThis;

/** Turns of the event loop in which nothing happens, before nothing is left to do. */
const QUIET_TURNS = 5;

/** Digests that other threads are computing. */
const digests = new Set<Promise<unknown>>();
const digest = crypto.subtle.digest.bind(crypto.subtle);
crypto.subtle.digest = async (...given) => {
  const made = digest(...given);
  digests.add(made);
  try {
    return await made;
  } finally {
    digests.delete(made);
  }
};

/** Runs everything that needs no time to pass. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < QUIET_TURNS; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    if (digests.size === 0) continue;
    await Promise.allSettled(digests);
    turn = 0;
  }
}
