/** The first UTF-16 code units of a text; one less if the cut would divide a surrogate pair. */
export function cutText(text: string, chars: number): string {
  const cut = text.slice(0, chars);
  return /[\uD800-\uDBFF]$/.test(cut) && text.length > chars ? cut.slice(0, -1) : cut;
}
