/** Mistakes in the redaction of what leaves (C9). */
import type { Patch } from '../patch.ts';

export const REDACTION_PATCHES: readonly Patch[] = [
  {
    name: 'events are written as they are',
    file: 'src/engine/run/run-log.ts',
    find: 'const written = outgoingEntry(this.#outgoingText, type, given, options.shown);',
    replace: 'const written = given; void outgoingEntry;',
    invariant: 'redacted',
  },
  {
    name: 'streamed text is sent as it is',
    file: 'src/engine/generation/segments.ts',
    find: 'redacted: this.#outgoingText?.stream() ?? null,',
    replace: 'redacted: null,',
    invariant: 'redacted',
  },
  {
    name: 'a recovered run is not redacted',
    file: 'src/engine/session/session-runs.ts',
    find: 'const outgoingText = redactionOfRun(this.#scope, resolved.agent.redact, stored);',
    replace:
      'const outgoingText = replay === null ? redactionOfRun(this.#scope, resolved.agent.redact, stored) : null;',
    invariant: 'redacted',
  },
];
