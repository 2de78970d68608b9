/** Copies a text and confirms it. */
import { useEffect, useState } from 'preact/hooks';

const SHOWN_MS = 2_000;

export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return undefined;
    const timer = setTimeout(() => setSaid(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = (): void => {
    // Without a secure origin there is no clipboard.
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('no clipboard'));
    copied.then(
      () => setSaid('Copied'),
      () => setSaid('Not allowed here'),
    );
  };
  return (
    <button type="button" class="small" onClick={copy}>
      {said ?? label}
    </button>
  );
}
