/** The JavaScript heap of the Worker, through the inspector of workerd. */
import { ask } from '../../cli/system/services.ts';
import { portsOf } from './processes.ts';

/** Title of the Worker in the inspector's list. */
const WORKER = /core:user:/;
const ANSWER_MS = 10_000;
const ATTEMPTS = 3;
const WAKE_MS = 100;

interface Listed {
  readonly title: string;
  readonly webSocketDebuggerUrl: string;
}

export interface HeapOptions {
  /** Processes of workerd. */
  readonly pids: readonly number[];
  /** URL that the Worker answers: workerd does the inspector's work while the Worker is busy. */
  readonly wakeUrl: string;
}

/** Collects garbage, and returns the bytes that are in use; null if the inspector does not answer. */
export async function heapBytes({ pids, wakeUrl }: HeapOptions): Promise<number | null> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const url = await inspectorOf(pids);
    if (url === null) continue;
    const socket = new WebSocket(url);
    const wake = setInterval(() => void ask(wakeUrl, ANSWER_MS), WAKE_MS);
    try {
      await opened(socket);
      await call(socket, 1, 'HeapProfiler.collectGarbage');
      await call(socket, 2, 'HeapProfiler.collectGarbage');
      const { usedSize } = (await call(socket, 3, 'Runtime.getHeapUsage')) as { readonly usedSize: number };
      return usedSize;
    } catch {
      // Another attempt.
    } finally {
      clearInterval(wake);
      socket.close();
    }
  }
  return null;
}

async function inspectorOf(pids: readonly number[]): Promise<string | null> {
  for (const port of portsOf(pids)) {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/json`, { signal: AbortSignal.timeout(2_000) });
      const list: unknown = await response.json();
      const found = Array.isArray(list) ? (list as Listed[]).find(({ title }) => WORKER.test(title)) : undefined;
      if (found !== undefined) return found.webSocketDebuggerUrl;
    } catch {
      // Another server.
    }
  }
  return null;
}

async function opened(socket: WebSocket): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve(), { once: true });
    socket.addEventListener('error', () => reject(new Error('the inspector refuses the connection')), { once: true });
  });
}

async function call(socket: WebSocket, id: number, method: string): Promise<unknown> {
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the inspector does not answer ${method}`)), ANSWER_MS);
    const read = ({ data }: MessageEvent): void => {
      const answer = JSON.parse(String(data)) as { readonly id?: number; readonly result?: unknown };
      if (answer.id !== id) return;
      clearTimeout(timer);
      socket.removeEventListener('message', read);
      resolve(answer.result);
    };
    socket.addEventListener('message', read);
    socket.send(JSON.stringify({ id, method }));
  });
}
