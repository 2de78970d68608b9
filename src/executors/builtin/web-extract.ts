/** `web_extract`: the elements of a web page that CSS selectors match, and its links (M3, X2). */
import { messageOf } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Executor } from '../executor.ts';
import { failure } from '../../domain/failure.ts';
import { failureOf, wrongParameter } from '../failure.ts';
import { OutboundError } from '../../domain/outbound-error.ts';
import { wasCut } from '../outbound/outbound.ts';
import { requestPage, maxCharsOf, mediaTypeOf } from './web-page.ts';

export const webExtract: Executor = {
  async execute({ parameters }, context) {
    const { selectors } = parameters;
    const named = namedSelectors(selectors);
    if (named === null) {
      return wrongParameter('selectors', 'an object of names and CSS selectors, or a list of selectors', selectors);
    }
    const wanted = [...new Set(Object.values(named))];
    const refusal = tooMuch(wanted);
    if (refusal !== null) return refusal;
    const asked = await requestPage(parameters, 'GET', 'text/html,application/xhtml+xml', context);
    if (!asked.ok) return asked;
    const { response } = asked;
    const type = mediaTypeOf(response);
    const url = response.url === '' ? String(parameters['url']) : response.url;
    if (type !== '' && !/html|xml/.test(type)) {
      void response.body?.cancel().catch(() => {});
      return failure('unsupported_content', `${url} is ${type}; web_extract reads HTML (web_fetch reads other text)`);
    }
    const maxChars = maxCharsOf(parameters);
    try {
      const page = await context.readHtml(response, { selectors: wanted, maxChars });
      const { matches, cut } = within(named, page.matches, maxChars);
      const output: JsonObject = { url, title: page.title };
      if (wanted.length > 0) output['matches'] = matches;
      else output['text'] = page.text;
      if (parameters['links'] === true || (wanted.length === 0 && parameters['links'] !== false)) {
        output['links'] = page.links.map((link) => ({ href: absolute(link.href, url), text: link.text }));
      }
      output['truncated'] = page.truncated || cut || wasCut(response);
      return { ok: true, output };
    } catch (fault) {
      // The reader throws a TypeError for an invalid selector.
      if (fault instanceof TypeError && !context.signal.aborted && !(fault instanceof OutboundError)) {
        return failure(
          'invalid_selector',
          `The page could not be read with ${wanted.join(' | ')}: ${messageOf(fault)}`,
        );
      }
      return failureOf(fault, context.signal, 'fetch_failed');
    }
  },
};

/** Every selector is tried on every element of the page. */
function tooMuch(selectors: readonly string[]): ReturnType<typeof wrongParameter> | null {
  if (selectors.length > limits.htmlSelectors) {
    return wrongParameter('selectors', `at most ${limits.htmlSelectors} selectors`, selectors.length);
  }
  const long = selectors.find((selector) => selector.length > limits.htmlSelectorChars);
  return long === undefined
    ? null
    : wrongParameter('selectors', `selectors of at most ${limits.htmlSelectorChars} characters`, long);
}

/** Maps names to selectors; a list uses the selectors as names. Null if it is neither. */
function namedSelectors(selectors: Json | undefined): Record<string, string> | null {
  if (selectors === undefined || selectors === null) return {};
  const entries = Array.isArray(selectors)
    ? selectors.map((selector) => [String(selector), selector] as const)
    : isJsonObject(selectors)
      ? Object.entries(selectors)
      : null;
  if (entries === null) return null;
  const named: [string, string][] = [];
  for (const [name, selector] of entries) {
    if (typeof selector !== 'string' || selector.trim() === '') return null;
    named.push([name, selector]);
  }
  return Object.fromEntries(named);
}

/** The texts found, by name, limited to `maxChars` in total. */
function within(
  named: Readonly<Record<string, string>>,
  found: Readonly<Record<string, readonly string[]>>,
  maxChars: number,
): { readonly matches: JsonObject; readonly cut: boolean } {
  let left = maxChars;
  let cut = false;
  const matches: JsonObject = {};
  for (const [name, selector] of Object.entries(named)) {
    const kept: string[] = [];
    for (const text of found[selector] ?? []) {
      if (left <= 0) {
        cut = true;
        break;
      }
      kept.push(text.slice(0, left));
      cut ||= text.length > left;
      left -= text.length;
    }
    matches[name] = kept;
  }
  return { matches, cut };
}

function absolute(href: string, base: string): string {
  return URL.canParse(href, base) ? new URL(href, base).href : href;
}
