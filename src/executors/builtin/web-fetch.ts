/** `web_fetch`: the readable text of a web page, or its JSON (M3, X2). */
import { parseJson, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Executor } from '../executor.ts';
import { failure } from '../../domain/failure.ts';
import { failureOf, wrongParameter } from '../failure.ts';
import { wasCut } from '../outbound/outbound.ts';
import { requestPage, maxCharsOf, mediaTypeOf, readText } from './web-page.ts';

const ACCEPT = 'text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.8,*/*;q=0.5';
const TEXTUAL = /^text\/|[/+](json|xml|yaml|x-yaml|javascript|ecmascript|x-ndjson|csv|toml|x-www-form-urlencoded)$/;

export const webFetch: Executor = {
  async execute({ parameters }, context) {
    const { method = 'GET', raw } = parameters;
    if (method !== 'GET' && method !== 'HEAD') return wrongParameter('method', 'GET or HEAD', method);
    const asked = await requestPage(parameters, method, ACCEPT, context);
    if (!asked.ok) return asked;
    const { response } = asked;
    const type = mediaTypeOf(response);
    const url = response.url === '' ? String(parameters['url']) : response.url;
    const facts: JsonObject = { url, status: response.status, content_type: type };
    if (method === 'HEAD') {
      void response.body?.cancel().catch(() => {});
      return { ok: true, output: { ...facts, headers: shownHeaders(response.headers) } };
    }
    if (type !== '' && !TEXTUAL.test(type)) {
      void response.body?.cancel().catch(() => {});
      return failure('unsupported_content', `${url} is ${type}; web_fetch reads HTML, JSON and other text`);
    }
    try {
      return { ok: true, output: { ...facts, ...(await contentOf(response, type, raw === true)) } };
    } catch (fault) {
      return failureOf(fault, context.signal, 'fetch_failed');
    }

    async function contentOf(page: Response, mediaType: string, keepHtml: boolean): Promise<JsonObject> {
      const maxChars = maxCharsOf(parameters);
      if (/[/+]json$/.test(mediaType)) {
        // A JSON value cannot be cut: it is complete, or it is returned as text.
        const { text, truncated } = await readText(page, limits.fetchBytes);
        const json = truncated || wasCut(page) || text.length > maxChars ? undefined : parseJson(text);
        return json === undefined ? cutText(text, maxChars, truncated || wasCut(page)) : { json, truncated: false };
      }
      if (!keepHtml && (mediaType === 'text/html' || mediaType === 'application/xhtml+xml')) {
        const read = await context.readHtml(page, { selectors: [], maxChars });
        return { title: read.title, text: read.text, truncated: read.truncated || wasCut(page) };
      }
      const { text, truncated } = await readText(page, maxChars);
      return cutText(text, maxChars, truncated || wasCut(page));
    }
  },
};

function cutText(text: string, maxChars: number, truncated: boolean): JsonObject {
  return { text: text.slice(0, maxChars), truncated: truncated || text.length > maxChars };
}

function shownHeaders(headers: Headers): JsonObject {
  const shown: JsonObject = {};
  for (const [name, value] of headers) if (name !== 'set-cookie') shown[name] = value.slice(0, 1_000);
  return shown;
}
