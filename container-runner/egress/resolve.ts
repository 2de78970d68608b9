/**
 * Resolves names for outbound requests; the Worker checks the addresses (X2).
 *
 * Owns the choice of the resolver and its timeouts. Does not own the rules for addresses.
 * Invariants:
 * 1. A slow name does not block other work: DNS queries use separate sockets. The system's resolver blocks a thread, so
 *    it is used only for names that DNS does not know, with limited concurrency.
 * 2. The result contains all known addresses of a name, at most `limits.egressAddresses`.
 */
import dns from 'node:dns/promises';

import { limits } from '../limits.ts';

/** @throws Error with the reason why a name has no address */
export type Resolve = (host: string) => Promise<readonly string[]>;

export interface Resolvers {
  /** Queries DNS servers. */
  readonly network: Resolve;
  /** Queries the operating system, including the hosts file. */
  readonly system: Resolve;
}

const SYSTEM: Resolvers = {
  async network(host) {
    // a new resolver each time, because the DNS servers of a laptop change
    const resolver = new dns.Resolver({ timeout: limits.egressQueryMs, tries: 2 });
    const found = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const addresses = found.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const [fault] = found.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as unknown] : []));
    if (addresses.length === 0) throw fault ?? new Error('no address');
    return addresses;
  },
  async system(host) {
    return (await dns.lookup(host, { all: true, verbatim: true })).map(({ address }) => address);
  },
};

export function createResolve(resolvers: Resolvers = SYSTEM): Resolve {
  let blocking = 0;

  async function resolve(host: string): Promise<readonly string[]> {
    try {
      return await resolvers.network(host);
    } catch (fault) {
      if (blocking >= limits.egressLookups) throw fault;
      blocking += 1;
      return await resolvers.system(host).finally(() => {
        blocking -= 1;
      });
    }
  }

  return async (host) => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`no answer within ${limits.egressResolveMs / 1_000} s`)),
        limits.egressResolveMs,
      );
    });
    try {
      const addresses = await Promise.race([resolve(host), late]);
      return [...new Set(addresses)].slice(0, limits.egressAddresses);
    } finally {
      clearTimeout(timer);
    }
  };
}
