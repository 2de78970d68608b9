/** The files that clients send with their messages: what they send, and why some messages are refused. */
import type { SqlRow } from '../../../src/domain/ports/storage.ts';
import { createHash } from 'node:crypto';
import { base64Of } from '../../../src/domain/base64.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { StoredFiles } from '../observation.ts';
import type { GivenPart } from '../../../src/policies/message-content.ts';
import type { FileScript } from '../history.ts';
import type { Disk } from './disk.ts';

const PNG = '\x89PNG\r\n\x1a\n';
/** Some files need several rows (small-limits.ts); three of them are too large together. */
const SIZES = [60, 1_400, 300];
const NO_ARTIFACT = 'art_000000000000_1_1';

/** A small image, as the characters of its bytes. */
export function pngOf(text: string): string {
  // The signature with a space has nine bytes, so the text is recognised in base64.
  return `${PNG} ${text}`;
}

export function bytesOf(characters: string): Uint8Array {
  return Uint8Array.from(characters, (character) => character.charCodeAt(0));
}

export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The text of a file: the same for the same number. */
function textOfFile(body: number): string {
  const line = `bytes of the image of body ${body} `;
  return line.repeat(Math.ceil((SIZES[body % SIZES.length] ?? 0) / line.length));
}

function nameOfFile(message: number, place: number, { form }: FileScript): string {
  return `m${message}f${place}.${form === 'text' || form === 'false_type' ? 'txt' : 'png'}`;
}

/** @param artifact the id of an artifact that the client knows; null if it knows none */
export function givenPart(message: number, place: number, script: FileScript, artifact: string | null): GivenPart {
  const name = nameOfFile(message, place, script);
  const text = textOfFile(script.body);
  const image = { type: 'image', name } as const;
  switch (script.form) {
    case 'image':
      return { ...image, data: base64Of(bytesOf(pngOf(text))) };
    case 'text':
      return { type: 'file', name, media_type: 'text/plain', data: base64Of(bytesOf(text)) };
    case 'artifact':
      return artifact === null ? { ...image, data: base64Of(bytesOf(pngOf('no result'))) } : { ...image, artifact };
    case 'unknown_artifact':
      return { ...image, artifact: NO_ARTIFACT };
    case 'large':
      return { ...image, data: base64Of(bytesOf(pngOf('x'.repeat(limits.messagePartBytes)))) };
    case 'false_type':
      return { ...image, media_type: 'image/png', data: base64Of(bytesOf(text)) };
  }
}

/** Codes with which these files may be refused; empty if they are accepted. */
export function refusalsOf(files: readonly FileScript[]): ReadonlySet<string> {
  const own = files.flatMap(({ form }) => REFUSALS[form] ?? []);
  const sizes = files.map(({ form, body }) => (form === 'artifact' ? 0 : textOfFile(body).length));
  const isTooMuch = sizes.reduce((sum, size) => sum + size, 0) > limits.messageFileBytes;
  return new Set([...own, ...(isTooMuch ? ['content_too_large'] : [])]);
}

const REFUSALS: Readonly<Partial<Record<FileScript['form'], string>>> = {
  large: 'content_too_large',
  false_type: 'content_type_mismatch',
  unknown_artifact: 'unknown_artifact',
};

/** Long inputs are in chunk rows. */
const INPUTS = `SELECT run, CASE WHEN input <> '' THEN input ELSE (SELECT GROUP_CONCAT(text, '') FROM
  (SELECT text FROM chunks WHERE seq = -runs.run AND field = 'input' ORDER BY part)) END AS input FROM runs`;

const RECEIVED = `SELECT CASE WHEN input <> '' THEN input ELSE (SELECT GROUP_CONCAT(text, '') FROM
  (SELECT text FROM chunks WHERE seq = -steered.run AND field = 'steered ' || number ORDER BY part)) END AS input FROM steered`;

/** Without the bytes of a commit that has not been made, or was cut off. */
const HELD = `SELECT sha256, bytes FROM blobs WHERE sha256 IN (SELECT sha256 FROM message_files WHERE state = 'stored')
  ORDER BY sha256, part`;

/** The files that stored messages and the workspace refer to, and those that are stored. */
export function storedFiles(disk: Disk): StoredFiles {
  // Some tables are created on first use.
  const rows = (table: string, sql: string): SqlRow[] => (disk.has(table) ? disk.exec(sql, [], false) : []);
  const inputs = [...rows('runs', INPUTS), ...rows('steered', RECEIVED)].map(({ input }) => String(input));
  const references = inputs.flatMap((text) =>
    Array.from(text.matchAll(/"sha256":"([0-9a-f]{64})"/g), ([, hash = '']) => hash),
  );
  const hashes = new Map<string, ReturnType<typeof createHash>>();
  for (const { sha256 } of rows('workspace', `SELECT sha256 FROM workspace`)) references.push(String(sha256));
  for (const { sha256, bytes } of rows('blobs', HELD)) {
    const hash = hashes.get(String(sha256)) ?? createHash('sha256');
    hashes.set(String(sha256), hash.update(bytes as Uint8Array));
  }
  const files = Array.from(hashes, ([name, hash]) => ({ name, hash: hash.digest('hex') }));
  return { references: [...new Set(references)], files };
}
