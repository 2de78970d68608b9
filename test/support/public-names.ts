/** A runner with test host names, and a local server behind the one public address that they resolve to. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createResolve } from '../../container-runner/egress/resolve.ts';
import { createSender } from '../../container-runner/egress/send.ts';
import { FakeSandbox } from '../../container-runner/test/support/fake-sandbox.ts';
import { startRunner } from '../../container-runner/test/support/test-runner.ts';
import type { TestRunner } from '../../container-runner/test/support/test-runner.ts';

/** The server's address as the runner sees it. */
export const PUBLIC = '93.184.216.34';

export interface PublicNames {
  readonly runner: TestRunner;
  /** Of the server, on this machine. */
  readonly port: number;
  close(): Promise<void>;
}

/** @param names the addresses of each name; read at each lookup */
export async function publicNames(
  names: Readonly<Record<string, readonly string[]>>,
  answer: http.RequestListener,
): Promise<PublicNames> {
  const server = http.createServer(answer);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const sender = createSender({ interfaces: () => [] });
  const runner = await startRunner({
    sandboxes: [new FakeSandbox()],
    egressParts: {
      resolve: createResolve({
        network: (host) => Promise.resolve(names[host] ?? []),
        system: () => Promise.reject(new Error('not asked')),
      }),
      sender: {
        ...sender,
        send: (outgoing) => {
          const url = new URL(outgoing.url);
          url.port = String(port);
          const addresses = outgoing.addresses.map((address) => (address === PUBLIC ? '127.0.0.1' : address));
          return sender.send({ ...outgoing, url, addresses });
        },
      },
    },
  });
  return {
    runner,
    port,
    close: async () => {
      await runner.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
