/** Files that are sent with a message: what may be attached, and how it is sent (C2). Pure. */
import type { ContentPart } from '../../src/client/index.ts';
import { safeFileName } from '../parts/download.ts';
import { bytes, count } from '../parts/format.ts';
import * as limits from '../parts/limits.ts';
import { showInvisible } from '../parts/safe-text.ts';

/** Images that models read and that this page shows, and how their bytes begin. */
export const IMAGE_TYPES: ReadonlyMap<string, RegExp> = new Map([
  ['image/png', /^\u0089PNG\r\n/],
  ['image/jpeg', /^\u00ff\u00d8\u00ff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
]);

export interface Attachment {
  readonly id: number;
  readonly file: File;
}

export interface Attached {
  readonly files: readonly Attachment[];
  /** Why a file was left out: one sentence each. */
  readonly issues: readonly string[];
}

export const NOTHING: Attached = { files: [], issues: [] };

let ids = 0;

/** The attachments with more files, as far as they are allowed. */
export function attached(files: readonly Attachment[], more: Iterable<File>): Attached {
  const all = [...files];
  const issues: string[] = [];
  let left = 0;
  let total = files.reduce((sum, { file }) => sum + file.size, 0);
  for (const file of more) {
    const { size } = file;
    const name = `"${showInvisible(file.name)}"`;
    if (all.length >= limits.files) left += 1;
    else if (size === 0) issues.push(`${name} is empty.`);
    else if (size > limits.fileBytes) {
      issues.push(`${name} has ${bytes(size)}; a file may have ${bytes(limits.fileBytes)}.`);
    } else if (total + size > limits.messageFileBytes) {
      issues.push(`${name} does not fit: the files of a message may have ${bytes(limits.messageFileBytes)} together.`);
    } else {
      ids += 1;
      total += size;
      all.push({ id: ids, file });
    }
  }
  if (left > 0) issues.push(`${count(left)} not attached: a message may have ${count(limits.files)} files.`);
  return { files: all, issues };
}

/** The content of a message: text alone stays text. */
export async function contentOf(
  text: string,
  files: readonly Pick<Attachment, 'file'>[],
): Promise<string | readonly ContentPart[]> {
  if (files.length === 0) return text;
  const parts = await Promise.all(files.map(async ({ file }) => await partOf(file)));
  return text.trim() === '' ? parts : [{ type: 'text', text }, ...parts];
}

/** The bytes decide whether it is an image: the name of a file can be wrong, and the server refuses that. */
async function partOf(file: File): Promise<ContentPart> {
  const data = new Uint8Array(await file.arrayBuffer());
  const image = imageType(data);
  const type = image ?? (IMAGE_TYPES.has(file.type) ? '' : file.type);
  const part = { name: safeFileName(file.name), ...(type !== '' && { media_type: type }), data: base64(data) };
  return image === null ? { type: 'file', ...part } : { type: 'image', ...part };
}

/** Of an image that is in `IMAGE_TYPES`; null otherwise. */
export function imageType(data: Uint8Array): string | null {
  const start = String.fromCharCode(...data.subarray(0, 12));
  return [...IMAGE_TYPES].find(([, pattern]) => pattern.test(start))?.[0] ?? null;
}

/** A multiple of three, so that the pieces can be joined. */
const PIECE_BYTES = 24_576;

export function base64(data: Uint8Array): string {
  let text = '';
  for (let at = 0; at < data.length; at += PIECE_BYTES) {
    text += btoa(String.fromCharCode(...data.subarray(at, at + PIECE_BYTES)));
  }
  return text;
}
