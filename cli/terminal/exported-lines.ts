/** The lines of an export of a session (`GET …/export`). */
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { Session } from '../../src/client/index.ts';

/** The last line holds the session's variables. */
const LAST = '{"variables"';

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
