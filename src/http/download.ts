/** A file as a response: a download, never rendered as a page of this origin (H5, C2, C7). */
import { EngineError } from '../domain/errors.ts';
import type { Download } from '../domain/artifact.ts';

/**
 * Of every file: its content comes from a tool or a user. It is displayed according to its type or saved, and nothing in it
 * runs.
 */
export const DOWNLOAD_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'same-site',
} as const;

/** How the content at a path is cached: one that can change is asked for again each time. */
const CACHING = { immutable: 'private, max-age=3600, immutable', changing: 'private, no-cache' } as const;

interface DownloadOptions {
  /** Default: `attachment`, with the name. */
  readonly disposition?: string;
  readonly caching?: keyof typeof CACHING;
}

/**
 * The whole file, or the range of `Range: bytes=…`.
 *
 * @throws EngineError `range_not_satisfiable`
 */
export function downloadResponse(
  { id, name, content_type: type, bytes }: Download,
  range: string | null,
  { disposition = `attachment; filename="${name}"`, caching = 'immutable' }: DownloadOptions = {},
): Response {
  const headers = {
    ...DOWNLOAD_HEADERS,
    'content-type': type,
    'content-disposition': disposition,
    'cache-control': CACHING[caching],
    'accept-ranges': 'bytes',
    // The host compresses it for some requests: a cache must not answer a range of bytes from compressed ones.
    vary: 'accept-encoding',
    etag: `"${id}"`,
  };
  const part = range === null ? null : partOf(range, bytes.length);
  if (part === null) return new Response(bytes as Uint8Array<ArrayBuffer>, { headers });
  const { from, to } = part;
  return new Response(bytes.slice(from, to + 1), {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${from}-${to}/${bytes.length}` },
  });
}

/** First and last byte; null for unsupported forms, such as several ranges: then everything is sent. */
function partOf(range: string, size: number): { from: number; to: number } | null {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range.trim());
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return null;
  const from = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const to = first === '' || last === '' ? size - 1 : Math.min(size - 1, Number(last));
  if (from > to) {
    const message = `The file has ${size} bytes (requested: ${range.slice(0, 60)})`;
    throw new EngineError('range_not_satisfiable', message, { size });
  }
  return { from, to };
}
