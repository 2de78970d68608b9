/**
 * Names to addresses, for requests that the Worker judges (X2).
 *
 * Owns: which resolver is asked, and for how long. Does not own: which addresses are allowed; the Worker judges them.
 * Invariants:
 * 1. A slow name takes no place from other work: the first question goes over sockets of its own. The system's resolver,
 *    which blocks a thread, is asked only for what that does not know, by few callers at once.
 * 2. Every address that is known of a name is given, at most `limits.egressAddresses`.
 */
import dns from 'node:dns/promises';

import { limits } from '../limits.ts';

/** @throws Error that says why a name has no address */
export type Resolve = (host: string) => Promise<readonly string[]>;

export interface Resolvers {
  /** Asks name servers. */
  readonly network: Resolve;
  /** Asks the operating system: its hosts file and its own services, too. */
  readonly system: Resolve;
}

const SYSTEM: Resolvers = {
  async network(host) {
    // of its own each time: the name servers of a laptop change
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
