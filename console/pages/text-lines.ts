/** Lines of a text, counted from 1. */

/** A line; empty if the text is shorter. */
export function lineOf(text: string, line: number): string {
  return text.split('\n')[line - 1] ?? '';
}

/** Selects a line of a text box, and scrolls to it. */
export function selectLine(box: HTMLTextAreaElement, line: number): void {
  const lines = box.value.split('\n');
  const from = lines.slice(0, line - 1).reduce((offset, { length }) => offset + length + 1, 0);
  box.focus();
  box.setSelectionRange(from, from + lineOf(box.value, line).length);
  box.scrollTop = (box.scrollHeight / lines.length) * (line - 1) - box.clientHeight / 2;
}
