/**
 * The names under which the things of an owner are stored. An owner is a namespace, or null for what was made without keys
 * (T4). Changing a name would hide what is stored under it.
 */

/** The name of an owner's objects. */
export function objectName(owner: string | null): string {
  return owner === null ? 'local' : `key:${owner}`;
}

/** Scope of relics shared by all sessions of an owner; unique for each one. */
export function sharedSpace(owner: string | null): string {
  return `key:${owner === null ? '' : owner.replaceAll(/[^\w.@-]/g, (char) => `~${char.charCodeAt(0).toString(16)}`)}`;
}
