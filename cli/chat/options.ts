/** The command line of `cortex chat`. */
import { readFileSync } from 'node:fs';
import { messageOf } from '../../src/domain/errors.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { UsageError } from '../command.ts';
import type { CommandCall } from '../command.ts';
import { textOption, textOptions } from '../option-values.ts';
import { requireReadable } from '../project/real-path.ts';
import { connectionOf } from '../terminal/connection.ts';
import type { Connection, ConnectionSource } from '../terminal/connection.ts';

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

/** @throws UsageError for a file of tools that cannot be read, or an address or key that cannot be used */
export function optionsOf(call: ConnectionSource & Pick<CommandCall, 'positionals'>): ChatOptions {
  const [agent = 'assistant'] = call.positionals;
  const files = textOption(call, 'tools');
  const tools = [...textOptions(call, 'tool').map(namedTool), ...(files === undefined ? [] : toolsIn(files))];
  return { agent, connection: connectionOf(call), tools };
}

function namedTool(name: string): OfferedTool {
  return { name, description: 'Answered by the user.', parameters: { type: 'object' } };
}

/** The system checks the tools; only the form of the file is checked here. */
function toolsIn(file: string): readonly OfferedTool[] {
  let tools: unknown;
  try {
    requireReadable(file);
    tools = JSON.parse(readFileSync(file, 'utf8'));
  } catch (fault) {
    throw new UsageError(`--tools ${file}: ${messageOf(fault)}`, { cause: fault });
  }
  if (!Array.isArray(tools)) throw new UsageError(`--tools ${file}: expected a JSON list of tools`);
  return tools as readonly OfferedTool[];
}
