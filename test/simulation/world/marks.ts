/** How a message names itself, so that the model knows which one it answers. */
export const markOf = (message: number): string => `#m${message}#`;

/** The last message that is named in a text; null if none is. */
export function markedIn(text: string): number | null {
  const last = [...text.matchAll(/#m(\d+)#/g)].at(-1)?.[1];
  return last === undefined ? null : Number(last);
}
