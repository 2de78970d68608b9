/**
 * Decodes a container's output: the engine multiplexes it in frames with an eight-byte header. What a program left in its
 * workspace follows its output, after a marker.
 */
import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { PassThrough } from 'node:stream';

const HEADER_BYTES = 8;
const STDERR = 2;

export interface Printed {
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/**
 * Splits the frames. Never applies backpressure, because an engine that waits for its reader does not end the container.
 * Both streams end with the connection.
 */
export function demultiplex(connection: Readable): Printed {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  let header = Buffer.alloc(0);
  let target = stdout;
  /** Remaining payload bytes of the current frame. */
  let missing = 0;

  connection.on('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length;) {
      if (missing === 0) {
        const piece = chunk.subarray(at, at + HEADER_BYTES - header.length);
        header = Buffer.concat([header, piece]);
        at += piece.length;
        if (header.length < HEADER_BYTES) return;
        target = header[0] === STDERR ? stderr : stdout;
        missing = header.readUInt32BE(4);
        header = Buffer.alloc(0);
      } else {
        const payload = chunk.subarray(at, at + missing);
        target.write(payload);
        missing -= payload.length;
        at += payload.length;
      }
    }
  });
  const end = (): void => {
    stdout.end();
    stderr.end();
  };
  connection.once('end', end);
  connection.once('close', end);
  // a broken connection has ended
  connection.on('error', end);
  return { stdout, stderr };
}

/** A new marker: 32 random hexadecimal digits that no output contains. The NUL is rare at the end of a piece of output. */
export function newMarker(): string {
  return `\0${randomBytes(16).toString('hex')}`;
}

/**
 * Splits the output of a program from what its guest writes after the marker. Output is passed on immediately, except for
 * bytes at its end that may be the beginning of the marker. Only what follows the marker has backpressure.
 *
 * @param flow the connection of `source`
 */
export function splitAt(
  source: Readable,
  marker: string,
  flow: Readable,
): { readonly before: Readable; readonly after: Readable } {
  const wanted = Buffer.from(marker, 'latin1');
  const before = new PassThrough();
  const after = new PassThrough();
  /** The beginning of the marker, as far as it has arrived. */
  let held: Buffer = Buffer.alloc(0);
  let found = false;

  function takeAfter(bytes: Buffer): void {
    if (!after.destroyed && !after.write(bytes)) flow.pause();
  }
  source.on('data', (chunk: Buffer) => {
    if (found) {
      takeAfter(chunk);
      return;
    }
    const bytes = Buffer.concat([held, chunk]);
    const at = bytes.indexOf(wanted);
    if (at >= 0) {
      found = true;
      before.end(bytes.subarray(0, at));
      takeAfter(bytes.subarray(at + wanted.length));
      return;
    }
    const cut = bytes.length - beginningAtEnd(bytes, wanted);
    held = bytes.subarray(cut);
    before.write(bytes.subarray(0, cut));
  });
  for (const event of ['drain', 'close']) after.on(event, () => flow.resume());
  source.once('end', () => {
    if (!found) before.end(held);
    after.end();
  });
  return { before, after };
}

/** How many bytes at the end of `bytes` are the beginning of `wanted`. */
function beginningAtEnd(bytes: Buffer, wanted: Buffer): number {
  const [first = 0] = wanted;
  for (let at = bytes.indexOf(first, Math.max(0, bytes.length - wanted.length + 1)); at >= 0;) {
    if (bytes.subarray(at).equals(wanted.subarray(0, bytes.length - at))) return bytes.length - at;
    at = bytes.indexOf(first, at + 1);
  }
  return 0;
}
