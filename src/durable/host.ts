/** The host as `npm start` describes it, or the platform's, and what its objects take up. */
import { Suspects } from '../engine/suspects.ts';
import { TakeUps } from '../engine/take-ups.ts';
import { platformClock } from './platform.ts';
import { readSettings } from './settings.ts';
import type { Env } from './settings.ts';
import { durableSql } from './sql-storage.ts';

/** One for all objects that share this thread. */
const suspects = new Suspects();

export function takeUpsOf(env: Env, storage: DurableObjectStorage): TakeUps {
  return new TakeUps(durableSql(storage), readSettings(env).host, platformClock, suspects);
}
