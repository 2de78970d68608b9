/** Folders as `multipart/form-data`: size-limited before parsing. */
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';

/**
 * @throws EngineError `body_too_large`; `invalid_request` if it is not a form, or has more parts than a folder may have
 */
export async function readForm(request: Request): Promise<FormData> {
  const length = Number(request.headers.get('content-length') ?? Number.NaN);
  if (!(length <= limits.bodyBytes)) {
    throw new EngineError('body_too_large', `A folder needs a Content-Length of up to ${limits.bodyBytes} bytes`, {
      limit_bytes: limits.bodyBytes,
    });
  }
  const type = request.headers.get('content-type') ?? '';
  const bytes = await request.arrayBuffer();
  // Counted in the raw bytes: each part becomes several objects, and a small body can contain very many.
  if (partsIn(bytes, type) > limits.catalogFiles) {
    throw new EngineError('invalid_request', `A folder may have at most ${limits.catalogFiles} files`);
  }
  try {
    return await new Response(bytes, { headers: { 'content-type': type } }).formData();
  } catch {
    throw new EngineError('invalid_request', 'The body is not multipart/form-data as its content type says');
  }
}

/** Upper bound of the number of parts; counting stops past the limit. */
function partsIn(bytes: ArrayBuffer, type: string): number {
  const boundary = /boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(type);
  const mark = `--${boundary?.[1] ?? boundary?.[2] ?? ''}`;
  const text = new TextDecoder('latin1').decode(bytes);
  // The delimiter after the last part ends the form.
  let parts = -1;
  for (let at = text.indexOf(mark); at !== -1 && parts <= limits.catalogFiles; at = text.indexOf(mark, at + 1)) {
    parts += 1;
  }
  return parts;
}
