/** Relic manifests of the original system. */
import type { Draft } from '../read/draft.ts';

export function understandRelic(draft: Draft): void {
  listenPort(draft);
}

/** The original has the port of the service at the top level. */
function listenPort(draft: Draft): void {
  if (!draft.has(['port']) || draft.has(['implementation', 'port'])) return;
  draft.note(['port'], 'understood as implementation.port');
  draft.move(['port'], ['implementation', 'port']);
}
