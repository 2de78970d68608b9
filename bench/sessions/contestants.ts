/** Two operations of each system: a new session, and a chat turn. */

export interface Turn {
  /** From the request to the first text at the client, and to the end. */
  readonly firstMs: number;
  readonly totalMs: number;
}

export interface Contestant {
  readonly name: string;
  /** Creates a session and returns its name. */
  create(base: string): Promise<string>;
  /** Null if it is the same as another contestant's. @param message what the user says */
  readonly turn: ((base: string, session: string, message?: string) => Promise<Turn>) | null;
  /** The connection of a page to the session; resolves with a function that closes it. Null if it is the same as another contestant's. */
  readonly connect: ((base: string, session: string) => Promise<() => void>) | null;
}

const HEADERS = { 'content-type': 'application/json' };

async function created(response: Response): Promise<{ session_id: string }> {
  if (response.status !== 201) throw new Error(`no session: ${response.status} ${await response.text()}`);
  return (await response.json()) as { session_id: string };
}

/** Reads a streamed answer to its end. */
async function read(startedAt: number, response: Response, last: string): Promise<Turn> {
  if (!response.ok || response.body === null) throw new Error(`no answer: ${response.status} ${await response.text()}`);
  let firstMs = Number.NaN;
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (Number.isNaN(firstMs) && text.includes('word0')) firstMs = performance.now() - startedAt;
  }
  if (!text.includes(last)) throw new Error(`the answer is not whole: …${text.slice(-500)}`);
  return { firstMs, totalMs: performance.now() - startedAt };
}

async function createBare(base: string, path = 'new'): Promise<string> {
  const response = await fetch(`${base}/bare/${path}`, { method: 'POST', headers: HEADERS, body: '{"user_id":"u"}' });
  return (await created(response)).session_id;
}

async function relay(url: string, last: string, message: string): Promise<Turn> {
  const startedAt = performance.now();
  const init = { method: 'POST', headers: HEADERS, body: JSON.stringify({ content: message }) };
  return await read(startedAt, await fetch(url, init), last);
}

/** A client that reads an event stream. */
async function readEvents(url: string): Promise<() => void> {
  const abort = new AbortController();
  const response = await fetch(url, { signal: abort.signal });
  if (!response.ok) throw new Error(`no events: ${response.status} ${await response.text()}`);
  void response.body?.pipeTo(new WritableStream()).catch(() => undefined);
  return () => abort.abort();
}

/** @param last text at the end of a complete answer */
export function contestants(last: string): Contestant[] {
  return [
    {
      name: 'bare object',
      create: async (base) => await createBare(base),
      turn: async (base, session, message = 'go') => await relay(`${base}/bare/${session}`, last, message),
      connect: async (base, session) => await readEvents(`${base}/bare/${session}`),
    },
    {
      name: 'bare object, listed',
      create: async (base) => await createBare(base, 'listed'),
      turn: null,
      connect: null,
    },
    {
      name: 'bare object, bytes unread',
      create: async (base) => await createBare(base),
      turn: async (base, session, message = 'go') => await relay(`${base}/bare/${session}?piped`, last, message),
      connect: null,
    },
    {
      name: 'Cortex Edge',
      async create(base) {
        const init = { method: 'POST', headers: HEADERS, body: '{"user_id":"u"}' };
        return (await created(await fetch(`${base}/agent/assistant/session`, init))).session_id;
      },
      async turn(base, session, message = 'go') {
        const startedAt = performance.now();
        const init = { method: 'POST', headers: HEADERS, body: JSON.stringify({ content: message }) };
        return await read(startedAt, await fetch(`${base}/agent/session/${session}/message`, init), 'agent_completed');
      },
      connect: async (base, session) => await readEvents(`${base}/agent/session/${session}/events`),
    },
    {
      name: 'Agents SDK',
      async create(base) {
        const name = crypto.randomUUID();
        const response = await fetch(`${base}/sdk/${name}/get-messages`);
        if (!response.ok) throw new Error(`no agent: ${response.status} ${await response.text()}`);
        await response.arrayBuffer();
        return name;
      },
      async turn(base, session) {
        const socket = await open(base, session);
        try {
          return await chat(socket, last);
        } finally {
          socket.close();
        }
      },
      async connect(base, session) {
        const socket = await open(base, session);
        return () => socket.close();
      },
    },
  ];
}

async function open(base: string, session: string): Promise<WebSocket> {
  const socket = new WebSocket(`${base.replace('http', 'ws')}/sdk/${session}`);
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', () => reject(new Error('the agent takes no connection')));
  });
  return socket;
}

/** A turn in the agent's own protocol, on an existing connection. */
async function chat(socket: WebSocket, last: string): Promise<Turn> {
  const id = crypto.randomUUID();
  const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text: 'go' }] };
  const startedAt = performance.now();
  let firstMs = Number.NaN;
  let text = '';
  return await new Promise<Turn>((resolve, reject) => {
    socket.addEventListener('close', () => reject(new Error(`the agent hung up: …${text.slice(-300)}`)));
    socket.addEventListener('message', ({ data }) => {
      const said = JSON.parse(String(data)) as {
        type?: string;
        id?: string;
        body?: string;
        done?: boolean;
        error?: boolean;
      };
      if (said.type !== 'cf_agent_use_chat_response' || said.id !== id) return;
      if (said.error === true) return reject(new Error(`the agent failed: ${said.body}`));
      text += said.body ?? '';
      if (Number.isNaN(firstMs) && text.includes('word0')) firstMs = performance.now() - startedAt;
      if (said.done !== true) return;
      if (text.includes(last)) resolve({ firstMs, totalMs: performance.now() - startedAt });
      else reject(new Error(`the answer is not whole: …${text.slice(-300)}`));
    });
    const init = { method: 'POST', body: JSON.stringify({ messages: [message] }) };
    socket.send(JSON.stringify({ type: 'cf_agent_use_chat_request', id, init }));
  });
}
