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
