/**
 * The action types: all properties of a type in one table, which the parser, references, prompt, policy, scheduler and
 * executor registry read.
 *
 * To add a type: a row here, a file in `src/executors/`, and a line in its registry.
 */
import { limits } from './limits.ts';

/** The effect of executing the same action again (S7). The default is `unsafe`. */
export type Effects = 'pure' | 'idempotent' | 'unsafe';

/**
 * The type of a parameter. `text` is a non-blank string, `name` follows the rule of ids (P12), `inputs` is an object of
 * values for code (P14).
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

/** Parameters by name. A name ending in `?` is optional. */
export type ParameterShape = Readonly<Record<string, ParameterKind>>;

interface ActionTypeSpec {
  /** Description in `GET /executors`. */
  readonly description: string;
  /** Default effects, if no manifest declares them (S7). */
  readonly effects: Effects;
  /** Default timeout, if neither the action nor a manifest sets one (S8). */
  readonly timeoutMs: number;
  /**
   * How an agent's manifest allows it (X4). `import`: it lists the targets; `capability`: it lists the type;
   * `internal_actions`: it may block targets; `always`: no permission is needed.
   */
  readonly allowedBy: 'import' | 'capability' | 'internal_actions' | 'always';
  /**
   * Whether the action must name its target. If not, the type is the name, and a body without `parameters` is read as
   * the parameters (P6).
   */
  readonly named: boolean;
  /**
   * For types that run code: the parameters that are passed to a process exactly as written (P14), and how values are
   * passed to it. If values are environment variables, a `$name` in the code is a reference.
   */
  readonly code: { readonly parameters: readonly string[]; readonly inputs: 'values' | 'environment' } | null;
  /** Whether a running action uses one of the run's slots. A type that schedules its own work does not (S5). */
  readonly takesSlot: boolean;
  /** Scope of the concurrency reduction after an overload: one target, or the whole type (S5). */
  readonly pacedBy: 'target' | 'type';
  /** What an attempt charges to the run's budget: nothing, a model call, or the spending of its own session (S12). */
  readonly spends: 'nothing' | 'model_call' | 'session';
  /** Runner requirements; `interpreter` null means a Docker engine. Null: needs no runner. */
  readonly runner: { readonly required: boolean; readonly interpreter: 'python3' | 'shell' | null } | null;
  /** Parameters shared by all targets of the type; null if each target has its own. */
  readonly parameters: ParameterShape | null;
  /** The parameter that a body in plain text is; null if the body must be JSON (P6). */
  readonly text: string | null;
  /** Description in the prompt, for types whose targets have no manifest. */
  readonly prompt: string | null;
  /** Description as a native function (P17). */
  readonly functionSummary: string | null;
  /** Icon in the plan report. */
  readonly icon: string;
  /** Alternative spellings used by models. */
  readonly aliases: readonly string[];
}

/** Defaults of most types. */
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
  text: null,
  prompt: null,
  functionSummary: null,
  aliases: [],
} as const satisfies Partial<ActionTypeSpec>;

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
    text: 'message',
    functionSummary: 'An agent that works independently and returns its answer',
  },
  relic: {
    ...USUAL,
    description: 'Persistent services: edge stores, and containers on a runner with a Docker engine',
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
    text: 'prompt',
    aliases: ['llm_call'],
    prompt: 'a separate model call: {prompt, system?}, returns text',
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
    text: 'code',
    prompt: '{code, inputs?}: Python 3',
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
    text: 'command',
    prompt: '{command, inputs?}: a shell command line',
    functionSummary:
      'A shell command line in a sandbox; its standard output is its result. `inputs` are environment variables.',
  },
  docker: {
    ...USUAL,
    description: 'A command in a separate container, from an image by name',
    icon: '🐳',
    timeoutMs: limits.longActionTimeoutMs,
    allowedBy: 'capability',
    named: false,
    code: { parameters: ['command', 'script', 'args'], inputs: 'environment' },
    pacedBy: 'type',
    runner: { required: true, interpreter: null },
    parameters: { image: 'text', command: 'text', 'args?': 'strings', 'inputs?': 'inputs' },
    prompt: '{image, command, args?, inputs?}: one container run',
    functionSummary: 'One container run; its standard output is its result.',
  },
} as const satisfies Record<string, ActionTypeSpec>;

