/** Mistakes in the export of traces. */
import type { Patch } from '../patch.ts';

const OUTBOX = 'src/telemetry/outbox.ts';

export const TELEMETRY_PATCHES: readonly Patch[] = [
  {
    name: 'a failed request counts as sent',
    file: OUTBOX,
    find: "if (result.type === 'failed') failed.set(",
    replace: "if (result.type === 'never') failed.set(",
    invariant: 'exported spans',
    exportsTraces: true,
  },
  {
    name: 'the cursor moves before the answer of the collector',
    file: OUTBOX,
    find: 'const sent = await this.#send(',
    replace:
      'this.#ports.storage.put(CURSOR, { seq: until, at: since } satisfies Cursor);\n    const sent = await this.#send(',
    invariant: 'exported spans',
    exportsTraces: true,
  },
  {
    name: 'a failed export is not repeated by the alarm',
    file: 'src/engine/session/session-alarm.ts',
    find: 'const exportedAt = this.#telemetry?.dueAt ?? null;',
    replace: 'const exportedAt = null;',
    invariant: 'exported spans',
    exportsTraces: true,
  },
  {
    name: 'an action with the id of an earlier one has its span',
    file: 'src/telemetry/run-trace.ts',
    find: "span('attempt', iteration, actionId, attempt)",
    replace: "span('attempt', iteration, actionId)",
    invariant: 'exported spans',
    exportsTraces: true,
  },
];
