/** What actions call: does the attempts of each history, and notes every effect as it arrives. */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { AttemptScript } from '../simulation/history.ts';
import { ownFile, SHARED_FILE } from '../simulation/script.ts';
import { bodyOf, closed, serve } from './loopback.ts';
import type { LoopbackServer } from './loopback.ts';
import { historyOfAgent } from './manifests.ts';
import type { Play } from './play.ts';

const CHILD = 'child-';
const INSTANT: AttemptScript = { ms: 0, end: 'ok' };

/** @param playOf the history with this name */
export async function serveTools(playOf: (name: string) => Play | undefined): Promise<LoopbackServer> {
  return await serve(async (request, response) => {
    const target = request.url?.slice(1) ?? '';
    const play = playOf(historyOfAgent(String(request.headers['x-agent'])));
    const { token } = (await bodyOf(request)) as { readonly token: string };
    if (play === undefined) return void response.destroy();
    const isChild = token.startsWith(CHILD);
    const attempt = play.arrivalOf(token);
    const script = isChild || token === 'feed' ? INSTANT : play.attemptOf(token, attempt);
    if (script.end === 'unreached') return void response.destroy();
    // The work of a child counts in the child's session.
    const key = isChild ? `${String(request.headers['x-session'])}/${token}` : token;
    play.effect(isChild ? token.slice(CHILD.length) : token, {
      id: null,
      token,
      target,
      key,
      attempt,
      parameters: null,
    });
    await delay(script.ms);
    await answer(response, token, script);
  });
}

async function answer(response: ServerResponse, token: string, { end }: AttemptScript): Promise<void> {
  const text = JSON.stringify({ token, value: `value of ${token}` });
  const head = { 'content-type': 'application/json', 'content-length': text.length };
  switch (end) {
    case 'ok':
    case 'deaf':
      response.writeHead(200, head).end(text);
      return;
    case 'fails':
      response.writeHead(503, { 'content-type': 'application/json' }).end('{"error":"not now"}');
      return;
    case 'refuses':
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"never"}');
      return;
    case 'throws':
      // The answer breaks off.
      response.writeHead(200, head).write(text.slice(0, 5));
      await delay(5);
      response.destroy();
      return;
    case 'silent':
      return await closed(response);
    case 'lost':
    case 'unreached':
      response.destroy();
  }
}

/**
 * Python that calls the tool server as the target `python`, and exits as the attempt ends. It uses a plain socket, which
 * is loaded fast. With an answer, it writes its two files, with another text each time (C7).
 */
export function pythonCode(host: string, agent: string, token: string): string {
  const [address = '', port = ''] = host.split(':');
  const body = JSON.stringify({ token });
  const request = [
    'POST /python HTTP/1.1',
    `host: ${host}`,
    `x-agent: ${agent}`,
    'connection: close',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
  return `import os, socket, sys, time
to = socket.create_connection(("${address}", ${port}))
to.sendall(${JSON.stringify(request)}.encode())
head = to.recv(4096).decode().split(" ")
print("${token}")
if len(head) > 1:
    os.makedirs("own", exist_ok=True)
    for path in ("${ownFile(token)}", "${SHARED_FILE}"):
        with open(path, "w") as file:
            file.write(f"${token} at {time.time_ns()}")
sys.exit(0 if head[1:2] == ["200"] else 1)
`;
}
