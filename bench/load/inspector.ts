/** Calls of the V8 inspector of the Worker's isolate (Chrome DevTools Protocol). */
import { setTimeout as delay } from 'node:timers/promises';

type Call = (method: string, params?: object) => Promise<unknown>;

const TIMEOUT_MS = 120_000;

/** An answer of an isolate that is not busy arrives within this time. */
const PING_MS = 3_000;
const ATTEMPTS = 20;
/** Wrangler's proxy numbers its own calls from 1, and passes on their answers too. */
const FIRST_ID = 1_000_000_000;

/**
 * Connects, does `work`, and disconnects. A connection that is opened before the isolate is known to the proxy gets no
 * answers, so another one is opened until a first call is answered.
 *
 * @param onEvent events of the protocol, with their parameters
 * @throws Error no isolate, an error of the protocol, or no answer
 */
export async function inspect<T>(
  port: number,
  work: (call: Call) => Promise<T>,
  onEvent: (method: string, params: unknown) => void = () => undefined,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const { call, close } = await connect(port, onEvent);
    try {
      const answered = call('Runtime.getHeapUsage').then(() => true);
      answered.catch(() => undefined);
      if (await Promise.race([answered, delay(PING_MS, false, { ref: false })])) return await work(call);
      if (attempt === ATTEMPTS) throw new Error(`the isolate at the inspector's port ${port} does not answer`);
    } finally {
      close();
    }
  }
}

async function connect(
  port: number,
  onEvent: (method: string, params: unknown) => void,
): Promise<{ call: Call; close: () => void }> {
  const listed = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as { webSocketDebuggerUrl: string }[];
  const url = listed[0]?.webSocketDebuggerUrl;
  if (url === undefined) throw new Error(`no isolate at the inspector's port ${port}`);
  const socket = new WebSocket(url, { headers: { origin: 'http://localhost' } });
  const answers = new Map<number, { resolve: (result: unknown) => void; reject: (fault: Error) => void }>();
  const failAll = (reason: string): void => {
    for (const { reject } of answers.values()) reject(new Error(reason));
    answers.clear();
  };
  socket.addEventListener('close', () => failAll('the inspector has closed the connection'));
  socket.addEventListener('message', ({ data }) => {
    const said = JSON.parse(String(data)) as {
      readonly id?: number;
      readonly method?: string;
      readonly params?: unknown;
      readonly result?: unknown;
      readonly error?: { readonly message: string };
    };
    if (said.id === undefined) return onEvent(said.method ?? '', said.params);
    const waiting = answers.get(said.id);
    answers.delete(said.id);
    if (said.error === undefined) waiting?.resolve(said.result);
    else waiting?.reject(new Error(said.error.message));
  });
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', () => reject(new Error(`no connection to the inspector at port ${port}`)));
  });
  let last = FIRST_ID;
  const call: Call = async (method, params = {}) => {
    const id = (last += 1);
    const timer = setTimeout(() => failAll(`${method}: no answer from the inspector`), TIMEOUT_MS);
    try {
      return await new Promise((resolve, reject) => {
        answers.set(id, { resolve, reject });
        socket.send(JSON.stringify({ id, method, params }));
      });
    } finally {
      clearTimeout(timer);
    }
  };
  return { call, close: () => socket.close() };
}
