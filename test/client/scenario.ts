/**
 * What an application does with the client: one message with a file, client tools, approvals and downloads. The same program
 * runs in Node, in workerd and on a page (K3). It returns what it has seen.
 */
import type { JsonObject } from '../../src/domain/json.ts';
import { Client, emptyMessage, fold, visibleText } from '../../src/client/index.ts';
import type { ClientOptions, HistoryPage, Message } from '../../src/client/index.ts';

export interface ScenarioOptions extends Pick<ClientOptions, 'url' | 'token' | 'fetch' | 'silenceMs'> {
  readonly agent: string;
  readonly message: string;
}

export interface ScenarioReport {
  readonly session: string;
  readonly run: string;
  /** Number and type of each journaled event, as they came. */
  readonly journaled: readonly (readonly [seq: number, type: string])[];
  /** The text of each block from its patches alone: segment, text, and whether a patch did not continue the text. */
  readonly patched: readonly (readonly [segment: number, text: string, isBroken: boolean])[];
  readonly message: Message;
  readonly visible: string;
  /** Parameters of the executed calls. */
  readonly calls: readonly JsonObject[];
  /** Names of the agents and targets that were asked about. */
  readonly asked: readonly string[];
  readonly history: HistoryPage;
  /** Each artifact, as it was downloaded, and its first bytes. */
  readonly artifacts: readonly { readonly size: number; readonly type: string; readonly start: string }[];
  /** The file of the message, as it was downloaded. */
  readonly content: string | null;
  /** Codes of what was repeated. */
  readonly repeated: readonly string[];
}

export const NOTE = 'Grüße aus Łódź 🎈';
/** Characters of the output of `photo`: an artifact. */
export const PHOTO_CHARS = 50_000;

export async function scenario({ agent, message: text, ...options }: ScenarioOptions): Promise<ScenarioReport> {
  const repeated: string[] = [];
  const client = new Client({ ...options, onRetry: ({ code }) => repeated.push(code) });
  const session = await client.createSession(agent, { metadata: { from: 'scenario' } });
  const calls: JsonObject[] = [];
  const asked: string[] = [];
  const tool = (
    run: () => unknown,
  ): { readonly description: string; readonly run: (given: JsonObject) => unknown } => ({
    description: 'Of the page.',
    run: (given) => {
      calls.push(given);
      return run();
    },
  });
  const run = await session.send(
    [
      { type: 'text', text },
      { type: 'file', name: 'note.txt', media_type: 'text/plain', data: base64(NOTE) },
    ],
    {
      clientTools: {
        locate: tool(() => ({ city: 'Łódź' })),
        photo: tool(() => ({ pixels: 'x'.repeat(PHOTO_CHARS) })),
      },
      onApproval: ({ agent: who, name }) => {
        asked.push(`${who}: ${name}`);
        return { approve: true, note: 'go on' };
      },
    },
  );
  const journaled: [number, string][] = [];
  const patched = new Map<number, [text: string, isBroken: boolean]>();
  let message = emptyMessage(run.id);
  for await (const event of run.events()) {
    message = fold(message, event);
    if (event.seq !== null) journaled.push([event.seq, event.type]);
    if (event.type !== 'thought' && event.type !== 'text' && event.type !== 'response') continue;
    const { segment, offset, delta } = event.data;
    const [before, isBroken] = patched.get(segment) ?? ['', false];
    patched.set(segment, [before + delta, isBroken || offset !== before.length]);
  }
  const history = await session.history();
  const file = history.messages[0]?.parts?.find((part) => part.type !== 'text');
  const { artifacts } = await session.artifacts();
  return {
    session: session.id,
    run: run.id,
    journaled,
    patched: [...patched].map(([segment, [whole, isBroken]]) => [segment, whole, isBroken]),
    message,
    visible: visibleText(message),
    calls,
    asked,
    history,
    artifacts: await Promise.all(
      artifacts.map(async ({ id, content_type: type }) => ({
        size: (await (await session.artifact(id)).arrayBuffer()).byteLength,
        type,
        start: await (await session.artifact(id, { range: 'bytes=0-4' })).text(),
      })),
    ),
    content: file === undefined ? null : await (await session.content(file.sha256)).text(),
    repeated,
  };
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
