/**
 * Which code tools of one version of the project are set aside (K2): hosts have ended repeatedly while they ran. The
 * object's name is the version, so changed code starts anew.
 */
import { DurableObject } from 'cloudflare:workers';
import { limits } from '../../domain/limits.ts';
import type { CodeToolStates, CodeToolStatusRpc, Env, ReportedDeath } from '../env.ts';
import { platformClock } from '../platform.ts';

interface Death extends ReportedDeath {
  readonly at: number;
}

/** Deaths of hosts by the name of the tool. */
type Deaths = Record<string, Death[]>;

const KEPT = 'deaths';

export class CodeToolStatusObject extends DurableObject<Env> implements CodeToolStatusRpc {
  async died(name: string, reported: ReportedDeath): Promise<void> {
    const deaths = this.#recent();
    const known = deaths[name] ?? [];
    const death = { ...reported, at: platformClock.now() };
    if (known.length >= limits.codeToolDeaths || known.some((one) => isSame(one, death))) return;
    this.ctx.storage.kv.put(KEPT, { ...deaths, [name]: [...known, death] });
    await this.ctx.storage.sync();
  }

  states(): CodeToolStates {
    const deaths = Object.entries(this.#recent());
    const isSetAside = (count: number): boolean => count >= limits.codeToolDeaths;
    return {
      setAside: deaths.filter(([, { length }]) => isSetAside(length)).map(([name]) => name),
      suspects: deaths.filter(([, { length }]) => !isSetAside(length)).map(([name]) => name),
    };
  }

  #recent(): Deaths {
    const since = platformClock.now() - limits.codeToolDeathsMs;
    const all = Object.entries(this.ctx.storage.kv.get<Deaths>(KEPT) ?? {});
    const recent = all.map(([name, deaths]) => [name, deaths.filter(({ at }) => at > since)] as const);
    return Object.fromEntries(recent.filter(([, deaths]) => deaths.length > 0));
  }
}

/** One host can end during calls of several sessions: then each of them reports it. */
function isSame(known: Death, death: Death): boolean {
  if (known.host !== null || death.host !== null) return known.host === death.host;
  return known.session !== death.session && death.at - known.at < limits.codeToolDeathMs;
}
