/** Our own client, for commands. */
import { Client } from '../../src/client/client.ts';
import type { CommandCall } from '../command.ts';
import { connectionOf } from './connection.ts';

/** Further attempts until a system has answered for the first time: about a second. A stream that was open has more patience. */
const RETRIES = 2;

/** Says on stderr when the system does not answer, and when a stream is open again. */
export function clientOf(call: CommandCall): Client {
  const { url, key } = connectionOf(call);
  let isLost = false;
  return new Client({
    url,
    ...(key === null ? {} : { key }),
    retries: RETRIES,
    onRetry: () => {
      if (!isLost) call.tell(`no answer from ${url}; trying again`);
      isLost = true;
    },
    onResumed: () => {
      if (isLost) call.tell('connected again');
      isLost = false;
    },
  });
}
