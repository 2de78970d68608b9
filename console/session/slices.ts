/** Lets the browser paint between events that arrive in a burst. */

/** Longest part of a frame that events may take. */
const SLICE_MS = 8;

export class Slices {
  #since = performance.now();

  async rest(): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return;
    await new Promise((resolve) => {
      setTimeout(resolve);
    });
    this.#since = performance.now();
  }
}
