/** Makes text from outside harmless where it is shown to a model: it can look like protocol, never be it (X1). */

/** Tags that belong to the runtime alone (P2). */
const RUNTIME_TAGS = ['context_feed', 'action_result', 'results', 'system'] as const;

/** Every tag that means something to the parser or to the model. */
export const RESERVED_TAGS = ['thought', 'think', 'thinking', 'action', 'response', ...RUNTIME_TAGS] as const;

/** `<` and the characters that a model may read as one. */
const OPENER = /[<\uFF1C\uFE64]/g;
/** Invisible characters that could hide a name: soft hyphen, zero-width space and joiners, direction marks. */
const INVISIBLE = /\p{Cf}/gu;
/** Longest stretch looked at behind an opener; bounds the cost of a text full of them. */
const LOOK_AHEAD_CHARS = 48;

const reserved = nameMatcher(RESERVED_TAGS);
const runtimeOnly = nameMatcher(RUNTIME_TAGS);

/**
 * Replaces the `<` of opening and closing reserved tags by `&lt;`, in any case, also where the bracket
 * or the name is written in full-width letters or with invisible characters. Entities (`&lt;action`)
 * stay as they are: nothing decodes them. Other tags are kept to the letter.
 *
 * @param tags `reserved` for data of tools and feeds; `runtime` for people's own words, which may
 *   well talk about actions but must not pass for a result
 */
export function neutralise(text: string, tags: 'reserved' | 'runtime' = 'reserved'): string {
  const matcher = tags === 'reserved' ? reserved : runtimeOnly;
  return text.replace(OPENER, (opener, at: number) => {
    const ahead = text.slice(at + 1, at + 1 + LOOK_AHEAD_CHARS).normalize('NFKC');
    // An invisible character may stand inside the name, or be what ends it.
    return matcher.test(ahead) || matcher.test(ahead.replace(INVISIBLE, '')) ? '&lt;' : opener;
  });
}

/** Text that any endpoint accepts as JSON: lone surrogates and control characters become U+FFFD. */
export function legible(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.toWellFormed().replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/g, '\uFFFD');
}

function nameMatcher(names: readonly string[]): RegExp {
  return new RegExp(`^[\\s/]*(?:${names.join('|')})(?![\\w-])`, 'i');
}
