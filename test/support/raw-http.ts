/** Sends the bytes of a request as they are, because `fetch` corrects them. */
import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** @param lines the request line and the headers @returns the answer until the connection ends */
export async function sendRaw(port: number, lines: readonly string[], body = ''): Promise<RawAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = '';
  const socket = connect(port, '127.0.0.1', () => socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`));
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.on('close', () => resolve(text)).on('error', reject);
  const [head = '', ...rest] = (await promise).split('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? Number.NaN), head, body: rest.join('\r\n\r\n') };
}

/** `Host` headers of a request that is refused with 400, by what is wrong with them. */
export const MALFORMED_HOSTS: readonly [string, readonly string[]][] = [
  ['no Host', []],
  ['an empty Host', ['Host:']],
  ['two Hosts', ['Host: 127.0.0.1', 'Host: 127.0.0.1']],
  ['two different Hosts', ['Host: 127.0.0.1', 'hOST: evil.example']],
  ['a list of hosts', ['Host: 127.0.0.1, evil.example']],
  ['a user', ['Host: user@127.0.0.1']],
  ['a user and a password', ['Host: user:word@127.0.0.1:80']],
  ['a path', ['Host: 127.0.0.1/x']],
  ['a query', ['Host: 127.0.0.1?x']],
  ['a fragment', ['Host: 127.0.0.1#x']],
  ['a backslash', [String.raw`Host: 127.0.0.1\x`]],
  ['a space', ['Host: 127.0.0.1 evil.example']],
  ['a percent sign', ['Host: %31%32%37.0.0.1']],
  ['a port without digits', ['Host: 127.0.0.1:']],
  ['a port with letters', ['Host: 127.0.0.1:8x']],
  ['a port with a sign', ['Host: 127.0.0.1:-1']],
  ['a port beyond the range', ['Host: 127.0.0.1:65536']],
  ['two ports', ['Host: 127.0.0.1:1:2']],
  ['an open bracket', ['Host: [::1']],
  ['an invalid address', ['Host: [::g]']],
  ['a number that is no address', ['Host: 1.2.3.4.5']],
  ['letters beyond ASCII', ['Host: \u00e9.example']],
  ['a whole address', ['Host: http://127.0.0.1/']],
];
