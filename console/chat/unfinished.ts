/** Markdown whose end has not arrived yet, without the flicker of constructs that the next characters complete. */

const FENCE = /^[ \t>]*(`{3,}|~{3,})([^\n]*)$/gm;
/** A line that may become a heading, a rule, a list, a fence or a table. */
const MARKER = /^(?:[-=*+_#`~|:> \t]+|[ \t>]*\d{1,9}[.)]?[ \t]*)$/;

/** Longest link or image whose half is left out. */
const TAIL_CHARS = 1_000;

/** The text as it will probably go on: open emphasis and code are closed, half a link or marker is left out. */
export function completed(text: string): string {
  const at = text.lastIndexOf('\n') + 1;
  const line = text.slice(at);
  if (isInFence(text)) return `${text}\n`;
  if (line !== '' && MARKER.test(line)) return text.slice(0, at);
  return text.slice(0, at) + closed(line);
}

function isInFence(text: string): boolean {
  let open: string | null = null;
  for (const [, marker = '', rest = ''] of text.matchAll(FENCE)) {
    if (open === null) open = marker;
    else if (marker.startsWith(open) && rest.trim() === '') open = null;
  }
  return open !== null;
}

function closed(line: string): string {
  const at = Math.max(0, line.length - TAIL_CHARS);
  const tail = line
    .slice(at)
    .replace(/!\[[^\]]*(?:\]\([^)]*)?$/, '')
    .replace(/\[([^[\]]*)\]\([^)]*$/, '$1');
  const whole = line.slice(0, at) + tail;
  if (isOdd(whole, '`')) return whole.endsWith('`') ? whole.slice(0, -1) : `${whole}\``;
  for (const mark of ['**', '~~']) {
    if (!isOdd(whole, mark)) continue;
    const bare = withoutMarks(whole);
    return isOdd(bare, mark) ? `${bare.trimEnd()}${mark}` : bare;
  }
  return whole;
}

/** Without the marks of emphasis at its end. */
function withoutMarks(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === '*' || text[end - 1] === '~')) end -= 1;
  return text.slice(0, end);
}

function isOdd(text: string, mark: string): boolean {
  return text.split(mark).length % 2 === 0;
}
