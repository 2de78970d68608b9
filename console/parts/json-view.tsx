/** A JSON value as text, cut at a limit with a way to see all of it. */
import { useState } from 'preact/hooks';
import { count, cut } from './format.ts';
import * as limits from './limits.ts';

/** Text as it is, in a box that scrolls. */
export function TextView({
  text,
  label,
  maxChars = limits.textChars,
}: {
  readonly text: string;
  /** Accessible name. */
  readonly label: string;
  readonly maxChars?: number;
}) {
  const [isWhole, setWhole] = useState(false);
  const isCut = !isWhole && text.length > maxChars;
  return (
    <>
      <pre class="text-view" tabIndex={0} role="group" aria-label={label}>
        {isCut ? cut(text, maxChars) : text}
      </pre>
      {isCut && (
        <button type="button" class="small" onClick={() => setWhole(true)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </>
  );
}

/** A string is shown as text, everything else as indented JSON. */
export function JsonView({ value, label }: { readonly value: unknown; readonly label: string }) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '');
  return <TextView text={text} label={label} maxChars={limits.jsonChars} />;
}
