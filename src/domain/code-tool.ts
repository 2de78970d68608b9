/** What a build knows of a code tool, before it runs in the Worker (K2). */
import type { Effects } from './action-types.ts';
import type { Json, JsonObject } from './json.ts';

export interface DescribedTool {
  /** Relative to the project. */
  readonly file: string;
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the parameters object. */
  readonly parameters: JsonObject;
  readonly effects: Effects;
  readonly example?: Json;
}
