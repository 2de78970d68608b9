/** The command line of `npm run chat`. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { messageOf } from '../../src/domain/errors.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { COMMANDS } from './commands.ts';
import { connectionOf } from '../terminal/connection.ts';
import type { Connection } from '../terminal/connection.ts';

export const USAGE = 'npm run chat -- [agent | session id] [--tool <name>] [--tools <file>] [--key <key>] [--help]';

export const HELP = `usage: ${USAGE}

Chats with an agent of the running system (default: assistant), or joins a session.
An approval or the result of a client tool is asked at the prompt. An empty line ends the chat.

  --tool <name>    offers a client tool that takes any parameters; repeat it for several tools
  --tools <file>   offers the client tools of a JSON file: [{"name", "description", "parameters"}]
  --key <key>      the API key; default: CORTEX_API_KEY
  --help           prints this text

In the chat:
${COMMANDS}

Examples:
  npm run chat
  npm run chat -- assistant --tool get_location
  npm run chat -- ses_0123456789abcdef0123456789abcdef`;

/** A client tool that is offered with each message. */
export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

export interface ChatOptions {
  /** An agent's name, or a session's id. */
  readonly agent: string;
  readonly connection: Connection;
  readonly tools: readonly OfferedTool[];
}

/**
 * @returns null if help was asked for
 * @throws Error for unknown options, for a file of tools that cannot be read, or for more than one agent
 */
export function optionsOf(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ChatOptions | null {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      key: { type: 'string' },
      tool: { type: 'string', multiple: true },
      tools: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return null;
  const [agent = 'assistant', ...others] = positionals;
  if (others.length > 0) {
    throw new Error(`expected an agent's name or a session's id, got ${positionals.length} arguments`);
  }
  const tools = [...(values.tool ?? []).map(namedTool), ...(values.tools === undefined ? [] : toolsIn(values.tools))];
  return { agent, connection: connectionOf(environment, values.key), tools };
}

function namedTool(name: string): OfferedTool {
  return { name, description: 'Answered by the user.', parameters: { type: 'object' } };
}

/** The system checks the tools; only the form of the file is checked here. */
function toolsIn(file: string): readonly OfferedTool[] {
  let tools: unknown;
  try {
    tools = JSON.parse(readFileSync(file, 'utf8'));
  } catch (fault) {
    throw new Error(`--tools ${file}: ${messageOf(fault)}`, { cause: fault });
  }
  if (!Array.isArray(tools)) throw new Error(`--tools ${file}: expected a JSON list of tools`);
  return tools as readonly OfferedTool[];
}
