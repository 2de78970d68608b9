/** The health of a runner. It is another program, which may be older or newer: nothing relies on the shape. */
import type { Json, JsonObject } from '../../src/client/index.ts';
import { jsonText } from './json-text.ts';

/** The members of an object or a list; none of anything else. */
export function membersOf(value: Json | undefined): JsonObject {
  return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
}

export interface Missing {
  readonly level: string;
  readonly reason: string;
  readonly interpreters: readonly string[];
}

/** Why sandboxes do not run some interpreters: each reason of a level once. @param levels of the runner's sandbox */
export function missingOf(levels: Json | undefined): Missing[] {
  return Object.values(membersOf(levels)).flatMap((each) => {
    const { level, missing } = membersOf(each);
    const byReason = Map.groupBy(Object.entries(membersOf(missing)), ([, reason]) => jsonText(reason));
    return [...byReason].map(([reason, entries]) => ({
      level: jsonText(level),
      reason,
      interpreters: entries.map(([interpreter]) => interpreter),
    }));
  });
}
