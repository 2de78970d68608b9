/** The id of a message that came during a run; `number` counts those of the run, from 1 (C5). */
export function messageIdOf(runId: string, number: number): string {
  return `msg_${runId.replace(/^run_/, '')}_${number}`;
}
