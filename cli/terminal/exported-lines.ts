/** The lines of an export of a session (`GET …/export`). */
import { createReadStream, existsSync } from 'node:fs';
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
/** Far more than the largest event or file has. */
const LINE_CHARS = 256 * 1024 * 1024;

/**
 * @param source the id of a session, or a file of an export
 * @throws UsageError for anything else
 */
export function linesOfSource(source: string, call: CommandCall): AsyncIterable<string> {
  if (existsSync(source)) {
    requireInput(source);
    return linesIn(createReadStream(source));
  }
  if (isSessionId(source)) return exportedLines(clientOf(call).session(source));
  throw new UsageError(`"${visible(source.slice(0, 200))}" is neither a file nor the id of a session`);
}

/**
 * The lines of a text, without the byte order mark that some editors and shells write. Only a line feed ends a line:
 * `node:readline` would also cut texts at U+2028, which JSON does not escape.
 *
 * @throws Error for a line that no export has
 */
async function* linesIn(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let line = '';
  for await (const bytes of source) {
    const [end = '', ...others] = decoder.decode(bytes, { stream: true }).split('\n');
    line += end;
    for (const next of others) {
      yield line.replace(/\r$/, '');
      line = next;
    }
    if (line.length > LINE_CHARS) {
      throw new Error(`a line has more than ${LINE_CHARS} characters: not an export of a session`);
    }
  }
  line += decoder.decode();
  if (line !== '') yield line;
}

/** @throws Error if the connection is lost before the last line; CortexError if the system refuses */
export async function* exportedLines({ id, connection }: Session): AsyncGenerator<string> {
  const { body } = await connection.response(`/agent/session/${encodeURIComponent(id)}/export`);
  const source = body === null ? Readable.from([]) : Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
  let isComplete = false;
  for await (const line of linesIn(source)) {
    isComplete = line.startsWith(LAST);
    yield line;
  }
  if (!isComplete) throw new Error(`the export of ${id} was cut: its last line is missing; run the command again`);
}
