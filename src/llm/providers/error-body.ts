/** Converts the error answers of different servers to the form that the client library reads. */
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject, parseJson } from '../../domain/json.ts';

/**
 * Returns `{"error": {"message", "code"}}` for any of these forms: that form itself, a list of one (Gemini), a plain
 * `error` text (Ollama), `message` or `detail` at the top level (Mistral, vLLM), `errors` (Cloudflare), plain text.
 */
export function errorBody(text: string): string {
  const error = errorOf(parseJson(text)) ?? { message: plain(text) };
  return JSON.stringify({ error });
}

function errorOf(value: Json | undefined): JsonObject | null {
  if (Array.isArray(value)) return errorOf(value[0]);
  if (!isJsonObject(value)) return null;
  const { error, errors, message, detail } = value;
  if (isJsonObject(error)) return error;
  if (typeof error === 'string') return { message: error };
  if (Array.isArray(errors) && isJsonObject(errors[0])) return errors[0];
  const reason = message ?? detail;
  if (reason == null) return null;
  return { ...value, message: typeof reason === 'string' ? reason : JSON.stringify(reason) };
}

/** The text of a proxy's error page, without markup. Takes linear time, because a page may be hostile. */
function plain(text: string): string {
  const lower = text.toLowerCase();
  let visible = '';
  let at = 0;
  for (let open = text.indexOf('<'); open !== -1; open = text.indexOf('<', at)) {
    const hidden = HIDDEN.find((name) => lower.startsWith(name, open + 1));
    const last = hidden === undefined ? open : lower.indexOf(`</${hidden}`, open);
    const close = last === -1 ? -1 : text.indexOf('>', last);
    if (close === -1) break;
    visible += `${text.slice(at, open)} `;
    at = close + 1;
  }
  return (visible + text.slice(at)).replace(/\s+/g, ' ').trim();
}

const HIDDEN = ['script', 'style'];
