/**
 * Admits the content of a message (C2): decodes and checks all of its parts before anything is stored.
 *
 * Invariant: it writes nothing. A message with an invalid part leaves no trace.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { Artifact } from '../domain/artifact.ts';
import { decodeBase64 } from '../domain/base64.ts';
import type { ContentPart, MessageContent } from '../domain/content.ts';
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

export interface AdmittedContent {
  readonly content: MessageContent;
  /** The bytes of its files by their SHA-256, each once. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/**
 * @param artifact reads an artifact of the session. @throws EngineError `unknown_artifact`
 * @throws EngineError `invalid_content`, `content_too_large`, `content_type_mismatch`, `unsupported_media_type`,
 *   `unknown_artifact`; the path of the part is in the message
 */
export async function admitContent(
  given: readonly GivenPart[],
  artifact: (id: string) => Promise<Pick<Artifact, 'name' | 'content_type' | 'bytes'>>,
): Promise<AdmittedContent> {
  const files = new Map<string, Uint8Array>();
  const content: ContentPart[] = [];
  let size = 0;
  for (const [index, part] of given.entries()) {
    if (part.type === 'text') {
      content.push({ type: 'text', text: part.text });
      continue;
    }
    const where = `"content[${index}]"`;
    const from = part.artifact === undefined ? null : await artifact(part.artifact);
    const bytes = from?.bytes ?? decoded(part.data ?? '', where);
    size += bytes.length;
    checkSize(bytes.length, size, where);
    const name = part.name ?? from?.name ?? `${part.type}-${index + 1}`;
    const type = typeOf(part, bytes, from?.content_type ?? null, where);
    const hash = bytesToHex(sha256(bytes));
    files.set(hash, bytes);
    content.push({ type: part.type, name, media_type: type, size: bytes.length, sha256: hash });
  }
  return { content, files };
}

function checkSize(bytes: number, total: number, where: string): void {
  if (bytes === 0) throw new EngineError('invalid_content', `${where}: the file is empty`);
  if (bytes > limits.messagePartBytes) {
    const message = `${where}: the file has ${bytes} bytes; a part may have ${limits.messagePartBytes}`;
    throw new EngineError('content_too_large', message, { limit_bytes: limits.messagePartBytes });
  }
  if (total > limits.messageFileBytes) {
    const message = `${where}: the files of a message may have ${limits.messageFileBytes} bytes together`;
    throw new EngineError('content_too_large', message, { limit_bytes: limits.messageFileBytes });
  }
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

/** The type of an artifact counts only if its bytes can have it: a tool wrote it. */
function inheritedType(inherited: string | null, bytes: Uint8Array, found: string): string {
  const type = inherited === null ? null : readMediaType(inherited);
  return type !== null && canHaveType(bytes, type) ? type : found;
}

function decoded(base64: string, where: string): Uint8Array {
  // Checked before it is decoded: three bytes for each four characters.
  if (base64.length > Math.ceil(limits.messagePartBytes / 3) * 4) {
    const message = `${where}: the file has more than ${limits.messagePartBytes} bytes`;
    throw new EngineError('content_too_large', message, { limit_bytes: limits.messagePartBytes });
  }
  const bytes = decodeBase64(base64);
  if (bytes !== null) return bytes;
  throw new EngineError('invalid_content', `${where}: "data" must be base64`);
}
