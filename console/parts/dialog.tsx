/** A modal dialog. Escape closes it, and the focus returns to where it was. */
import { useEffect, useId, useRef } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

export function Dialog({
  title,
  close,
  children,
}: {
  readonly title: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={close}>
      <header class="row">
        <h2 id={id} class="grow">
          {title}
        </h2>
        <button type="button" class="plain" aria-label="Close" onClick={() => dialog.current?.close()}>
          <span aria-hidden="true">✕</span>
        </button>
      </header>
      {children}
    </dialog>
  );
}
