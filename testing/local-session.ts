/**
 * The assembly of a session without a platform: the real engine over a database in this process. Tests, the test kit, the
 * simulation and the tasks of `cortex fluency` differ in the ports that they replace. The assembly on Cloudflare is
 * src/durable/objects/session-object.ts.
 */
import { FairQueue, ThreadShare } from '../src/domain/fair-queue.ts';
import type { SqlDatabase } from '../src/domain/ports/storage.ts';
import { QuarantineSlots } from '../src/engine/replay/quarantine-slots.ts';
import { RecoveryQueue } from '../src/engine/replay/recovery-queue.ts';
import type { HostLife } from '../src/engine/replay/recovery-queue.ts';
import { redactor } from '../src/engine/session/redact.ts';
import type { SessionPorts } from '../src/engine/session/session-ports.ts';
import { Session } from '../src/engine/session/session.ts';
import { createExecutors } from '../src/executors/registry.ts';
import { Journal } from '../src/journal/journal.ts';
import { instantClock } from './instant-clock.ts';

type Needed = 'clock' | 'resolve' | 'modelFor';
type Own = 'journal' | 'recoveryQueue';

/** Every other port has a default: what lies outside of the process is absent. */
export type LocalPorts = Pick<SessionPorts, Needed> &
  Partial<Omit<SessionPorts, Needed | Own>> & {
    /** The host's description from its starter. Default: its first life. */
    readonly host?: HostLife;
    readonly slots?: QuarantineSlots;
  };

const absent = (what: string) => (): Promise<never> => Promise.reject(new Error(`This session has no ${what}`));

/**
 * A session over `sql`, which is created next if the database is empty.
 *
 * @example
 * const session = localSession(openNodeSql(), { clock, resolve: () => resolved, modelFor: () => model });
 */
export function localSession(
  sql: SqlDatabase,
  { host = { life: 1, frozen: [] }, slots = new QuarantineSlots(), ...ports }: LocalPorts,
): Session {
  let approvals = 0;
  return new Session({
    journal: new Journal(sql),
    recoveryQueue: new RecoveryQueue(sql, host, ports.clock, slots),
    share: ports.share ?? new ThreadShare(new FairQueue(instantClock()), () => null),
    random: () => 0.5,
    newApprovalId: () => `apr_${(approvals += 1).toString(16).padStart(32, '0')}`,
    fetch: absent('network'),
    readHtml: absent('reader of pages'),
    runner: null,
    children: { run: absent('other sessions') },
    sharedFeeds: null,
    userFacts: null,
    pin: () => Promise.resolve(null),
    workflow: () => null,
    hold: () => undefined,
    redact: redactor([]),
    log: () => undefined,
    ...ports,
    executors: ports.executors ?? createExecutors(),
  });
}
