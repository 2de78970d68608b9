/**
 * The stored content of a message: text, or parts with images and files, whose bytes are in the session's blob store
 * (C2).
 */
import type { Json } from './json.ts';
import { isJsonObject } from './json.ts';
import { limits } from './limits.ts';

export interface FilePart {
  readonly type: 'image' | 'file';
  /** As the client wrote it: hostile input. */
  readonly name: string;
  readonly media_type: string;
  /** Bytes. */
  readonly size: number;
  /** Of the bytes, in lower-case hexadecimal. */
  readonly sha256: string;
}

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

export type ContentPart = TextPart | FilePart;

/** The stored content of a message (in a run's `input.content`). */
export type MessageContent = string | readonly ContentPart[];

/** @returns null if it is not the content of a message */
export function readContent(json: Json | undefined): MessageContent | null {
  if (typeof json === 'string') return json;
  if (!Array.isArray(json)) return null;
  const parts = json.flatMap((part) => partOf(part) ?? []);
  return parts.length === json.length ? parts : null;
}

function partOf(json: Json): ContentPart | null {
  if (!isJsonObject(json)) return null;
  const { type, text, name, media_type: mediaType, size, sha256 } = json;
  if (type === 'text') return typeof text === 'string' ? { type, text } : null;
  const isFile =
    (type === 'image' || type === 'file') &&
    typeof name === 'string' &&
    typeof mediaType === 'string' &&
    typeof size === 'number' &&
    typeof sha256 === 'string';
  return isFile ? { type, name, media_type: mediaType, size, sha256 } : null;
}

/** The text of a message, with a placeholder line at the place of each file. */
export function textOfContent(content: MessageContent): string {
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? part.text : placeholder(part))).join('\n');
}

export function filesOfContent(content: MessageContent): readonly FilePart[] {
  return typeof content === 'string' ? [] : content.filter((part): part is FilePart => part.type !== 'text');
}

/** `[image "chart.png", image/png, 12345 bytes]` */
export function placeholder(part: Pick<FilePart, 'type' | 'name' | 'media_type' | 'size'>): string {
  return `[${part.type} ${quotedName(part.name)}, ${part.media_type}, ${part.size} bytes]`;
}

/** The name of a file in quotes and one line, without anything that could end a tag or look like one. */
export function quotedName(name: string): string {
  const line = name
    .slice(0, limits.fileNameChars)
    .toWellFormed()
    .replace(/[\s\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
    .replace(/[<>\uFF1C\uFF1E\uFE64\uFE65]/g, '_');
  return JSON.stringify(line);
}
