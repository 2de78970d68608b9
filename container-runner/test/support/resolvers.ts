/** Name servers for tests. */
import type { Resolvers } from '../../egress/resolve.ts';

/** @param answers addresses by name, or the error of a lookup; the system's own lookup knows no name */
export function resolversFor(answers: Readonly<Record<string, readonly string[] | Error>>): Resolvers {
  return {
    network: (host) => {
      const found = answers[host];
      return found === undefined || found instanceof Error
        ? Promise.reject(found ?? new Error(`no such name ${host}`))
        : Promise.resolve(found);
    },
    system: (host) => Promise.reject(new Error(`the system knows no ${host}`)),
  };
}