type Table = typeof ACTION_TABLE;

export type ActionType = keyof Table;
export const ACTION_TYPES: readonly ActionType[] = Object.keys(ACTION_TABLE) as ActionType[];

/** The properties of a type. */
export function actionSpec(type: ActionType): ActionTypeSpec {
  return ACTION_TABLE[type];
}

/** The type of an action without a type. */
export const DEFAULT_ACTION_TYPE = 'tool' satisfies ActionType;

/** The types that an agent's manifest allows in a given way. */
type AllowedBy<Way extends ActionTypeSpec['allowedBy']> = {
  [Type in ActionType]: Table[Type]['allowedBy'] extends Way ? Type : never;
}[ActionType];

/** A type that runs code, allowed by an agent's `capabilities`. */
export type Capability = AllowedBy<'capability'>;
export const CAPABILITIES = ACTION_TYPES.filter((type) => isCapability(type));

/** A type that steps of workflows and sources of feeds may have: all that do not run code. */
export type ManifestActionType = Exclude<ActionType, Capability>;
export const MANIFEST_ACTION_TYPES = ACTION_TYPES.filter((type): type is ManifestActionType => !isCapability(type));

/** A type whose targets are imported by name. */
export type ImportedType = AllowedBy<'import'>;

export function isImported(type: ActionType): type is ImportedType {
  return ACTION_TABLE[type].allowedBy === 'import';
}

export function isCapability(type: ActionType): type is Capability {
  return ACTION_TABLE[type].allowedBy === 'capability';
}

const TYPES_BY_NAME: ReadonlyMap<string, ActionType> = new Map(
  ACTION_TYPES.flatMap((type) => [type, ...actionSpec(type).aliases].map((name): [string, ActionType] => [name, type])),
);

/** @returns null if the type is unknown */
export function actionTypeOf(name: string): ActionType | null {
  return TYPES_BY_NAME.get(name) ?? TYPES_BY_NAME.get(name.trim().toLowerCase()) ?? null;
}

/** An action on the model's own session (I). The manifest's policy can restrict it. */
interface InternalActionSpec {
  readonly parameters: ParameterShape;
  /** Also accepted, but not shown to models, to save tokens. */
  readonly further: ParameterShape;
  /** Description in the prompt. */
  readonly prompt: string;
  /** When it has completed, results of earlier iterations lose their names. */
  readonly forgetsResults: boolean;
  /**
   * Whether a token that may only view gets neither its parameters nor what came of it (T1): it shows feeds, or parts of the
   * prompt, such as the text of a skill (C8), tools (L4), facts about the user, any earlier value (C10).
   */
  readonly hiddenFromViews: boolean;
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
    prompt: '{key, value}: remember a value for the whole session, read as $key',
    forgetsResults: false,
    hiddenFromViews: false,
  },
  delete_variable: {
    parameters: { key: 'name' },
    further: {},
    prompt: '{key}',
    forgetsResults: false,
    hiddenFromViews: false,
  },
  add_context_feed: {
    parameters: { id: 'name', type: 'feed_type', 'interval?': 'seconds', source: 'feed_source' },
    further: FEED_FURTHER,
    prompt:
      '{id, type: on_demand|periodic, interval?, source: {"type":"internal","action":"system_clock"} or {type, name, action?, params?}}: shown to you at each turn',
    forgetsResults: false,
    hiddenFromViews: true,
  },
  update_context_feed: {
    parameters: { id: 'name', 'type?': 'feed_type', 'interval?': 'seconds', 'source?': 'feed_source' },
    further: FEED_FURTHER,
    prompt: '{id, …the fields to change}',
    forgetsResults: false,
    hiddenFromViews: true,
  },
  remove_context_feed: {
    parameters: { id: 'name' },
    further: {},
    prompt: '{id}',
    forgetsResults: false,
    hiddenFromViews: true,
  },
  list_context_feeds: {
    parameters: {},
    further: { 'id?': 'name' },
    prompt: '{}',
    forgetsResults: false,
    hiddenFromViews: true,
  },
  load_skill: {
    parameters: { name: 'text' },
    further: {},
    prompt: '{name}: read one of your skills',
    forgetsResults: false,
    hiddenFromViews: true,
  },
  describe_tools: {
    parameters: { 'names?': 'strings', 'search?': 'text' },
    further: {},
    prompt:
      '{names?, search?}: the parameters of your tools, of several at once; search: words of a tool that is not listed',
    forgetsResults: false,
    hiddenFromViews: true,
  },
  remember: {
    parameters: { key: 'name', value: 'text' },
    further: {},
    prompt: '{key, value}: keep a fact about the user for later sessions; the same key replaces it',
    forgetsResults: false,
    hiddenFromViews: true,
  },
  forget: {
    parameters: { key: 'name' },
    further: {},
    prompt: '{key}: remove a fact about the user',
    forgetsResults: false,
    hiddenFromViews: true,
  },
  recall: {
    parameters: { 'turns?': 'json', 'values?': 'json' },
    further: {},
    prompt: '{turns?, values?}: read earlier turns ["$turn_3", "$turn_4"], or earlier results ["$id"]',
    forgetsResults: false,
    hiddenFromViews: true,
  },
  clear_context: {
    parameters: {},
    further: {},
    prompt: '{}: forget variables and earlier results',
    forgetsResults: true,
    hiddenFromViews: false,
  },
} as const satisfies Record<string, InternalActionSpec>;

