/** A feed's source as an action: what is judged, checked and executed is the same call (F1). */
import { plainDeclaration } from '../../domain/action.ts';
import type { ActionDeclaration, ActionType } from '../../domain/action.ts';
import { actionParameter } from '../../domain/feed-action.ts';
import type { FeedDefinition, FeedSource } from '../../domain/manifests/feed.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';

/** The action of a tool is one of its parameters, unless the feed has it. */
export function withAction(source: FeedSource, tool: ToolDefinition | null): FeedSource {
  const name = tool === null || source.action === null ? null : actionParameter(tool.parameters);
  if (name === null || Object.hasOwn(source.params, name)) return source;
  return { ...source, params: { ...source.params, [name]: source.action } };
}

/** The action that fetches a feed's source. */
export function actionOf({ id, source }: Pick<FeedDefinition, 'id' | 'source'>): ActionDeclaration {
  const { type, name, action, params } = source;
  return plainDeclaration({
    id,
    type: type as ActionType,
    mode: 'async',
    name: type === 'relic' && action !== null ? `${name}.${action}` : name,
    parameters: params,
  });
}
