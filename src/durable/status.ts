/**
 * Small states that a deployment shares, each in an object of one class: the key of session ids, rates, model endpoints, and
 * code tools. The object's name begins with the kind of its state, so that no two kinds share an object.
 */
import type { Env, Remote, StatusKinds } from './env.ts';

/** @param name of the state among those of its kind: its namespace, for example */
export function statusOf<Kind extends keyof StatusKinds>(
  env: Env,
  kind: Kind,
  name: string,
): Remote<StatusKinds[Kind]> {
  return env.STATUS.getByName(`${kind}/${name}`);
}
