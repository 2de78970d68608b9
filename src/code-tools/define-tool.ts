/** A tool in TypeScript (K2): trusted code of the operator, bundled into the Worker at build. */
import type { z } from 'zod';
import type { Effects } from '../domain/action.ts';
import type { Json } from '../domain/json.ts';

/** What a tool may use while it runs. */
export interface ToolContext {
  /** Aborted at the time-out of the action, and when its run is cancelled. Pass it on to everything that waits. */
  readonly signal: AbortSignal;
  /**
   * The same for every attempt of this action, and different for every other action: pass it to services that accept an
   * idempotency key, so that a repeated call has no second effect.
   */
  readonly idempotencyKey: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** The session that the action belongs to. */
  readonly session: {
    readonly id: string;
    /** The namespace of its API key; null without keys. */
    readonly namespace: string | null;
    readonly userId: string | null;
    readonly agent: string;
  };
  /** Like the global `fetch`, under the operator's rules for addresses (`TOOL_ALLOW_HOSTS`), and aborted with `signal`. */
  readonly fetch: (input: string | URL, init?: RequestInit) => Promise<Response>;
  /** The secrets that the tool's manifest lists, by name (`TOOL_…`). */
  readonly secrets: Readonly<Record<string, string>>;
  /** The bindings that the tool's manifest lists, by name: D1, KV, R2, Queues, Vectorize, services. */
  readonly env: Readonly<Record<string, unknown>>;
  /** Shown to people while the action runs; not stored, and not shown to the model. */
  progress(update: string | { readonly message?: string; readonly percent?: number }): void;
  /** Files of the result: stored with the session, downloadable, and named to the model instead of being printed. */
  readonly artifacts: {
    /** @param content at most 8 MiB */
    write(name: string, content: string | Uint8Array, mediaType?: string): void;
  };
}

export interface ToolOptions<Parameters extends z.ZodType> {
  /** As the model names it: letters, digits, `_`, `-`. */
  readonly name: string;
  /** One or two sentences for the model: what the tool does, and when to use it. */
  readonly description: string;
  /** An object schema. Its JSON Schema is part of the prompt, and `run` gets the parsed value. */
  readonly parameters: Parameters;
  /**
   * `pure`: the same result again, no effect. `idempotent`: an effect that a repetition does not repeat. `unsafe`
   * (default): never started early, never repeated without asking.
   */
  readonly effects?: Effects;
  /** @returns a JSON value; undefined means null. @throws ToolError, or anything: the action fails */
  run(input: z.output<Parameters>, ctx: ToolContext): unknown;
}

/** A defined tool, as the project's bundle holds it. */
export interface CodeTool {
  readonly name: string;
  readonly description: string;
  readonly effects: Effects;
  /** JSON Schema of the parameters object. */
  schema(): Record<string, Json>;
  /** Parses the parameters, then runs the tool. */
  run(input: unknown, ctx: ToolContext): Promise<unknown>;
}

export function defineTool<Parameters extends z.ZodType>(options: ToolOptions<Parameters>): CodeTool {
  throw new Error(`not built yet: ${options.name}`);
}
