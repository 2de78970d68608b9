/** The record of a child session (M6, M7). */
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { ChildRequest } from '../../domain/ports/children.ts';
import type { SessionRecord } from '../../domain/session.ts';

/** What the id of the child with this key is derived from: a parent that has lost everything else can find it again. */
export const childIdSource = ({ key }: Pick<ChildRequest, 'key'>): string => `child of ${key}`;

/**
 * @param id derived from `childIdSource`
 * @throws EngineError `too_deep` beyond the maximum depth
 */
export function childRecord(id: string, parent: SessionRecord, request: ChildRequest, now: number): SessionRecord {
  const depth = (parent.parent?.depth ?? 0) + 1;
  if (depth > limits.childDepth) {
    throw new EngineError(
      'too_deep',
      `"${request.name}" was not started: the nesting limit of ${limits.childDepth} sessions is exceeded`,
      { beforeDispatch: true },
    );
  }
  return {
    session_id: id,
    agent: request.name,
    ...(request.type === 'workflow' ? { workflow: request.name } : {}),
    ...(request.scope === undefined ? {} : { scope: request.scope }),
    user_id: parent.user_id,
    owner: parent.owner,
    kind: 'child',
    metadata: {},
    created_at: now,
    parent: { session_id: parent.session_id, key: request.key, depth },
  };
}
