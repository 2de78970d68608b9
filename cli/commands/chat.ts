import pc from 'picocolors';
import { messageOf } from '../../src/domain/errors.ts';
import { EXIT, UsageError } from '../command.ts';
import type { Command, ExitCode } from '../command.ts';
import { COMMANDS, Commands, messageIn } from '../chat/commands.ts';
import type { Done } from '../chat/commands.ts';
import { Follower } from '../chat/follow.ts';
import { optionsOf } from '../chat/options.ts';
import type { ChatOptions } from '../chat/options.ts';
import { Api } from '../chat/question.ts';
import { Terminal } from '../chat/terminal.ts';
import { Attachments } from '../chat/attachments.ts';
import { Refusal } from '../terminal/connection.ts';
import { isSessionId } from '../terminal/session-id.ts';
import { visible } from '../terminal/visible.ts';

export const command: Command = {
  name: 'chat',
  summary: 'Chats in the terminal, and asks for approvals and for results of client tools.',
  usage: '[<agent | session>] [--tool <name>]… [--tools <file>]',
  help: `  <agent>          default: assistant; the id of a session joins it
  --tool <name>    offers a client tool that takes any parameters; repeat it for several tools
  --tools <file>   offers the client tools of a JSON file: [{"name", "description", "parameters"}]

In the chat:
${COMMANDS}
`,
  example: 'cortex chat assistant --tool get_location',
  options: { tool: { type: 'string', multiple: true }, tools: { type: 'string' } },
  isRemote: true,
  positionals: [0, 1],
  run: async (call) => {
    if (call.json) throw new UsageError('cortex chat is for people; cortex run --json prints the events of a run');
    return await chat(optionsOf(call));
  },
};

async function chat({ agent, connection, tools }: ChatOptions): Promise<ExitCode> {
  let exit: ExitCode = EXIT.ok;
  const refused = (fault: unknown, what = 'not sent'): null => {
    exit = EXIT.failed;
    return tellRefusal(fault, what);
  };
  const api = new Api(connection);
  const joined = isSessionId(agent) ? agent : null;
  const session = joined ?? (await create(api, agent));
  const terminal = new Terminal();
  const commands = new Commands(api, session, terminal.ask);
  const follower = new Follower(api, terminal.ask);
  const stop = async (): Promise<void> => await stopRun(api, commands.session);
  if (joined !== null) await terminal.during(async () => await follower.join(joined), stop);
  const attachments = new Attachments();
  for await (const line of terminal.lines()) {
    const attached = await attachments.command(line);
    if (attached !== null) {
      console.log(pc.dim(visible(attached)));
      continue;
    }
    const done = await commands.command(line).catch((fault: unknown): Done => refused(fault, 'not done') ?? {});
    if (done?.isOver === true) break;
    await terminal.during(async () => {
      if (done !== null) return await take(done, follower, refused);
      const message = { content: attachments.take(messageIn(line)), ...(tools.length === 0 ? {} : { tools }) };
      const answer = await api.stream(`/agent/session/${commands.session}/message`, message).catch(refused);
      if (answer !== null) await follower.follow(answer);
    }, stop);
  }
  terminal.close();
  return exit;
}

async function take(
  { text, answer, joined }: Done,
  follower: Follower,
  refused: (fault: unknown) => null,
): Promise<void> {
  if (text !== undefined) console.log(pc.dim(text));
  if (answer !== undefined) await follower.follow(answer);
  if (joined !== undefined) await follower.join(joined).catch(refused);
}

/** Cancels the run that is shown, and says so. */
async function stopRun(api: Api, session: string): Promise<void> {
  try {
    const response = await api.call(`/agent/session/${session}/cancel`, { reason: 'stopped in the chat' });
    const { cancelled } = (await response.json()) as { cancelled: boolean };
    console.log(pc.dim(`\n  ${cancelled ? 'stopped' : 'nothing to stop'}; Ctrl-C again ends the chat`));
  } catch (fault) {
    console.log(pc.red(`\n  not stopped: ${messageOf(fault)}; Ctrl-C again ends the chat`));
  }
}

/** The chat goes on after a message that was refused, for example because of one of its files. */
function tellRefusal(fault: unknown, what: string): null {
  if (!(fault instanceof Refusal)) throw fault;
  console.log(pc.red(`  ${what}: ${fault.message}`));
  return null;
}

async function create(api: Api, agent: string): Promise<string> {
  const response = await api.call(`/agent/${encodeURIComponent(agent)}/session`, {});
  const { session_id: session } = (await response.json()) as { session_id: string };
  console.log(pc.dim(`session ${session} with ${agent}; end with an empty line or Ctrl-D; /help`));
  return session;
}
