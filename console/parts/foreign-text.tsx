/** A short text from a manifest, a model or a tool: it does not change the order of the text around it. */
import { showReordering } from './safe-text.ts';

export function ForeignText({ text }: { readonly text: string }) {
  return <bdi>{showReordering(text)}</bdi>;
}
