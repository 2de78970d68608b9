/** Escapes external text before it is shown to a model: it may look like the protocol but has no effect (X1). */

/** Tags reserved for the runtime (P2). */
const RUNTIME_TAGS = ['context_feed', 'action_result', 'results', 'system', 'attached_file'] as const;

/** Every tag that the parser or the model interprets. */
export const RESERVED_TAGS = ['thought', 'think', 'thinking', 'action', 'response', ...RUNTIME_TAGS] as const;

const OPENER = /[<\uFF1C\uFE64]/;
/** Invisible characters that could hide a name: soft hyphen, zero-width space and joiners, direction marks. */
const INVISIBLE = /\p{Cf}/gu;
/** Maximum look-ahead after an opener; bounds the cost of a text full of openers. */
const LOOK_AHEAD_CHARS = 48;
/** A name with a character outside ASCII must be normalised before it is checked. */
const BEYOND_ASCII = `[\\s/\\w]{0,${LOOK_AHEAD_CHARS}}[^\\x00-\\x7f]`;

const reserved = matcherOf(RESERVED_TAGS);
const runtimeOnly = matcherOf(RUNTIME_TAGS);

/**
 * Replaces the `<` of opening and closing reserved tags by `&lt;`, case-insensitively. Also covers brackets and names
 * in full-width letters or with invisible characters. Entities (`&lt;action`) are left unchanged, because nothing
 * decodes them. Other tags are left unchanged.
 *
 * @param tags `reserved` for data from tools and feeds; `runtime` for user text, which may mention actions but must
 *   not be mistaken for a result
 */
export function escapeReservedTags(text: string, tags: 'reserved' | 'runtime' = 'reserved'): string {
  const { candidate, name } = tags === 'reserved' ? reserved : runtimeOnly;
  return text.replace(candidate, (opener, beyond: string | undefined, at: number) => {
    if (beyond === undefined) return '&lt;';
    const [beginning = ''] = text.slice(at + 1, at + 1 + LOOK_AHEAD_CHARS).split(OPENER, 1);
    const ahead = beginning.normalize('NFKC');
    // An invisible character may be inside the name or end it.
    return name.test(ahead) || name.test(ahead.replace(INVISIBLE, '')) ? '&lt;' : opener;
  });
}

/** Makes text acceptable as JSON for any endpoint: lone surrogates and control characters become U+FFFD. */
export function sanitizeText(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.toWellFormed().replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/g, '\uFFFD');
}

interface Matcher {
  /** `<`, or a character that a model may read as `<`, before a name. Its group means that the name must be checked. */
  readonly candidate: RegExp;
  /** A name at the start of a normalised text. */
  readonly name: RegExp;
}

function matcherOf(names: readonly string[]): Matcher {
  const name = `[\\s/]*(?:${names.join('|')})(?![\\w-])`;
  return {
    candidate: new RegExp(`${OPENER.source}(?:(?=(${BEYOND_ASCII}))|(?=${name}))`, 'gi'),
    name: new RegExp(`^${name}`, 'i'),
  };
}
