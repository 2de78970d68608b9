/** The tools of the tasks: their manifests, and what they answer. No network, no clock: equal calls have equal results. */
import type { ActionOutcome } from '../../../src/domain/action.ts';
import { messageOf } from '../../../src/domain/errors.ts';
import { failure } from '../../../src/domain/failure.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { runQuery } from '../../../src/executors/builtin/query.ts';
import { checksumOf, storedText } from './checksum.ts';
import type { ToolSpec } from './dataset.ts';

/** Built-in tools that tasks may use: they need no network. */
export const BUILTIN_TOOLS = ['calculator', 'json_query', 'echo'] as const;
/** The nominal duration of a built-in tool. */
const BUILTIN_MS = 100;

/** The nominal duration of a tool, milliseconds. */
export function nominalMs(specs: ReadonlyMap<string, ToolSpec>): (tool: string) => number {
  return (tool) => specs.get(tool)?.ms ?? BUILTIN_MS;
}

/** A tool as a manifest. The executor answers in place of the implementation. */
export function toolManifest(name: string, { summary, parameters, returns }: ToolSpec): JsonObject {
  return {
    kind: 'Tool',
    version: '1.0',
    name,
    summary,
    implementation: { type: 'builtin', entrypoint: 'echo' },
    effects: 'idempotent',
    parameters,
    returns,
    retry: 1,
  };
}

/** The tools during one run: counts the calls of those that fail at first. */
export class TaskTools {
  readonly #specs: ReadonlyMap<string, ToolSpec>;
  readonly #calls = new Map<string, number>();

  constructor(specs: ReadonlyMap<string, ToolSpec>) {
    this.#specs = specs;
  }

  has(name: string): boolean {
    return this.#specs.has(name);
  }

  /** @param parameters as the manifest allows them: the runtime has checked them */
  call(name: string, parameters: JsonObject): ActionOutcome {
    const spec = this.#specs.get(name);
    if (spec === undefined) return failure('unknown_name', `No tool is called "${name}"`);
    const { fails_first: fault, data, result } = spec;
    const count = (this.#calls.get(name) ?? 0) + 1;
    this.#calls.set(name, count);
    if (fault !== undefined && count <= fault.times) {
      return failure(fault.code, fault.message, { retryable: fault.retryable === true });
    }
    try {
      const output = runQuery({ parameters, data, ...measured(spec, parameters) }, result);
      if (output !== null) return { ok: true, output };
      return failure('not_found', `${name} found nothing for ${JSON.stringify(parameters)}. ${namesIn(data)}`.trim());
    } catch (fault) {
      return failure('tool_failed', `${name}: ${messageOf(fault)}`);
    }
  }
}

/** Of the parameter that the tool has a checksum of. */
function measured({ digest }: ToolSpec, parameters: JsonObject): JsonObject {
  if (digest === undefined) return {};
  const text = storedText(String(parameters[digest] ?? ''));
  return { digest: checksumOf(text), characters: text.length, lines: text.split('\n').length };
}

/** The keys of the data, so that a model can correct the one that it has used. */
function namesIn(data: Json): string {
  const keys = Array.isArray(data)
    ? data.flatMap((row) => (typeof row === 'object' && row !== null ? [Object.values(row)[0] ?? null] : []))
    : Object.keys(data ?? {});
  const names = keys.filter((key) => typeof key === 'string' || typeof key === 'number');
  return names.length === 0 ? '' : `Known: ${names.join(', ')}`;
}
