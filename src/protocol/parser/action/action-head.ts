/** The opening tag of an action (P5, P6), and the field names that tag and body share. */
import { DEFAULT_ACTION_TYPE, actionTypeOf } from '../../../domain/action-types.ts';
import type { ActionMode, ActionType } from '../../../domain/action.ts';
import type { Json } from '../../../domain/json.ts';
import { readMode, snakeCase } from './field-values.ts';
import type { TagHead } from '../tag-head.ts';

/** Raw values of the fields from tag and body; undefined if neither has the field. */
export interface RawFields {
  // What the action is.
  name: Json | undefined;
  type: Json | undefined;
  mode: Json | undefined;
  id: Json | undefined;
  parameters: Json | undefined;
  // When and how it runs. In the body these may also appear next to its parameters.
  output_key: Json | undefined;
  depends_on: Json | undefined;
  wait_for_all: Json | undefined;
  timeout: Json | undefined;
  retry: Json | undefined;
  retry_count: Json | undefined;
  retry_delay_seconds: Json | undefined;
  on_error: Json | undefined;
  skip_on_error: Json | undefined;
  when: Json | undefined;
  priority: Json | undefined;
  idempotency_key: Json | undefined;
  cache_ttl: Json | undefined;
}

export type Field = keyof RawFields;

/** Creates all properties at once, so that every action's object has the same shape. */
function noFields(): RawFields {
  return {
    name: undefined,
    type: undefined,
    mode: undefined,
    id: undefined,
    parameters: undefined,
    output_key: undefined,
    depends_on: undefined,
    wait_for_all: undefined,
    timeout: undefined,
    retry: undefined,
    retry_count: undefined,
    retry_delay_seconds: undefined,
    on_error: undefined,
    skip_on_error: undefined,
    when: undefined,
    priority: undefined,
    idempotency_key: undefined,
    cache_ttl: undefined,
  };
}

const IDENTITY: ReadonlySet<Field> = new Set(['name', 'type', 'mode', 'id', 'parameters']);

/** The fields of the opening tag. Belongs to one action: `readFields` adds the body's fields to `raw`. */
export interface ActionHead {
  /** Null when the tag names a type that does not exist. */
  readonly type: ActionType | null;
  readonly mode: ActionMode | null;
  readonly name: string | null;
  readonly id: string | null;
  readonly raw: RawFields;
  /** Attributes that are not fields, with their values. */
  readonly unknown: readonly Attribute[];
  /** The tag says `type="feed"`: an internal action that reads a feed. */
  readonly readsFeed: boolean;
}

export type Attribute = readonly [name: string, value: string];

const FIELDS: ReadonlyMap<string, Field> = new Map<string, Field>([
  ...(Object.keys(noFields()) as Field[]).map((field) => [field, field] as const),
  ['arguments', 'parameters'],
  ['params', 'parameters'],
  ['timeout_seconds', 'timeout'],
  ['condition', 'when'],
]);

/** The field that a key or an attribute names, in any accepted spelling. */
export function fieldOf(key: string): Field | undefined {
  return FIELDS.get(key) ?? FIELDS.get(snakeCase(key));
}

/** The scheduling field that a key next to parameters names. Only common spellings count; others are parameters. */
export function schedulingFieldOf(key: string): Field | undefined {
  const field = FIELDS.get(key);
  return field === undefined || IDENTITY.has(field) ? undefined : field;
}

export function readHead(tag: TagHead): ActionHead {
  const raw = noFields();
  const unknown: Attribute[] = [];
  tag.attributes((name, value) => {
    const field = fieldOf(name);
    if (field === undefined) unknown.push([name, value]);
    else raw[field] ??= value;
  });
  return headOf(raw, unknown);
}

/** The head of an action that does not come from a tag. */
export function headFrom(fields: Partial<RawFields>): ActionHead {
  return headOf({ ...noFields(), ...fields }, []);
}

function headOf(raw: RawFields, unknown: readonly Attribute[]): ActionHead {
  const { mode = 'sync', name, id } = raw;
  const readsFeed = typeof raw.type === 'string' && raw.type.trim().toLowerCase() === 'feed';
  if (readsFeed) raw.type = 'internal' satisfies ActionType;
  const type = typeof raw.type === 'string' ? actionTypeOf(raw.type) : DEFAULT_ACTION_TYPE;
  if (type !== null && raw.type !== undefined) raw.type = type;
  return {
    type,
    mode: readMode(mode),
    name: typeof name === 'string' ? name.trim() || null : null,
    id: typeof id === 'string' ? id.trim() || null : null,
    raw,
    unknown,
    readsFeed,
  };
}
