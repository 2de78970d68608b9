/** A failure of the disk that the history wants. */
export class DiskFailure extends Error {
  override readonly name = 'DiskFailure';
}
