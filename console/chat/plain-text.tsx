/** Text as it is, in the flow of the page; a long one is in a box, cut with a way to see all of it. */
import { TextView } from '../parts/json-view.tsx';
import * as limits from '../parts/limits.ts';
import { showReordering } from '../parts/safe-text.ts';

export function PlainText({ text }: { readonly text: string }) {
  const shown = showReordering(text);
  return shown.length > limits.textChars ? <TextView text={shown} label="Text" /> : <p class="plain-text">{shown}</p>;
}
