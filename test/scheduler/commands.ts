/** The commands that a driver gives, from one text. */
export const commands = (text: string): string[] => text.split(', ');
