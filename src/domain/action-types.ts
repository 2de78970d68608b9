/**
 * The types of actions: everything that is true of a type, in one table. The parser, the references,
 * the prompt, the policy, the scheduler and the list of executors read it.
 *
 * To add a type: a row here, a file in `src/executors/`, and a line in its registry.
 */
import { limits } from './limits.ts';

/** What a second execution of the same action would do to the world (S7). Unstated is `unsafe`. */
export type Effects = 'pure' | 'idempotent' | 'unsafe';

/**
 * What a parameter may hold. `text` is a string that is not blank, `name` follows the rule of ids (P12),
 * `inputs` is an object of values for code (P14).
 */
export type ParameterKind =
  | 'text'
  | 'string'
  | 'strings'
  | 'name'
  | 'json'
  | 'object'
  | 'inputs'
  | 'boolean'
  | 'count'
  | 'seconds'
  | 'feed_type'
  | 'feed_source'
  | 'feed_on_error';

/** Parameters by name; a name that ends in `?` may be left out. */
export type ParameterShape = Readonly<Record<string, ParameterKind>>;

interface ActionTypeFacts {
  /** For people, in `GET /executors`. */
  readonly description: string;
  /** What holds where no manifest states the effects (S7). */
  readonly effects: Effects;
  /** What holds where neither the action nor a manifest states a time-out (S8). */
  readonly timeoutMs: number;
  /**
   * Where an agent's manifest allows it (X4): `import` names what may be called, `capability` the type
   * itself, `internal_actions` what is blocked; `always` needs no permission.
   */
  readonly allowedBy: 'import' | 'capability' | 'internal_actions' | 'always';
  /**
   * Whether the action must name its target. Without that, the type is the name, and a body without
   * `parameters` is read as the parameters (P6).
   */
  readonly named: boolean;
  /**
   * Of types that run code: the parameters that reach a process exactly as written (P14), and how values
   * reach it beside them. Where they are environment variables, a `$name` in the code is a reference.
   */
  readonly code: { readonly parameters: readonly string[]; readonly inputs: 'values' | 'environment' } | null;
  /** Whether a running action takes one of the run's slots. One that schedules slots of its own does not (S5). */
  readonly takesSlot: boolean;
  /** What slows down together after an overload: each target by itself, or the whole type (S5). */
  readonly pacedBy: 'target' | 'type';
  /** What of the run's budget an attempt spends: a model call, or what a session of its own spends (S12). */
  readonly spends: 'nothing' | 'model_call' | 'session';
  /** What the runner must have; an `interpreter` of null is a Docker engine. Null: runs without a runner. */
  readonly runner: { readonly required: boolean; readonly interpreter: 'python3' | 'shell' | null } | null;
  /** The same for every target of the type; null where each target has its own. */
  readonly parameters: ParameterShape | null;
  /** How the prompt explains the type, where its targets have no manifest. */
  readonly prompt: string | null;
  /** How a native function of that name is described (P17). */
  readonly functionSummary: string | null;
  /** Stands for the type in the plan report. */
  readonly icon: string;
  /** Other spellings that models use. */
  readonly aliases: readonly string[];
}

/** What most types have in common. */
const USUAL = {
  effects: 'unsafe',
  timeoutMs: limits.actionTimeoutMs,
  named: true,
  code: null,
  takesSlot: true,
  pacedBy: 'target',
  spends: 'nothing',
  runner: null,
  parameters: null,
  prompt: null,
  functionSummary: null,
  aliases: [],
} as const satisfies Partial<ActionTypeFacts>;

