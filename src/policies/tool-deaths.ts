/** Which code tools are set aside, because hosts have ended repeatedly while they ran (K2). */
import { limits } from '../domain/limits.ts';

export interface ReportedDeath {
  /** The number of its life; null if the starter of the host does not number them. */
  readonly host: number | null;
  /** The session that had called the tool. */
  readonly session: string;
}

interface Death extends ReportedDeath {
  /** Epoch milliseconds. */
  readonly at: number;
}

/** Deaths of hosts by the name of the tool. */
export type Deaths = Readonly<Record<string, readonly Death[]>>;

/** Names of code tools by what is known of them. */
export interface CodeToolStates {
  /** Not called until the hour is over, or until the code changes. */
  readonly setAside: readonly string[];
  /** A host ended while they ran. */
  readonly suspects: readonly string[];
}

/** Those that still count. @param now epoch milliseconds */
export function recentDeaths(deaths: Deaths, now: number): Deaths {
  const since = now - limits.codeToolDeathsMs;
  const recent = Object.entries(deaths).map(([name, all]) => [name, all.filter(({ at }) => at > since)] as const);
  return Object.fromEntries(recent.filter(([, all]) => all.length > 0));
}

/** @returns the same object if the death is known, or changes nothing */
export function withDeath(deaths: Deaths, name: string, death: Death): Deaths {
  const known = deaths[name] ?? [];
  if (isSetAside(known) || known.some((one) => isSame(one, death))) return deaths;
  return { ...deaths, [name]: [...known, death] };
}

/** @param deaths recent ones */
export function toolStates(deaths: Deaths): CodeToolStates {
  const named = (wanted: boolean): string[] =>
    Object.entries(deaths).flatMap(([name, all]) => (isSetAside(all) === wanted ? [name] : []));
  return { setAside: named(true), suspects: named(false) };
}

function isSetAside(deaths: readonly Death[]): boolean {
  return deaths.length >= limits.codeToolDeaths;
}

/** One host can end during calls of several sessions: then each of them reports it. */
function isSame(known: Death, death: Death): boolean {
  if (known.host !== null || death.host !== null) return known.host === death.host;
  return known.session !== death.session && death.at - known.at < limits.codeToolDeathMs;
}
