/** The lines of an export of a session (`GET …/export`). */
import { createReadStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { Session } from '../../src/client/index.ts';
import { UsageError } from '../command.ts';
import type { CommandCall } from '../command.ts';
import { requireInput } from '../input-file.ts';
import { clientOf } from './client.ts';
import { isSessionId } from './session-id.ts';
import { visible } from './visible.ts';

/** The last line holds the session's variables. */
const LAST = '{"variables"';

/**
 * @param source the id of a session, or a file of an export
 * @throws UsageError for anything else
 */
export function linesOfSource(source: string, call: CommandCall): AsyncIterable<string> {
  if (existsSync(source)) {
    requireInput(source);
    return withoutMark(createInterface({ input: createReadStream(source), crlfDelay: Infinity }));
  }
  if (isSessionId(source)) return exportedLines(clientOf(call).session(source));
  throw new UsageError(`"${visible(source.slice(0, 200))}" is neither a file nor the id of a session`);
}

/** Without the byte order mark that some editors and shells write. */
async function* withoutMark(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let isFirst = true;
  for await (const line of lines) {
    yield isFirst ? line.replace(/^\uFEFF/, '') : line;
    isFirst = false;
  }
}

/** @throws Error if the connection is lost before the last line; CortexError if the system refuses */
export async function* exportedLines({ id, connection }: Session): AsyncGenerator<string> {
  const { body } = await connection.response(`/agent/session/${encodeURIComponent(id)}/export`);
  const source = body === null ? Readable.from([]) : Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
  let isComplete = false;
  for await (const line of createInterface({ input: source, crlfDelay: Infinity })) {
    isComplete = line.startsWith(LAST);
    yield line;
  }
  if (!isComplete) throw new Error(`the export of ${id} was cut: its last line is missing; run the command again`);
}
