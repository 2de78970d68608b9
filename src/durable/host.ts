/** The host as described by `npm start` or by the platform, and its recovery queues. */
import { QuarantineSlots } from '../engine/replay/quarantine-slots.ts';
import { RecoveryQueue } from '../engine/replay/recovery-queue.ts';
import { platformClock } from './platform.ts';
import { readSettings } from '../settings/settings.ts';
import type { Env } from './env.ts';
import { durableSql } from './sql-storage.ts';

/** Shared by all objects of this thread. */
const slots = new QuarantineSlots();

export function recoveryQueueOf(env: Env, storage: DurableObjectStorage): RecoveryQueue {
  return new RecoveryQueue(durableSql(storage), readSettings(env).host, platformClock, slots);
}
