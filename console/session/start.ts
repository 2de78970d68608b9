/** Begins a session with its first message. */
import type { BaseClient, ContentPart, CreateSessionOptions, ToolDeclaration } from '../../src/client/index.ts';
import { fromHere, href } from '../app/router.ts';
import type { TourStep } from './tour-steps.ts';

export interface Beginning {
  readonly agent: string;
  readonly content: string | readonly ContentPart[];
  readonly tools?: readonly ToolDeclaration[];
  readonly metadata?: CreateSessionOptions['metadata'];
}

/** Shows the new session when its message is accepted, if the reader has not left. @throws CortexError */
export async function startSession(
  client: BaseClient,
  { agent, content, tools = [], metadata }: Beginning,
): Promise<void> {
  const goOn = fromHere();
  const session = await client.createSession(agent, metadata === undefined ? {} : { metadata });
  // The session's page follows the run itself.
  const leave = new AbortController();
  await session.send(content, { tools, signal: leave.signal });
  leave.abort();
  goOn(href(['sessions', session.id]));
}

/** Begins a session with a step of the tour. @throws CortexError */
export async function startStep(client: BaseClient, { id, agent, message }: TourStep): Promise<void> {
  await startSession(client, { agent, content: message, metadata: { tour: id } });
}
