/**
 * The session of a request that names neither a session nor a key (E2). The first two equal requests of a period have ids that
 * follow from the request; further ones have random ids. So a request that its client repeats finds the session of the
 * first one, unless that could be the session of another equal request.
 */
import { limits } from '../../domain/limits.ts';

export interface RequestSessions {
  readonly now: () => number;
  /** The same text always gives the same id. */
  readonly idOf: (text: string) => Promise<string>;
  readonly newId: () => Promise<string>;
  /** Creates the session, unless there is one. @returns whether it was created */
  readonly open: (id: string) => Promise<boolean>;
  readonly exists: (id: string) => Promise<boolean>;
}

/** @param isRepeated the client sends it again @returns the session, and whether it is that of the first request */
export async function requestSession(
  { now, idOf, newId, open, exists }: RequestSessions,
  request: readonly unknown[],
  isRepeated: boolean,
): Promise<{ readonly id: string; readonly isJoined: boolean }> {
  const period = Math.floor(now() / limits.repeatedRequestMs);
  const idsOf = (at: number): Promise<string[]> =>
    Promise.all([0, 1].map((place) => idOf(JSON.stringify(['request', ...request, at, place]))));
  const current = await idsOf(period);
  if (isRepeated) {
    const all = [...current, ...(await idsOf(period - 1))];
    const known = await Promise.all(all.map((id) => exists(id)));
    const [first, ...others] = all.filter((_, at) => known[at] === true);
    if (first !== undefined && others.length === 0) return { id: first, isJoined: true };
  }
  for (const id of current) if (await open(id)) return { id, isJoined: false };
  const id = await newId();
  await open(id);
  return { id, isJoined: false };
}
