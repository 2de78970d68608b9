/**
 * Work that is done once at a time; what is wanted meanwhile is done by one more round.
 *
 * @returns asks for a round
 */
export function repeated(work: () => Promise<void>, fail: (fault: unknown) => void): () => void {
  let isWanted = false;
  let isBusy = false;
  const loop = async (): Promise<void> => {
    isBusy = true;
    try {
      while (isWanted) {
        isWanted = false;
        await work();
      }
    } catch (fault) {
      fail(fault);
    } finally {
      isBusy = false;
    }
  };
  return () => {
    isWanted = true;
    if (!isBusy) void loop();
  };
}
