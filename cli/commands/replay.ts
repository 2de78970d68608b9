import { setTimeout as delay } from 'node:timers/promises';
import { fold } from '../../src/view/reduce.ts';
import { emptyView, visibleText } from '../../src/view/run-view.ts';
import { EXIT } from '../command.ts';
import type { Command, CommandCall } from '../command.ts';
import { numberOption, textOption } from '../option-values.ts';
import { eventLine } from '../terminal/event-lines.ts';
import { linesOfSource } from '../terminal/exported-lines.ts';
import { recordedRun } from '../terminal/recorded-run.ts';
import type { RecordedRun } from '../terminal/recorded-run.ts';
import { Timeline } from '../terminal/timeline.ts';
import { harmless } from '../terminal/visible.ts';

/** Times as fast as the run was. */
const MOST_SPEED = 10_000;
/** Longest pause between two events: a run may have waited for days. */
const MOST_PAUSE_MS = 10_000;

export const command: Command = {
  name: 'replay',
  summary: 'Prints a recorded run: its events, the timeline of its actions, and its answer.',
  usage: '<session | file.jsonl> [--run <id>] [--speed <n>]',
  help: `  <session>        read through the API; or a file of cortex export or cortex sessions export
  --run <id>       default: the last run
  --speed <n>      1: as fast as it was, 2: twice as fast; default: 0, at once

No model is called, and no action is run again. With --json, each event is a line.`,
  example: 'cortex replay backup/sessions/ses_0123456789abcdef0123456789abcdef.jsonl --speed 10',
  options: { run: { type: 'string' }, speed: { type: 'string' } },
  isRemote: true,
  positionals: [1, 1],
  run: async (call) => {
    const [source = ''] = call.positionals;
    const speed = numberOption(call, 'speed', { least: 0, most: MOST_SPEED, whole: false }) ?? 0;
    const run = await recordedRun(linesOfSource(source, call), textOption(call, 'run'));
    await print(run, speed, call);
    return EXIT.ok;
  },
};

async function print(run: RecordedRun, speed: number, call: CommandCall): Promise<void> {
  const { run_id: id, status, started_at: start, ended_at: end, events } = run;
  if (!call.json) call.print(`${id}  ${status}  ${new Date(start).toISOString()}`);
  const timeline = new Timeline(new Map());
  let message = emptyView(id);
  let before = start;
  for (const event of events) {
    if (speed > 0) await delay(Math.min(MOST_PAUSE_MS, Math.max(0, event.timestamp - before) / speed));
    before = event.timestamp;
    timeline.take(event);
    message = fold(message, event);
    const line = call.json ? JSON.stringify(event) : eventLine(event);
    if (line !== null) call.print(line);
  }
  if (call.json) return;
  if (timeline.rows.length > 0) call.print(`\n${timeline.render(end ?? before)}`);
  const answer = message.response ?? visibleText(message);
  if (answer !== '') call.print(`\n${harmless(answer)}`);
  if (end === null) call.tell('the run had not ended yet');
}
