/** Reads Server-Sent Events from text that is cut anywhere. Only their data: the events of Cortex Edge have the rest in it. */

const LINE_END = /\r\n?|\n/;
const DATA = /^data(?:: ?(.*))?$/s;

/**
 * The reader of one stream.
 *
 * @returns takes the next piece of the stream, cut anywhere, and gives the data of the events that it completes, in order;
 *   an event that the stream's end cuts off is dropped
 */
export function sseReader(): (text: string) => string[] {
  /** The unfinished line. */
  let rest = '';
  /** The lines of the unfinished event. */
  let data: string[] = [];
  /** The text so far ended with CR: a LF that follows belongs to it. */
  let endsWithCr = false;
  return (text) => {
    const events: string[] = [];
    // A long line is not searched again with each of its pieces.
    const lines = (endsWithCr ? text.replace(/^\n/, '') : text).split(LINE_END);
    lines[0] = `${rest}${lines[0]}`;
    rest = lines.pop() ?? '';
    if (text !== '') endsWithCr = text.endsWith('\r');
    for (const line of lines) {
      const field = DATA.exec(line);
      if (field !== null) data.push(field[1] ?? '');
      if (line !== '' || data.length === 0) continue;
      events.push(data.join('\n'));
      data = [];
    }
    return events;
  };
}
