/** Everything that needs no time has happened. */
export function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
