/** The command line of `npm run chat`. */
import { parseArgs } from 'node:util';
import { connectionOf } from '../terminal/connection.ts';
import type { Connection } from '../terminal/connection.ts';

export const USAGE = 'npm run chat -- [agent | session id] [--key <key>] [--help]';

export const HELP = `usage: ${USAGE}

Chats with an agent of the running system (default: assistant), or joins a session.
Approvals are asked at the prompt. An empty line ends the chat.

  --key <key>      the API key; default: CORTEX_API_KEY
  --help           prints this text

  /attach <path>   sends a file with the next message

Examples:
  npm run chat
  npm run chat -- ses_0123456789abcdef0123456789abcdef`;

export interface ChatOptions {
  /** An agent's name, or a session's id. */
  readonly agent: string;
  readonly connection: Connection;
}

/**
 * @returns null if help was asked for
 * @throws Error for unknown options, or for more than one agent
 */
export function optionsOf(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ChatOptions | null {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: { key: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help === true) return null;
  const [agent = 'assistant', ...others] = positionals;
  if (others.length > 0) {
    throw new Error(`expected an agent's name or a session's id, got ${positionals.length} arguments`);
  }
  return { agent, connection: connectionOf(environment, values.key) };
}
