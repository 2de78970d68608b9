import { RUN_END_EVENTS } from '../../src/domain/event.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { Session } from '../../src/client/index.ts';
import { EXIT } from '../command.ts';
import type { Command, CommandCall, ExitCode } from '../command.ts';
import { isSet, numberOption, textOption } from '../option-values.ts';
import { clientOf } from '../terminal/client.ts';
import { eventLine } from '../terminal/event-lines.ts';
import { sessionId } from '../terminal/session-id.ts';

export const command: Command = {
  name: 'tail',
  summary: 'Prints the events of a session, and live ones as they happen.',
  usage: '<session> [--after <seq>] [--run <id>] [--until-idle]',
  help: `  --after <seq>    begins after this event; default: with the first one
  --run <id>       only this run; ends with it: exit code 0 if it has completed, else 1
  --until-idle     ends when the session is idle

Lost connections are resumed: each event comes once. With --json, each event is a line, also each piece of a text.`,
  example: 'cortex tail ses_0123456789abcdef0123456789abcdef --until-idle',
  options: { after: { type: 'string' }, run: { type: 'string' }, 'until-idle': { type: 'boolean' } },
  isRemote: true,
  positionals: [1, 1],
  run: async (call) => {
    const session = clientOf(call).session(sessionId(call.positionals[0] ?? ''));
    const after = numberOption(call, 'after', { least: 0, most: Number.MAX_SAFE_INTEGER }) ?? 0;
    const write = writerOf(call);
    const run = textOption(call, 'run');
    if (run !== undefined) return await tailRun(session, run, after, write);
    return isSet(call, 'until-idle')
      ? await tailUntilIdle(session, after, write)
      : await tailAll(session, after, write);
  },
};

type Writer = (event: SessionEvent) => void;

function writerOf({ json, print }: CommandCall): Writer {
  return (event) => {
    const line = json ? JSON.stringify(event) : eventLine(event);
    if (line !== null) print(line);
  };
}

async function tailRun(session: Session, id: string, after: number, write: Writer): Promise<ExitCode> {
  let last: SessionEvent['type'] | null = null;
  let seen = 0;
  for await (const event of session.run(id).events()) {
    last = event.type;
    seen = event.seq ?? seen;
    // The pieces of a text have no seq; the event before them has.
    if (seen > after || (event.seq === null && seen >= after)) write(event);
  }
  return last === 'agent_completed' ? EXIT.ok : EXIT.failed;
}

async function tailAll(session: Session, after: number, write: Writer): Promise<ExitCode> {
  for await (const event of session.events({ after })) write(event);
  return EXIT.ok;
}

/** The session is asked after the end of a run, and after each event while it is idle: feeds write then, too. */
async function tailUntilIdle(session: Session, after: number, write: Writer): Promise<ExitCode> {
  let { status, last_seq: known } = await session.document();
  if (status === 'idle' && known <= after) return EXIT.ok;
  for await (const event of session.events({ after })) {
    write(event);
    if (event.seq === null || event.seq < known) continue;
    if (status === 'idle' || RUN_END_EVENTS.has(event.type)) ({ status, last_seq: known } = await session.document());
    if (status === 'idle' && known <= event.seq) return EXIT.ok;
  }
  return EXIT.ok;
}
