/** The export of a session's traces and metrics to the collector of the deployment (O1, O2). */
import type { Logger } from '../domain/log.ts';
import type { NoteStorage } from '../domain/ports/storage.ts';
import type { SessionTelemetry } from '../engine/session/session-telemetry.ts';
import { readSettings } from '../settings/settings.ts';
import { TelemetryOutbox } from '../telemetry/outbox.ts';
import { exportOf } from '../telemetry/project.ts';
import { sendTelemetry } from '../telemetry/send.ts';
import type { Env } from './env.ts';
import type { Network } from './network.ts';
import { platformClock } from './platform.ts';

/** @returns null without an endpoint: then nothing is read, stored or sent */
export function telemetryOf(
  env: Env,
  { services }: Network,
  storage: NoteStorage,
  session: () => SessionTelemetry | null,
  log: Logger,
): TelemetryOutbox | null {
  const { telemetry: settings } = readSettings(env);
  if (settings === null) return null;
  const { sampling, resource, hasContent } = settings;
  return new TelemetryOutbox({
    storage,
    clock: platformClock,
    journal: session,
    read: ({ after, until, since }) => {
      const runs = session()?.runs({ after, until }, sampling, hasContent) ?? [];
      return exportOf(runs, resource, { after, since });
    },
    send: async (signal, body, timeoutMs) => {
      const collector = settings[signal];
      if (collector === null) return { type: 'sent' };
      return await sendTelemetry(collector, body, {
        fetch: services,
        clock: platformClock,
        timeoutMs,
      });
    },
    log,
  });
}
