/** A tool in TypeScript (K2): trusted code of the operator, bundled into the Worker at build. */
import type { z } from 'zod';
import type { Effects } from '../domain/action.ts';
import type { JsonObject } from '../domain/json.ts';

/** What a tool may use while it runs. */
export interface ToolContext {
  /** Aborted at the time-out of the action, and when its run is cancelled. Pass it on to everything that waits. */
  readonly signal: AbortSignal;
  /**
   * The same for every attempt of this action, and different for every other action. Pass it to services that accept an
   * idempotency key, so that a repeated call has no second effect.
   */
  readonly idempotencyKey: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** The session that the action belongs to. */
  readonly session: {
    readonly id: string;
    readonly agent: string;
    readonly userId: string | null;
    /** The namespace of its API key; null without keys. */
    readonly namespace: string | null;
  };
  /**
   * Like the global `fetch`, with text bodies only, under the operator's rules for addresses. Follows `signal` in
   * addition to the one in `init`. Rejects with an error that says which rule refused the request; reading a response of
   * more than 2 MiB rejects as well.
   */
  readonly fetch: (url: string | URL, init?: ToolRequestInit) => Promise<Response>;
  /** The secrets that the tool's manifest lists, by name (`TOOL_…`). */
  readonly secrets: Readonly<Record<string, string>>;
  /** The bindings that the tool's manifest lists, by name: D1, KV, R2, Queues, Vectorize, services. */
  readonly env: ToolBindings;
  /** Shown to people while the action runs. Not stored, and not shown to the model. */
  progress(update: string | ToolProgress): void;
  readonly artifacts: {
    /**
     * Adds a file to the result. It is stored with the session, and the prompt shows its name instead of its bytes. At most
     * 16 files, 4 MiB in total.
     *
     * @throws ToolError `artifact_too_large`; TypeError for an empty name or a content of another type
     */
    write(name: string, content: string | Uint8Array, mediaType?: string): void;
  };
}

/** Declare the types of your bindings by augmenting this interface: `interface ToolBindings { DB: D1Database }`. */
// oxlint-disable-next-line typescript/no-empty-object-type -- users add their bindings to it
export interface ToolBindings extends Readonly<Record<string, unknown>> {}

export interface ToolProgress {
  readonly message?: string;
  /** 0 to 100. */
  readonly percent?: number;
}

export interface ToolRequestInit {
  readonly method?: string;
  readonly headers?: Headers | Readonly<Record<string, string>> | readonly (readonly [string, string])[];
  readonly body?: string | URLSearchParams;
  readonly signal?: AbortSignal;
}

export interface ToolOptions<Parameters extends z.ZodType> {
  /** As the model names it: a letter, then letters, digits, `_` or `-`; at most 64 characters. */
  readonly name: string;
  /** One or two sentences for the model: what the tool does, and when to use it. At most 500 characters. */
  readonly description: string;
  /**
   * A zod object. Its JSON Schema is part of the prompt, and `run` gets the parsed value, which must be a JSON object: it is what
   * policies judge and people approve.
   */
  readonly parameters: Parameters;
  /**
   * `pure`: no effect, and the same result for the same input. `idempotent`: a repeated call has no second effect.
   * `unsafe` (default): may not be repeated without a person's decision.
   */
  readonly effects?: Effects;
  /** Example parameters for the model. */
  readonly example?: z.input<Parameters>;
  /**
   * Runs one attempt.
   *
   * @returns a JSON value of at most 8 MiB; `undefined` means null
   * @throws ToolError to choose the code and whether a retry may help; any other error fails the action without a retry
   */
  run(input: z.output<Parameters>, ctx: ToolContext): unknown;
}

/** A defined tool, as a project's bundle holds it. */
export interface CodeTool<Parameters extends z.ZodType = z.ZodType> extends ToolOptions<Parameters> {
  readonly effects: Effects;
}

/** A failure that the tool chooses: its message is shown to the model. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
  readonly code: string;
  readonly retryable: boolean;

  /**
   * @param options `code`: stable, snake_case, default `tool_failed`. `retryable`: whether the same call may succeed
   *   later; default false
   */
  constructor(message: string, options: { code?: string; retryable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code ?? 'tool_failed';
    this.retryable = options.retryable ?? false;
  }
}

