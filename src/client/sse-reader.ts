/** Reads Server-Sent Events from text that is cut anywhere. Only their data: the events of Cortex Edge have the rest in it. */

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
    let from = this.#endsWithCr && text.startsWith('\n') ? 1 : 0;
    if (text !== '') this.#endsWithCr = text.endsWith('\r');
    const ends = /\r\n|\n|\r/g;
    ends.lastIndex = from;
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      const event = this.#end(this.#line + text.slice(from, end.index));
      if (event !== null) events.push(event);
      this.#line = '';
      from = ends.lastIndex;
    }
    this.#line += text.slice(from);
    return events;
  }

  /** A line has ended. @returns the data of the event that it completes */
  #end(line: string): string | null {
    if (line === '') {
      const event = this.#data.length === 0 ? null : this.#data.join('\n');
      this.#data = [];
      return event;
    }
    // A comment begins with a colon.
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1);
    if (field === 'data') this.#data.push(value.startsWith(' ') ? value.slice(1) : value);
    return null;
  }
}
