/** Parts of a Markdown text that a person uses: code to copy, and images to load. */
import { useState } from 'preact/hooks';
import { CopyButton } from '../parts/copy-button.tsx';
import { cut } from '../parts/format.ts';
import { imageUrl, showReordering } from '../parts/safe-text.ts';

const LANGUAGE_CHARS = 24;
const ALT_CHARS = 200;

export function CodeBlock({ text, language }: { readonly text: string; readonly language: string }) {
  const name = cut(showReordering(/^\S*/.exec(language)?.[0] || 'text'), LANGUAGE_CHARS);
  return (
    <div class="card code-block">
      <div class="row code-head">
        <span>{name}</span>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} role="group" aria-label={`Code: ${name}`}>
        <code>{showReordering(text)}</code>
      </pre>
    </div>
  );
}

/** An image of another server. Loading it tells that server who reads, so it waits for a click. */
export function RemoteImage({ href, alt }: { readonly href: string; readonly alt: string }) {
  const [isLoaded, setLoaded] = useState(false);
  const url = imageUrl(href);
  const text = cut(showReordering(alt), ALT_CHARS);
  if (url === null) return <span class="quiet">[image: {text}]</span>;
  if (isLoaded) return <img src={url.href} alt={text} referrerpolicy="no-referrer" />;
  return (
    <button type="button" class="small" onClick={() => setLoaded(true)}>
      Load image from {url.host}: {text}
    </button>
  );
}
