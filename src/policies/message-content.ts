/**
 * Admits the content of a message (C2): decodes and checks all of its parts before anything is stored. Files that are
 * given by a URL are fetched afterwards (fetched-content.ts), so that an error in another part costs no request.
 *
 * Invariant: it writes nothing. A message with an invalid part leaves no trace.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { Artifact } from '../domain/artifact.ts';
import { Base64Decoder } from '../domain/base64-decoder.ts';
import type { Decoded } from '../domain/base64-decoder.ts';
import type { ContentPart, FilePart, MessageContent } from '../domain/content.ts';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { canHaveType, IMAGE_TYPES, readMediaType, sniffMediaType } from './media-type.ts';

/** A file as a client sends it: exactly one of `data` and `artifact`. */
export interface GivenFile {
  readonly type: 'image' | 'file';
  readonly name?: string | undefined;
  readonly media_type?: string | undefined;
  /** Base64. */
  readonly data?: string | undefined;
  /** Id of an artifact of the session. */
  readonly artifact?: string | undefined;
}

export type GivenPart = { readonly type: 'text'; readonly text: string } | GivenFile;

/** A file that is given by its URL instead. */
export type UrlPart = GivenFile & { readonly url: string };

/** A part of a new message. */
export type MessagePart = GivenPart | (GivenFile & { readonly url?: string | undefined });

/** A message with files that must be fetched; everything else is admitted. */
export interface UnfetchedContent {
  readonly parts: readonly (ContentPart | UrlPart)[];
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Bytes of the files that are admitted. */
  readonly size: number;
}

export interface AdmittedContent {
  readonly content: MessageContent;
  /** The bytes of its files by their SHA-256, each once. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

type ReadArtifact = (id: string) => Promise<Pick<Artifact, 'name' | 'content_type' | 'bytes'>>;

/** The bytes of `data`, or of the mark in its place. */
export type DecodeData = (data: string) => Decoded;

/**
 * @param artifact reads an artifact of the session. @throws EngineError `unknown_artifact`
 * @throws EngineError `invalid_content`, `content_too_large`, `content_type_mismatch`, `unsupported_media_type`,
 *   `unknown_artifact`; the path of the part is in the message
 */
export async function admitContent(given: readonly GivenPart[], artifact: ReadArtifact): Promise<AdmittedContent> {
  const admitted = await admitMessage(given, artifact);
  if ('content' in admitted) return admitted;
  throw new EngineError('invalid_content', 'only a part of a new message may have a "url"');
}

/** The same for a message whose files may have to be fetched. @throws EngineError like `admitContent` */
export async function admitMessage(
  given: readonly MessagePart[],
  artifact: ReadArtifact,
  decode: DecodeData = decodeText,
): Promise<AdmittedContent | UnfetchedContent> {
  const files = new Map<string, Uint8Array>();
  const parts: (ContentPart | UrlPart)[] = [];
  let size = 0;
  for (const [index, part] of given.entries()) {
    if (part.type === 'text') {
      parts.push({ type: 'text', text: part.text });
      continue;
    }
    if ('url' in part && part.url !== undefined) {
      parts.push({ ...part, url: part.url });
      continue;
    }
    const from = part.artifact === undefined ? null : await artifact(part.artifact);
    const bytes = from?.bytes ?? decoded(decode(part.data ?? ''), placeOf(index));
    size += bytes.length;
    checkTotal(size, placeOf(index));
    const admitted = admitFile(part, index, bytes, from?.name ?? null, from?.content_type ?? null);
    files.set(admitted.sha256, bytes);
    parts.push(admitted);
  }
  return parts.some(isUrlPart) ? { parts, files, size } : { content: parts.filter(isStored), files };
}

export function isUrlPart(part: ContentPart | UrlPart): part is UrlPart {
  return 'url' in part;
}

function isStored(part: ContentPart | UrlPart): part is ContentPart {
  return !isUrlPart(part);
}

/** How messages name a part. */
export function placeOf(index: number): string {
  return `"content[${index}]"`;
}

/**
 * A file whose bytes are known.
 *
 * @param name the name that its source has; the client's own comes first
 * @param contentType as its source states it; counts only if the bytes can have it
 * @throws EngineError like `admitContent`
 */
export function admitFile(
  part: GivenFile,
  index: number,
  bytes: Uint8Array,
  name: string | null,
  contentType: string | null,
): FilePart {
  const where = placeOf(index);
  if (bytes.length === 0) throw new EngineError('invalid_content', `${where}: the file is empty`);
  if (bytes.length > limits.messagePartBytes) throw fileTooLarge(where);
  const shown = part.name ?? name ?? `${part.type}-${index + 1}`;
  const type = typeOf(part, bytes, contentType, where);
  const hash = bytesToHex(sha256(bytes));
  return { type: part.type, name: shown, media_type: type, size: bytes.length, sha256: hash };
}

export function fileTooLarge(where: string): EngineError {
  const message = `${where}: the file has more than ${limits.messagePartBytes} bytes`;
  return new EngineError('content_too_large', message, { limit_bytes: limits.messagePartBytes });
}

/** @param total bytes of the files of the message. @throws EngineError `content_too_large` */
export function checkTotal(total: number, where: string): void {
  if (total > limits.messageFileBytes) throw filesTooLarge(where);
}

function filesTooLarge(where: string): EngineError {
  const message = `${where}: the files of a message may have ${limits.messageFileBytes} bytes together`;
  return new EngineError('content_too_large', message, { limit_bytes: limits.messageFileBytes });
}

/** The stated type if the bytes can have it; without one, the type that the bytes show. */
function typeOf(part: GivenFile, bytes: Uint8Array, inherited: string | null, where: string): string {
  const found = sniffMediaType(bytes);
  const stated = part.media_type ?? null;
  const type = stated === null ? inheritedType(inherited, bytes, found) : readMediaType(stated);
  if (type === null) {
    throw new EngineError('invalid_content', `${where}: "media_type" must be a media type, such as image/png`);
  }
  if (!canHaveType(bytes, type)) {
    const message = `${where}: "media_type" is ${type}, but the bytes are ${found}`;
    throw new EngineError('content_type_mismatch', message, { media_type: found });
  }
  if (part.type === 'file' || IMAGE_TYPES.has(type)) return type;
  const known = [...IMAGE_TYPES].join(', ');
  throw new EngineError(
    'unsupported_media_type',
    `${where}: ${type} is not a type of image that models take (known: ${known}); send it with "type": "file"`,
  );
}

/** The type of an artifact or of a server's header counts only if the bytes can have it: the client did not state it. */
function inheritedType(inherited: string | null, bytes: Uint8Array, found: string): string {
  const type = inherited === null ? null : readMediaType(inherited);
  return type !== null && canHaveType(bytes, type) ? type : found;
}

function decoded({ isBase64, size, bytes }: Decoded, where: string): Uint8Array {
  if (!isBase64) throw new EngineError('invalid_content', `${where}: "data" must be base64`);
  if (bytes !== null) return bytes;
  // Its bytes were not kept: it is too large itself, or beside the files before it.
  throw size > limits.messagePartBytes ? fileTooLarge(where) : filesTooLarge(where);
}

/** All of the base64 at once. */
export function decodeText(data: string): Decoded {
  const decoder = new Base64Decoder(limits.messagePartBytes);
  decoder.feed(new TextEncoder().encode(data));
  return decoder.end();
}
