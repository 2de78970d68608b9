/** Decodes a container's output: the engine multiplexes it in frames with an eight-byte header. */
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
