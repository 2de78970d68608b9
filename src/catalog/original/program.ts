/** The program of a tool or feed: agent-lib has its fields at the top level (M1). */
import { isJsonObject } from '../../domain/json.ts';
import type { Draft } from '../read/draft.ts';

/** Fields of the top level that belong to the implementation. */
const PROGRAM = ['runtime', 'entrypoint', 'script'] as const;
/** Names of `timeout`. */
const TIMEOUTS = ['timeout_secs', 'timeout_sec'] as const;

export function understandProgram(draft: Draft): void {
  gather(draft);
  timeout(draft);
}

function gather(draft: Draft): void {
  const found = PROGRAM.filter((name) => draft.has([name]));
  const implementation = draft.get(['implementation']);
  if (found.length === 0 || (implementation !== undefined && !isJsonObject(implementation))) return;
  if (['executor', 'execution', 'service'].some((name) => draft.has([name]))) return;
  const moved = found.filter((name) => !draft.has(['implementation', name]));
  for (const [index, name] of moved.entries()) {
    if (index === 0) draft.note([name], `understood as implementation: {${moved.join(', ')}}`);
    draft.move([name], ['implementation', name]);
  }
}

function timeout(draft: Draft): void {
  if (draft.has(['timeout'])) return;
  const inside = ['timeout', ...TIMEOUTS].map((name) => ['implementation', name]);
  const found = [...TIMEOUTS.map((name) => [name]), ...inside].find((path) => draft.has(path));
  if (found === undefined) return;
  draft.note(found, 'understood as timeout');
  draft.move(found, ['timeout']);
}
