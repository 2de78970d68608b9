/** What an action's opening tag says (P5, P6), and the names of the fields that tag and body share. */
import { DEFAULT_ACTION_TYPE, actionTypeOf } from '../../domain/action-types.ts';
import type { ActionMode, ActionType } from '../../domain/action.ts';
import type { Json } from '../../domain/json.ts';
import { readMode, snakeCase } from './field-values.ts';
import type { TagHead } from './tag-head.ts';

/** What tag and body say, by field; undefined where neither says anything. */
export interface Given {
  // What the action is.
  name: Json | undefined;
  type: Json | undefined;
  mode: Json | undefined;
  id: Json | undefined;
  parameters: Json | undefined;
  // When and how it runs. In the body these may also stand beside its parameters.
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

export type Field = keyof Given;

/** One object of one shape: made for every action, so it is written out. */
function nothingGiven(): Given {
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

/** What the opening tag alone says. Belongs to one action: `readFields` adds to `given` what the body says. */
export interface ActionHead {
  /** Null when the tag names a type that does not exist. */
  readonly type: ActionType | null;
  readonly mode: ActionMode | null;
  readonly name: string | null;
  readonly id: string | null;
  readonly given: Given;
  /** Attributes that are no fields. */
  readonly unknown: readonly string[];
}

const FIELDS: ReadonlyMap<string, Field> = new Map<string, Field>([
  ...(Object.keys(nothingGiven()) as Field[]).map((field) => [field, field] as const),
  ['arguments', 'parameters'],
  ['params', 'parameters'],
  ['timeout_seconds', 'timeout'],
  ['condition', 'when'],
]);

/** The field that a key or an attribute means, in any of its spellings. */
export function fieldOf(key: string): Field | undefined {
  return FIELDS.get(key) ?? FIELDS.get(snakeCase(key));
}

/** The scheduling field that a key means that stands beside parameters: other spellings than the common ones are parameters. */
export function schedulingFieldOf(key: string): Field | undefined {
  const field = FIELDS.get(key);
  return field === undefined || IDENTITY.has(field) ? undefined : field;
}

export function readHead(tag: TagHead): ActionHead {
  const given = nothingGiven();
  const unknown: string[] = [];
  tag.attributes((name, value) => {
    const field = fieldOf(name);
    if (field === undefined) unknown.push(name);
    else given[field] ??= value;
  });
  return headOf(given, unknown);
}

/** The head of an action that was not read from a tag. */
export function headFrom(fields: Partial<Given>): ActionHead {
  return headOf({ ...nothingGiven(), ...fields }, []);
}

function headOf(given: Given, unknown: readonly string[]): ActionHead {
  const { mode = 'sync', name, id } = given;
  const type = typeof given.type === 'string' ? actionTypeOf(given.type) : DEFAULT_ACTION_TYPE;
  if (type !== null && given.type !== undefined) given.type = type;
  return {
    type,
    mode: readMode(mode),
    name: typeof name === 'string' ? name.trim() || null : null,
    id: typeof id === 'string' ? id.trim() || null : null,
    given,
    unknown,
  };
}
