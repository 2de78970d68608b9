/** Runs of this system, from the user's message to the end of the answer, through its HTTP API. */
import { readEvents } from '../../cli/terminal/event-client.ts';

export interface OwnResult {
  /** From the message to the last event, in milliseconds of the client's clock. */
  readonly ms: number;
  readonly completed: number;
  readonly answer: string;
}

/** @throws Error if the run does not complete */
export async function runOwn(url: string, agent: string, prompt: string): Promise<OwnResult> {
  const json = { 'content-type': 'application/json' };
  const created = await fetch(`${url}/agent/${agent}/session`, { method: 'POST', headers: json, body: '{}' });
  if (!created.ok) throw new Error(`no session: ${await created.text()}`);
  const { session_id: session } = (await created.json()) as { session_id: string };
  const startedAt = performance.now();
  const answered = await fetch(`${url}/agent/session/${session}/message`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ content: prompt }),
  });
  let completed = 0;
  let answer = '';
  let last = '';
  for await (const event of readEvents(answered)) {
    last = event.type;
    if (event.type === 'action_completed') completed += 1;
    else if (event.type === 'response') answer += event.data.delta;
    else if (/^action_(failed|rejected|skipped|cancelled)$|^agent_failed$/.test(event.type)) {
      throw new Error(`${event.type} ${event.action_id ?? ''}: ${JSON.stringify(event.data)}`);
    }
  }
  const ms = performance.now() - startedAt;
  if (last !== 'agent_completed') throw new Error(`the run ended with ${last}`);
  return { ms, completed, answer };
}
