/** How a file of a workspace is served: with a type that no browser runs, and with a name that any header can carry (C7). */
import { canHaveType, sniffMediaType } from './media-type.ts';

/**
 * The types that are served, by the end of the name. None of them is active: HTML, SVG, XML and scripts are plain text. A
 * type that the bytes contradict does not count.
 */
const TYPES: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  gif: 'image/gif',
  gz: 'application/gzip',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  json: 'application/json',
  md: 'text/markdown',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  pdf: 'application/pdf',
  png: 'image/png',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  tsv: 'text/tab-separated-values',
  wav: 'audio/wav',
  webp: 'image/webp',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  zip: 'application/zip',
};

/** The type that a browser is told: nothing that it could run or render as markup. */
export function servedFileType(path: string, bytes: Uint8Array): string {
  const ending = /\.(\w{1,5})$/.exec(path)?.[1]?.toLowerCase() ?? '';
  const named = Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined;
  const type = named !== undefined && canHaveType(bytes, named) ? named : sniffMediaType(bytes);
  return type.startsWith('text/') ? `${type}; charset=utf-8` : type;
}

/**
 * `Content-Disposition` of a download: the name in ASCII, and in UTF-8 (RFC 6266) if it has other characters.
 *
 * @param name one name, not a path, of valid Unicode
 */
export function attachmentNamed(name: string): string {
  const plain = name.replaceAll(/[^\w .()+,=@~-]/g, '_');
  // These may not be in an encoded value, although encodeURIComponent leaves them as they are.
  const encoded = encodeURIComponent(name).replaceAll(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
  return `attachment; filename="${plain}"${plain === name ? '' : `; filename*=UTF-8''${encoded}`}`;
}