/** In the order in which messages list the types. */
const ACTION_TABLE = {
  tool: {
    ...USUAL,
    description: 'Built-in, script, container and HTTP tools',
    icon: '🔧',
    allowedBy: 'import',
  },
  agent: {
    ...USUAL,
    description: 'Sub-agents',
    icon: '🤖',
    timeoutMs: limits.longActionTimeoutMs,
    allowedBy: 'import',
    takesSlot: false,
    spends: 'session',
    parameters: { message: 'text', 'context?': 'json' },
    functionSummary: 'An agent that works on its own and answers',
  },
  relic: {
    ...USUAL,
    description: 'Persistent services: stores at the edge, and containers where the runner has a Docker engine',
    icon: '🏺',
    allowedBy: 'import',
    runner: { required: false, interpreter: null },
  },
  workflow: {
    ...USUAL,
    description: 'Multi-step pipelines',
    icon: '🔀',
    timeoutMs: limits.longActionTimeoutMs,
    allowedBy: 'import',
    takesSlot: false,
    spends: 'session',
    functionSummary: 'A workflow',
  },
  llm: {
    ...USUAL,
    description: 'One model call outside the conversation',
    icon: '🧠',
    effects: 'idempotent',
    allowedBy: 'always',
    named: false,
    pacedBy: 'type',
    spends: 'model_call',
    parameters: { prompt: 'text', 'system?': 'string', 'model?': 'string', 'output_schema?': 'object' },
    prompt: 'a model call of its own: {prompt, system?}',
  },
  internal: {
    ...USUAL,
    description: 'Session variables',
    icon: '🔩',
    effects: 'idempotent',
    allowedBy: 'internal_actions',
    pacedBy: 'type',
    aliases: ['context_feed'],
  },
  python: {
    ...USUAL,
    description: "Python code in the runner's sandbox",
    icon: '🐍',
    allowedBy: 'capability',
    named: false,
    code: { parameters: ['code', 'script'], inputs: 'values' },
    pacedBy: 'type',
    runner: { required: true, interpreter: 'python3' },
    parameters: { code: 'text', 'inputs?': 'inputs' },
    prompt: '{code, inputs?}: Python 3 in a sandbox. What it prints is its result (JSON where it can be read as such).',
    functionSummary:
      'Python 3 in a sandbox; what it prints is its result. `inputs` is a dict of that name in the code.',
  },
  shell: {
    ...USUAL,
    description: "Shell commands in the runner's sandbox",
    icon: '🐚',
    allowedBy: 'capability',
    named: false,
    code: { parameters: ['command', 'script', 'args'], inputs: 'environment' },
    pacedBy: 'type',
    runner: { required: true, interpreter: 'shell' },
    parameters: { command: 'text', 'inputs?': 'inputs' },
    prompt: '{command, inputs?}: a shell command line in a sandbox; its standard output is its result.',
    functionSummary:
      'A shell command line in a sandbox; its standard output is its result. `inputs` are environment variables.',
  },
  docker: {
    ...USUAL,
    description: 'A command in a container of its own, from an image by name',
    icon: '🐳',
    timeoutMs: limits.longActionTimeoutMs,
    allowedBy: 'capability',
    named: false,
    code: { parameters: ['command', 'script', 'args'], inputs: 'environment' },
    pacedBy: 'type',
    runner: { required: true, interpreter: null },
    parameters: { image: 'text', command: 'text', 'args?': 'strings', 'inputs?': 'inputs' },
    prompt: '{image, command, args?, inputs?}: one container run; its standard output is its result.',
    functionSummary: 'One container run; its standard output is its result.',
  },
} as const satisfies Record<string, ActionTypeFacts>;

type Table = typeof ACTION_TABLE;

export type ActionType = keyof Table;
export const ACTION_TYPES: readonly ActionType[] = Object.keys(ACTION_TABLE) as ActionType[];

/** The facts about a type. */
export function factsOf(type: ActionType): ActionTypeFacts {
  return ACTION_TABLE[type];
}

/** The type of an action that names none. */
export const DEFAULT_ACTION_TYPE = 'tool' satisfies ActionType;

/** The types that an agent's manifest allows in one way. */
type AllowedBy<Way extends ActionTypeFacts['allowedBy']> = {
  [Type in ActionType]: Table[Type]['allowedBy'] extends Way ? Type : never;
}[ActionType];