/** Reads a skill of the agent (C8): allowed by the import of a skill, not by the list of allowed internal actions. */
export const LOAD_SKILL = 'load_skill' satisfies keyof typeof INTERNAL_ACTION_TABLE;

/**
 * Describes tools that the prompt lists in short form (L4): allowed if there are such tools, not by the list of allowed
 * internal actions.
 */
export const DESCRIBE_TOOLS = 'describe_tools' satisfies keyof typeof INTERNAL_ACTION_TABLE;

/**
 * Returns its parameters: the model reads older values with it, which its prompt does not show (C10). Allowed if the manifest
 * limits the turns of prompts, not by the list of allowed internal actions.
 */
export const RECALL = 'recall' satisfies keyof typeof INTERNAL_ACTION_TABLE;

/** The actions that other parts of the manifest allow. Another place in the prompt shows them, and workflows have none. */
export const IMPLIED_ACTIONS: readonly string[] = [LOAD_SKILL, DESCRIBE_TOOLS, RECALL];

/** The actions of agents that keep facts about their users (C10). Workflows have none. */
export const MEMORY_ACTIONS = ['remember', 'forget'] as const satisfies readonly (keyof typeof INTERNAL_ACTION_TABLE)[];
export type MemoryAction = (typeof MEMORY_ACTIONS)[number];

export function isMemoryAction(name: string): name is MemoryAction {
  return MEMORY_ACTIONS.some((known) => known === name);
}

/** The actions that no workflow may take. */
export const AGENT_ACTIONS: readonly string[] = [...IMPLIED_ACTIONS, ...MEMORY_ACTIONS];

/** Idempotent: repeating one leaves the same state. */
export type InternalAction = keyof typeof INTERNAL_ACTION_TABLE;
export const INTERNAL_ACTIONS = Object.keys(INTERNAL_ACTION_TABLE) as readonly InternalAction[];

/** The properties of an internal action. */
export function internalActionSpec(name: InternalAction): InternalActionSpec {
  return INTERNAL_ACTION_TABLE[name];
}

export function isInternalAction(name: string): name is InternalAction {
  return Object.hasOwn(INTERNAL_ACTION_TABLE, name);
}

/**
 * Whether views hide what an action with this name has and returns (T1).
 *
 * @param name of an action that was accepted: one of the table, or that of another target
 */
export function isHiddenFromViews(name: string | null | undefined): boolean {
  return typeof name === 'string' && isInternalAction(name) && INTERNAL_ACTION_TABLE[name].hiddenFromViews;
}

/** Whether an action reads a skill. */
export function loadsSkill({ type, name }: { readonly type: ActionType; readonly name: string | null }): boolean {
  return type === 'internal' && name === LOAD_SKILL;
}

/** Whether the results of earlier iterations lose their names when this action has completed (I). */
export function forgetsResults({ type, name }: { readonly type: ActionType; readonly name: string | null }): boolean {
  return type === 'internal' && name !== null && isInternalAction(name) && internalActionSpec(name).forgetsResults;
}
