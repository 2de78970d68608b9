/** Moves the keyboard to the main part of the page. */
export function focusMain(): void {
  document.querySelector<HTMLElement>('#main')?.focus();
}

/** The keyboard goes on in the new view, if what it was on is gone. */
export function keepFocus(): void {
  if (document.activeElement === document.body) focusMain();
}