/**
 * Defines a tool. The file `tools/<name>.ts` of a project exports it by default.
 *
 * ```ts
 * export default defineTool({
 *   name: 'days_between',
 *   description: 'Number of days between two dates.',
 *   parameters: z.object({ from: z.iso.date(), to: z.iso.date() }),
 *   effects: 'pure',
 *   run: ({ from, to }) => (Date.parse(to) - Date.parse(from)) / 86_400_000,
 * });
 * ```
 *
 * @throws TypeError for options that are not of these types: the build reports it with the file
 */
export function defineTool<Parameters extends z.ZodType>(options: ToolOptions<Parameters>): CodeTool<Parameters> {
  const { name, description, parameters, effects = 'unsafe', run } = options;
  const issue =
    textIssue('name', name) ??
    textIssue('description', description) ??
    (isSchema(parameters) ? null : '"parameters" must be a zod object') ??
    (EFFECTS.includes(effects) ? null : `"effects" must be one of ${EFFECTS.join(', ')}`) ??
    (typeof run === 'function' ? null : '"run" must be a function') ??
    unknownMember(options);
  if (issue !== null) throw new TypeError(`defineTool: ${issue}`);
  return { ...options, effects };
}

/** The JSON Schema of a tool's parameters, as the model sees it. @throws Error for types that JSON Schema does not have */
export function schemaOf({ parameters }: Pick<CodeTool, 'parameters'>): JsonObject {
  const standard = parameters['~standard'] as unknown as StandardJsonSchema;
  const { $schema: _dialect, ...schema } = standard.jsonSchema.input({ target: 'draft-2020-12' });
  return schema;
}

/**
 * Why parsed parameters would not be JSON, as the types of the schema show; null if they show nothing. What a transformation
 * gives is known only when it runs.
 */
export function parsedIssue({ parameters }: Pick<CodeTool, 'parameters'>): string | null {
  const standard = parameters['~standard'] as unknown as StandardJsonSchema;
  let issue: string | null = null;
  const override = ({ zodSchema, path }: ShownType): void => {
    const { type } = zodSchema.def;
    if (!NOT_JSON.has(type)) return;
    const place = ['parameters', ...path.filter((step) => step !== 'properties')].join('.');
    issue ??= `${place}: the schema gives a ${type}, which is not JSON; convert it in "run"`;
  };
  try {
    standard.jsonSchema.output({ target: 'draft-2020-12', libraryOptions: { unrepresentable: 'any', override } });
  } catch {
    // It says nothing about the parsed parameters.
  }
  return issue;
}

/** Types of zod whose values JSON does not have. */
const NOT_JSON: ReadonlySet<string> = new Set('bigint date file function map nan promise set symbol'.split(' '));

/** A part of a schema that zod converts. */
interface ShownType {
  readonly zodSchema: { readonly def: { readonly type: string } };
  readonly path: readonly (string | number)[];
}

/** Standard JSON Schema: zod implements it, so that this module needs no zod at run time. */
interface StandardJsonSchema {
  readonly jsonSchema: {
    input(options: { readonly target: 'draft-2020-12' }): JsonObject;
    output(options: {
      readonly target: 'draft-2020-12';
      readonly libraryOptions: { readonly unrepresentable: 'any'; readonly override: (part: ShownType) => void };
    }): JsonObject;
  };
}

const EFFECTS: readonly Effects[] = ['pure', 'idempotent', 'unsafe'];
const MEMBERS = ['name', 'description', 'parameters', 'effects', 'example', 'run'];

function isSchema(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || !('~standard' in value)) return false;
  return typeof value['~standard'] === 'object' && value['~standard'] !== null && 'jsonSchema' in value['~standard'];
}

function textIssue(member: string, value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? null : `"${member}" must be a text`;
}

function unknownMember(options: object): string | null {
  const unknown = Object.keys(options).find((member) => !MEMBERS.includes(member));
  return unknown === undefined ? null : `unknown member "${unknown}" (known: ${MEMBERS.join(', ')})`;
}
