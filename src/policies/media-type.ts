/** Media types of files, found in their bytes: what a client says about a file is checked (C2). */

/** A type that its first bytes show. */
interface Signature {
  readonly type: string;
  /** Bytes at their offset, as hexadecimal. */
  readonly bytes: readonly (readonly [offset: number, hex: string])[];
  /** Other formats that are stored in this one. */
  readonly contains?: RegExp;
}

const SIGNATURES: readonly Signature[] = [
  { type: 'image/png', bytes: [[0, '89504e470d0a1a0a']] },
  { type: 'image/jpeg', bytes: [[0, 'ffd8ff']] },
  { type: 'image/gif', bytes: [[0, '474946383761']] },
  { type: 'image/gif', bytes: [[0, '474946383961']] },
  {
    type: 'image/webp',
    bytes: [
      [0, '52494646'],
      [8, '57454250'],
    ],
  },
  { type: 'application/pdf', bytes: [[0, '255044462d']] },
  { type: 'application/gzip', bytes: [[0, '1f8b']], contains: /^application\/(x-gzip|x-tgz|x-gtar|x-tar)$/ },
  {
    type: 'application/zip',
    bytes: [[0, '504b0304']],
    contains:
      /^application\/(x-zip-compressed|epub\+zip|java-archive|vnd\.openxmlformats-officedocument\..+|vnd\.oasis\.opendocument\..+)$/,
  },
];

/** The types of images that models take. */
export const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

const MEDIA_TYPE = /^[a-z0-9][\w.+-]{0,60}\/[a-z0-9][\w.+-]{0,90}$/;
const TEXT = 'text/plain';
const PIECE_BYTES = 65_536;
const UNKNOWN = 'application/octet-stream';

/** The type that the bytes show: a known format, `text/plain` for UTF-8, or `application/octet-stream`. */
export function sniffMediaType(bytes: Uint8Array): string {
  return signatureOf(bytes)?.type ?? (isText(bytes) ? TEXT : UNKNOWN);
}

/** Lower case, without parameters; null if it is not a media type. */
export function readMediaType(stated: string): string | null {
  const type = (stated.split(';', 1)[0] ?? '').trim().toLowerCase();
  return MEDIA_TYPE.test(type) ? type : null;
}

/** Whether a file with these bytes can have this type. Formats that are not known here are not contradicted. */
export function canHaveType(bytes: Uint8Array, type: string): boolean {
  const found = signatureOf(bytes);
  if (found !== undefined) return found.type === type || type === UNKNOWN || found.contains?.test(type) === true;
  if (SIGNATURES.some((known) => known.type === type)) return false;
  return !type.startsWith('text/') || isText(bytes);
}

function signatureOf(bytes: Uint8Array): Signature | undefined {
  const hex = [...bytes.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return SIGNATURES.find((known) => known.bytes.every(([offset, part]) => hex.startsWith(part, offset * 2)));
}

function isText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false;
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });
    // In pieces, so that the text is never held as a whole.
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      decoder.decode(bytes.subarray(at, at + PIECE_BYTES), { stream: true });
    }
    decoder.decode();
    return true;
  } catch {
    return false;
  }
}
