/** The action of a feed whose source is a tool. */
import { isJsonObject } from './json.ts';
import type { JsonObject } from './json.ts';

/** The parameter of a tool that says which of its operations is called; null if it has none. @param schema JSON Schema */
export function actionParameter({ properties }: JsonObject): 'action' | 'operation' | null {
  if (!isJsonObject(properties)) return null;
  for (const name of ['action', 'operation'] as const) if (Object.hasOwn(properties, name)) return name;
  return null;
}
