/**
 * Writes tar archives (GNU format), on both sides of a sandbox. Guests cannot load packages, and a stream of headers and
 * bytes needs no more than this. Archives are read with `tar-stream` only (sandbox/left-archive.ts).
 */

/** Types of entries, as the format names them. */
const TYPE_FLAGS = { file: '0', symlink: '2', folder: '5', fifo: '6', unknown: '?', longName: 'L' } as const;

export interface TarEntry {
  /** With slashes; not absolute. */
  readonly path: string;
  readonly kind: 'file' | 'folder' | 'symlink' | 'fifo' | 'unknown';
  /** Permission bits. */
  readonly mode: number;
  /** Bytes that follow; 0 unless it is a file. */
  readonly size: number;
  /** Epoch milliseconds; kept to the second. */
  readonly modifiedAt: number;
}

const BLOCK = 512;
/** Readers read whole records of twenty blocks. */
const RECORD = 20 * BLOCK;
const NAME_BYTES = 100;
const CHECKSUM_AT = 148;
const encoder = new TextEncoder();

/** The header of an entry; the entry's bytes and `tarPadding` follow. */
export function tarHeader({ path, kind, mode, size, modifiedAt }: TarEntry): Uint8Array {
  const name = encoder.encode(path);
  const last = block(name.subarray(0, NAME_BYTES), TYPE_FLAGS[kind], mode, size, modifiedAt);
  if (name.length <= NAME_BYTES) return last;
  const long = block(encoder.encode('././@LongLink'), TYPE_FLAGS.longName, 0, name.length + 1, 0);
  const padded = new Uint8Array(name.length + 1 + tarPadding(name.length + 1).length);
  padded.set(name);
  return joined([long, padded, last]);
}

/** The zeros that follow `size` bytes of an entry. */
export function tarPadding(size: number): Uint8Array {
  return new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);
}

/** @param written bytes of the archive so far */
export function tarEnd(written: number): Uint8Array {
  const least = written + 2 * BLOCK;
  return new Uint8Array(2 * BLOCK + ((RECORD - (least % RECORD)) % RECORD));
}

function block(name: Uint8Array, type: string, mode: number, size: number, modifiedAt: number): Uint8Array {
  const bytes = new Uint8Array(BLOCK);
  bytes.set(name);
  const put = (text: string, at: number): void => bytes.set(encoder.encode(text), at);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`;
  put(octal(mode & 0o7777, 7), 100);
  put(octal(0, 7), 108);
  put(octal(0, 7), 116);
  put(octal(size, 11), 124);
  put(octal(Math.max(0, Math.floor(modifiedAt / 1_000)), 11), 136);
  // for the checksum, its own field is blank
  put('        ', CHECKSUM_AT);
  put(type, 156);
  put('ustar  \0', 257);
  let sum = 0;
  for (const byte of bytes) sum += byte;
  put(`${octal(sum, 6)} `, CHECKSUM_AT);
  return bytes;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
