/** Reads Server-Sent Events from text that is cut anywhere. Only their data: the events of Cortex Edge have the rest in it. */

const LINE_END = /\r\n?|\n/;
const DATA = /^data(?:: ?(.*))?$/s;

export class SseReader {
  /** The unfinished line. */
  #line = '';
  /** The lines of the unfinished event. */
  #data: string[] = [];
  /** The text so far ended with CR: a LF that follows belongs to it. */
  #endsWithCr = false;

  /**
   * @param text the next piece of the stream, cut anywhere
   * @returns the data of the events that it completes, in order; an event that the stream's end cuts off is dropped
   */
  feed(text: string): string[] {
    const events: string[] = [];
    // A long line is not searched again with each of its pieces.
    const lines = (this.#endsWithCr ? text.replace(/^\n/, '') : text).split(LINE_END);
    lines[0] = `${this.#line}${lines[0]}`;
    this.#line = lines.pop() ?? '';
    if (text !== '') this.#endsWithCr = text.endsWith('\r');
    for (const line of lines) {
      const data = DATA.exec(line);
      if (data !== null) this.#data.push(data[1] ?? '');
      if (line !== '' || this.#data.length === 0) continue;
      events.push(this.#data.join('\n'));
      this.#data = [];
    }
    return events;
  }
}
