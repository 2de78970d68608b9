import { readFileSync } from 'node:fs';
import { RUN_END_EVENTS } from '../../src/domain/event.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { Run, RunDocument, Session } from '../../src/client/index.ts';
import { EXIT, UsageError } from '../command.ts';
import type { Command, CommandCall, ExitCode } from '../command.ts';
import { isSet, textOption } from '../option-values.ts';
import { AnswerText } from '../terminal/answer-text.ts';
import { clientOf } from '../terminal/client.ts';
import { sessionId } from '../terminal/session-id.ts';
import { harmless, visible } from '../terminal/visible.ts';
import { again, waitingLines, waitingOf } from '../terminal/waiting.ts';
import type { Waiting } from '../terminal/waiting.ts';

export const command: Command = {
  name: 'run',
  summary: 'Sends one message to an agent and prints its answer.',
  usage: '<agent> <message | -> [--session <id>] [--no-stream]',
  help: `  <agent>          a new session with it; with --session, it may be left out
  <message>        - reads standard input
  --session <id>   continues this session
  --no-stream      prints the answer when the run has ended; with --json, the document of the run

Exit codes: 0 answered, 1 failed or cancelled, 4 the run waits for an approval or a client tool: stderr names the command
that continues. With --json, each event is a line.`,
  example: 'cortex run assistant "What is 6 times 7?"',
  options: { session: { type: 'string' }, 'no-stream': { type: 'boolean' } },
  isRemote: true,
  positionals: [1, 2],
  run: async (call) => {
    const { agent, message } = messageOf(call);
    const client = clientOf(call);
    const given = textOption(call, 'session');
    const session = given === undefined ? await client.createSession(agent ?? '') : client.session(sessionId(given));
    if (given !== undefined && agent !== null) await checkAgent(session, agent);
    const run = await session.send(message);
    if (!call.json) call.tell(`session ${session.id}`);
    const isStreamed = !isSet(call, 'no-stream');
    const waiting = await follow(session, run, isStreamed ? writerOf(call) : () => undefined);
    const document = await run.document();
    if (!isStreamed) call.print(call.json ? JSON.stringify(document) : harmless(document.response));
    return endOf(document, waiting, session, call);
  },
};

/** @throws UsageError if the agent or the message is missing */
function messageOf(call: CommandCall): { readonly agent: string | null; readonly message: string } {
  const [first = '', second] = call.positionals;
  if (second === undefined && textOption(call, 'session') === undefined) {
    throw new UsageError('the message is missing: cortex run <agent> <message>');
  }
  const message = second ?? first;
  return {
    agent: second === undefined ? null : first,
    message: message === '-' ? readFileSync(0, 'utf8') : message,
  };
}

/** @throws UsageError if the session is with another agent */
async function checkAgent(session: Session, agent: string): Promise<void> {
  const { agent: own } = await session.document();
  if (own !== agent) throw new UsageError(`the session is with the agent "${own}", not "${agent}"`);
}

type Writer = (event: SessionEvent) => void;

function writerOf({ json, print, tell }: CommandCall): Writer {
  if (json) return (event) => print(JSON.stringify(event));
  const text = new AnswerText((written) => void process.stdout.write(written), tell);
  return (event) => text.take(event);
}

/** Reads the run until it ends, or waits for a person or a client. @returns what it waits for; null at its end */
async function follow(session: Session, run: Run, write: Writer): Promise<Waiting | null> {
  for await (const event of run.events()) {
    write(event);
    if (RUN_END_EVENTS.has(event.type)) return null;
    // Someone else may have answered meanwhile: then the run goes on.
    const waiting = event.type === 'agent_waiting' ? await waitingOf(session, run.id) : null;
    if (waiting !== null) return waiting;
  }
  return null;
}

function endOf(run: RunDocument, waiting: Waiting | null, session: Session, call: CommandCall): ExitCode {
  if (waiting !== null) {
    for (const line of waitingLines(waiting, session.id, call)) call.tell(line);
    call.tell(`then: ${again(call, 'tail', session.id, '--run', run.run_id)}`);
    return EXIT.waiting;
  }
  if (run.status === 'completed') return EXIT.ok;
  const { code, message } = run.error ?? { code: run.status, message: `the run was ${run.status}` };
  if (!call.json) call.tell(visible(`${code}: ${message}`));
  return EXIT.failed;
}
