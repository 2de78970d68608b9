/**
 * Ids of user messages that the client has not given: a message came in another way, is a new version of another one, or is
 * in a fork. Such an id names its run. The id of an assistant message is that of its run.
 */
const PREFIX = 'user_';

export const userMessageId = (runId: string): string => PREFIX + runId;

/** The run that an id names; undefined for an id of the client. The run may be of another session. */
export function runOfUserMessage(id: string): string | undefined {
  return id.startsWith(`${PREFIX}run_`) ? id.slice(PREFIX.length) : undefined;
}