/** A type that runs code, allowed by an agent's `capabilities`. */
export type Capability = AllowedBy<'capability'>;
export const CAPABILITIES = ACTION_TYPES.filter((type) => isCapability(type));

/** A type whose targets are imported by name. */
export type ImportedType = AllowedBy<'import'>;

export function isImported(type: ActionType): type is ImportedType {
  return ACTION_TABLE[type].allowedBy === 'import';
}

export function isCapability(type: ActionType): type is Capability {
  return ACTION_TABLE[type].allowedBy === 'capability';
}

const TYPES_BY_NAME: ReadonlyMap<string, ActionType> = new Map(
  ACTION_TYPES.flatMap((type) => [type, ...factsOf(type).aliases].map((name): [string, ActionType] => [name, type])),
);

/** @returns null when no type has this name */
export function actionTypeOf(name: string): ActionType | null {
  return TYPES_BY_NAME.get(name) ?? TYPES_BY_NAME.get(name.trim().toLowerCase()) ?? null;
}

/** What a model may do to its own session (I); the manifest's policy narrows it. */
interface InternalActionFacts {
  readonly parameters: ParameterShape;
  /** Accepted as well; not shown to models, to save tokens. */
  readonly further: ParameterShape;
  /** How the prompt explains it. */
  readonly prompt: string;
  /** The results of earlier iterations lose their names when it has completed. */
  readonly forgetsResults: boolean;
}

const FEED_FURTHER: ParameterShape = {
  'cache_ttl?': 'seconds',
  'max_tokens?': 'count',
  'enabled?': 'boolean',
  'on_error?': 'feed_on_error',
  'default?': 'json',
};

/** In the order in which prompts and messages list them. */
const INTERNAL_ACTION_TABLE = {
  set_variable: {
    parameters: { key: 'name', value: 'json' },
    further: {},
    prompt: '{key, value}: remember a value for the whole session; read it as $key',
    forgetsResults: false,
  },
  delete_variable: { parameters: { key: 'name' }, further: {}, prompt: '{key}', forgetsResults: false },
  add_context_feed: {
    parameters: { id: 'name', type: 'feed_type', 'interval?': 'seconds', source: 'feed_source' },
    further: FEED_FURTHER,
    prompt:
      '{id, type: on_demand|periodic, interval?, source: {type, name?, action?, params?}}: shown to you at each turn',
    forgetsResults: false,
  },
  update_context_feed: {
    parameters: { id: 'name', 'type?': 'feed_type', 'interval?': 'seconds', 'source?': 'feed_source' },
    further: FEED_FURTHER,
    prompt: '{id, …the fields to change}',
    forgetsResults: false,
  },
  remove_context_feed: { parameters: { id: 'name' }, further: {}, prompt: '{id}', forgetsResults: false },
  list_context_feeds: { parameters: {}, further: {}, prompt: '{}', forgetsResults: false },
  clear_context: {
    parameters: {},
    further: {},
    prompt: '{}: forget variables and earlier results',
    forgetsResults: true,
  },
} as const satisfies Record<string, InternalActionFacts>;

/** Asked for twice, each of them leaves the same state: their effects are those of the type. */
export type InternalAction = keyof typeof INTERNAL_ACTION_TABLE;
export const INTERNAL_ACTIONS = Object.keys(INTERNAL_ACTION_TABLE) as readonly InternalAction[];

/** The facts about an internal action. */
export function internalFactsOf(name: InternalAction): InternalActionFacts {
  return INTERNAL_ACTION_TABLE[name];
}

export function isInternalAction(name: string): name is InternalAction {
  return Object.hasOwn(INTERNAL_ACTION_TABLE, name);
}

/** Whether the results of earlier iterations lose their names when this action has completed (I). */
export function forgetsResults({ type, name }: { readonly type: ActionType; readonly name: string | null }): boolean {
  return type === 'internal' && name !== null && isInternalAction(name) && internalFactsOf(name).forgetsResults;
}
