/** Makes text from outside harmless where it is shown to a model: it can look like protocol, never be it (X1). */

/** Tags that belong to the runtime alone (P2). */
const RUNTIME_TAGS = ['context_feed', 'action_result', 'results', 'system'] as const;

/** Every tag that means something to the parser or to the model. */
export const RESERVED_TAGS = ['thought', 'think', 'thinking', 'action', 'response', ...RUNTIME_TAGS] as const;

const OPENER = /[<\uFF1C\uFE64]/;
/** Invisible characters that could hide a name: soft hyphen, zero-width space and joiners, direction marks. */
const INVISIBLE = /\p{Cf}/gu;
/** Longest stretch looked at behind an opener; bounds the cost of a text full of them. */
const LOOK_AHEAD_CHARS = 48;
/** A name that goes on with a character outside ASCII has to be normalised before it can be judged. */
const BEYOND_ASCII = `[\\s/\\w]{0,${LOOK_AHEAD_CHARS}}[^\\x00-\\x7f]`;

const reserved = matcherOf(RESERVED_TAGS);
const runtimeOnly = matcherOf(RUNTIME_TAGS);

/**
 * Replaces the `<` of opening and closing reserved tags by `&lt;`, in any case, also where the bracket
 * or the name is written in full-width letters or with invisible characters. Entities (`&lt;action`)
 * stay as they are: nothing decodes them. Other tags are kept to the letter.
 *
 * @param tags `reserved` for data of tools and feeds; `runtime` for people's own words, which may
 *   well talk about actions but must not pass for a result
 */
export function escapeReservedTags(text: string, tags: 'reserved' | 'runtime' = 'reserved'): string {
  const { candidate, name } = tags === 'reserved' ? reserved : runtimeOnly;
  return text.replace(candidate, (opener, beyond: string | undefined, at: number) => {
    if (beyond === undefined) return '&lt;';
    const [beginning = ''] = text.slice(at + 1, at + 1 + LOOK_AHEAD_CHARS).split(OPENER, 1);
    const ahead = beginning.normalize('NFKC');
    // An invisible character may stand inside the name, or be what ends it.
    return name.test(ahead) || name.test(ahead.replace(INVISIBLE, '')) ? '&lt;' : opener;
  });
}

/** Text that any endpoint accepts as JSON: lone surrogates and control characters become U+FFFD. */
export function legible(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.toWellFormed().replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/g, '\uFFFD');
}

interface Matcher {
  /** `<` and the characters that a model may read as one, before a name; its group says that the name needs a look. */
  readonly candidate: RegExp;
  /** A name at the beginning of a normalised text. */
  readonly name: RegExp;
}

function matcherOf(names: readonly string[]): Matcher {
  const name = `[\\s/]*(?:${names.join('|')})(?![\\w-])`;
  return {
    candidate: new RegExp(`${OPENER.source}(?:(?=(${BEYOND_ASCII}))|(?=${name}))`, 'gi'),
    name: new RegExp(`^${name}`, 'i'),
  };
}
