/**
 * The format of files in a request and in an answer (C7): frames without a separator, each 32 bytes of SHA-256, 4 bytes of
 * length (big-endian) and the bytes. In an answer, a length of 0xFFFFFFFF without bytes means that the file is not here.
 */
import { createHash, type Hash } from 'node:crypto';

import { limits } from '../limits.ts';

export const FRAME_HEAD_BYTES = 36;
const NOT_HERE = 0xffff_ffff;

/** Where the bytes of a frame are in the body. */
export interface FrameRange {
  readonly sha256: string;
  readonly start: number;
  readonly size: number;
}

/** @param size bytes; null = the file is not here */
export function frameHead(sha256: string, size: number | null): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.write(sha256, 'hex');
  head.writeUInt32BE(size ?? NOT_HERE, 32);
  return head;
}

/** Reads the frames of a body in pieces of any length, and checks the hash of each file. Keeps no bytes. */
export class FrameReader {
  readonly frames: FrameRange[] = [];
  /** Why the body is not valid; later input is ignored. */
  #issue: string | null = null;
  readonly #head = Buffer.alloc(FRAME_HEAD_BYTES);
  #headLength = 0;
  #offset = 0;
  #open: { readonly frame: FrameRange; readonly hash: Hash; missing: number } | null = null;

  feed(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length && this.#issue === null;) {
      if (this.#open === null) {
        const part = chunk.subarray(at, at + FRAME_HEAD_BYTES - this.#headLength);
        this.#head.set(part, this.#headLength);
        this.#headLength += part.length;
        this.#offset += part.length;
        at += part.length;
        if (this.#headLength === FRAME_HEAD_BYTES) this.#begin();
      } else {
        const part = chunk.subarray(at, at + this.#open.missing);
        this.#open.hash.update(part);
        this.#open.missing -= part.length;
        this.#offset += part.length;
        at += part.length;
        if (this.#open.missing === 0) this.#finish(this.#open);
      }
    }
  }

  /** @returns why the whole body is not valid, or null */
  end(): string | null {
    if (this.#issue === null && (this.#open !== null || this.#headLength > 0)) {
      this.#issue = `the body ends inside frame ${this.frames.length + 1}`;
    }
    return this.#issue;
  }

  #begin(): void {
    this.#headLength = 0;
    const number = this.frames.length + 1;
    const size = this.#head.readUInt32BE(32);
    if (number > limits.workspaceFiles) {
      this.#issue = `more than ${limits.workspaceFiles} frames`;
    } else if (size > limits.workspaceFileBytes) {
      this.#issue = `frame ${number}: ${size} bytes (allowed: ${limits.workspaceFileBytes})`;
    } else {
      const frame = { sha256: this.#head.toString('hex', 0, 32), start: this.#offset, size };
      this.#open = { frame, hash: createHash('sha256'), missing: size };
      if (size === 0) this.#finish(this.#open);
    }
  }

  #finish({ frame, hash }: { readonly frame: FrameRange; readonly hash: Hash }): void {
    this.#open = null;
    if (hash.digest('hex') === frame.sha256) this.frames.push(frame);
    else this.#issue = `frame ${this.frames.length + 1}: the bytes do not have the hash ${frame.sha256}`;
  }
}
