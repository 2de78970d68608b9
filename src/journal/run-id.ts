/** A run's id contains its session's id and its number, so no index is needed to find either. */

/** `ses_<hex>` and 3 -> `run_<hex>_3`. */
export function runIdOf(sessionId: string, run: number): string {
  return `run_${sessionId.replace(/^ses_/, '')}_${run}`;
}

/** `run_<hex>_3` -> 3; 0 if the id has another form. */
export function runNumberOf(runId: string): number {
  const match = /_(\d{1,9})$/.exec(runId);
  return match === null ? 0 : Number(match[1]);
}
