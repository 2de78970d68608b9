/** Paths in the references of a workflow (M6): `steps.rooms[0].id`, `trigger.names.0`, `item`. */

/** Matches one path, as part of a regular expression. Every character can be matched in one way only. */
export const WORKFLOW_PATH = String.raw`[A-Za-z_](?:[\w.-]|\[\d+\])*`;

/** The members of a path; an index is a member of digits: `rooms[0].id` gives `['rooms', '0', 'id']`. */
export function membersOf(path: string): string[] {
  return path.replaceAll(/\[(\d+)\]/g, '.$1').split('.');
}

/** A path in CEL, which has no `.0`: `['rooms', '0', 'id']` gives `rooms[0].id`. */
export function celPath([root = '', ...members]: readonly string[]): string {
  return root + members.map((member) => (/^\d+$/.test(member) ? `[${member}]` : `.${member}`)).join('');
}
