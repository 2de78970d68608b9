/**
 * Parses the parameters of a code tool, and runs one attempt of it (K2).
 *
 * Owns: parsing, the tool's context, its time limit, and what its result may be. Does not own: where it
 * runs, and whether it runs again.
 *
 * Invariants
 * 1. It settles when the tool has returned or thrown, or when the signal has aborted, whichever comes first. It never
 *    throws.
 * 2. The tool sees the secrets and bindings of its manifest, and no others.
 * 3. What the tool does after the end (progress, files) has no effect.
 * 4. Parsed parameters are JSON, and `run` gets exactly these: they have been judged, shown and recorded (C9).
 */
import { base64Of } from '../domain/base64.ts';
import type { ActionOutcome } from '../domain/action.ts';
import { messageOf } from '../domain/errors.ts';
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { failure } from '../domain/failure.ts';
import type { Failure } from '../domain/failure.ts';
import { OutboundError } from '../domain/outbound-error.ts';
import type { ToolUpdate } from '../domain/ports/code-tools.ts';
import type { OutboundFetch } from '../domain/ports/outbound.ts';
import { unlessAborted } from '../domain/sleep.ts';
import { TRACEPARENT } from '../domain/trace.ts';
import { ToolError } from './define-tool.ts';
import type { CodeTool, ToolBindings, ToolContext, ToolProgress, ToolRequestInit } from './define-tool.ts';
import { exactJsonOf, jsonOf, NotJson } from './json-result.ts';

export interface ToolRun {
  readonly parameters: JsonObject;
  /** Absent: they are parsed first. */
  readonly parsed?: true;
  readonly idempotencyKey: string;
  readonly attempt: number;
  /** The `traceparent` of its requests, unless it sets its own (O1); absent: none. */
  readonly trace?: string;
  readonly session: ToolContext['session'];
  readonly secrets: Readonly<Record<string, string>>;
  readonly bindings: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly fetch: OutboundFetch;
  readonly progress: (update: ToolUpdate) => void;
}

export async function runTool(tool: CodeTool, run: ToolRun): Promise<ActionOutcome> {
  const parsed = run.parsed === true ? { ok: true as const, output: run.parameters } : await parseParameters(tool, run);
  if (!parsed.ok) return parsed;
  const attempt = new Attempt(run);
  try {
    run.signal.throwIfAborted();
    const work = (async () => await tool.run(parsed.output, attempt.context))();
    // what the tool still does after an abort is ignored
    return attempt.outcome(await unlessAborted(work, run.signal));
  } catch (fault) {
    return failureOf(tool.name, fault, run.signal);
  } finally {
    attempt.end();
  }
}

/** The input of `run`, or the failure of the schema: also one that throws, in a transform or a refinement. Never throws. */
export async function parseParameters(
  { name, parameters }: CodeTool,
  run: Pick<ToolRun, 'parameters' | 'signal'>,
): Promise<ActionOutcome> {
  const refused = (message: string): Failure => failure('invalid_parameters', message, { beforeDispatch: true });
  try {
    run.signal.throwIfAborted();
    const parsed = await unlessAborted(parameters.safeParseAsync(run.parameters), run.signal);
    if (parsed.success) return parsedOutcome(name, parsed.data);
    const [issue] = parsed.error.issues;
    const place = ['parameters', ...(issue?.path ?? [])].map(String).join('.');
    return refused(`${place}: ${issue?.message ?? 'refused'}`);
  } catch (fault) {
    if (run.signal.aborted) return aborted(run.signal);
    return refused(`the schema of the tool "${name}" failed: ${readable(fault)}`);
  }
}

/** Parsed parameters are judged and recorded, so they must be a JSON object of limited size. */
function parsedOutcome(name: string, data: unknown): ActionOutcome {
  const refused = (message: string): Failure => failure('parameters_not_json', message, { beforeDispatch: true });
  try {
    const output = exactJsonOf(data, 'parameters');
    if (!isJsonObject(output)) return refused(`the schema of the tool "${name}" does not give an object`);
    const chars = JSON.stringify(output).length;
    if (chars <= limits.outcomeBytes) return { ok: true, output };
    return refused(
      `the schema of the tool "${name}" gives ${chars} characters of JSON (maximum ${limits.outcomeBytes})`,
    );
  } catch (fault) {
    if (!(fault instanceof NotJson)) throw fault;
    const what = `the schema of the tool "${name}" gives a value that is not JSON: ${fault.message}`;
    return refused(`${what}. Convert it in "run" instead`);
  }
}

/** The context of one attempt, and what the tool has written into it. */
class Attempt {
  readonly context: ToolContext;
  readonly #files: JsonObject[] = [];
  readonly #run: ToolRun;
  #fileBytes = 0;
  #updates = 0;
  #isOver = false;

  constructor(run: ToolRun) {
    this.#run = run;
    const { idempotencyKey, attempt, session, signal, secrets, bindings } = run;
    this.context = {
      signal,
      idempotencyKey,
      attempt,
      session,
      secrets,
      // projects declare the types of their bindings; here they are not known
      env: bindings as unknown as ToolBindings,
      fetch: (url, init) => this.#fetch(url, init),
      progress: (update) => this.#progress(update),
      artifacts: { write: (name, content, mediaType) => this.#write(name, content, mediaType) },
    };
  }

  end(): void {
    this.#isOver = true;
  }

  outcome(returned: unknown): ActionOutcome {
    const result = jsonOf(returned);
    const output = this.#files.length === 0 ? result : withFiles(result, this.#files);
    const chars = JSON.stringify(output).length;
    if (chars <= limits.outcomeBytes) return { ok: true, output };
    return failure(
      'result_too_large',
      `The tool returned ${chars} characters of JSON (maximum ${limits.outcomeBytes}); write large data as an artifact`,
    );
  }

  async #fetch(url: string | URL, init: ToolRequestInit = {}): Promise<Response> {
    const { body, signal } = init;
    if (body !== undefined && typeof body !== 'string' && !(body instanceof URLSearchParams)) {
      throw new TypeError('ctx.fetch sends text bodies only: a string or URLSearchParams');
    }
    const headers = Object.fromEntries(new Headers(init.headers as Record<string, string>));
    const { trace } = this.#run;
    if (trace !== undefined) headers[TRACEPARENT] ??= trace;
    if (body instanceof URLSearchParams) headers['content-type'] ??= 'application/x-www-form-urlencoded;charset=UTF-8';
    return await this.#run.fetch(String(url), {
      ...(init.method === undefined ? {} : { method: init.method }),
      headers,
      ...(body === undefined ? {} : { body: String(body) }),
      signal: signal === undefined ? this.#run.signal : AbortSignal.any([signal, this.#run.signal]),
      whenTooLarge: 'fail',
    });
  }

  #progress(update: string | ToolProgress): void {
    this.#updates += 1;
    if (this.#isOver || this.#updates > limits.codeToolUpdates) return;
    const { message, percent } = typeof update === 'string' ? { message: update } : update;
    const share = percent === undefined || !Number.isFinite(percent) ? null : Math.min(100, Math.max(0, percent));
    const text = message ?? (share === null ? '' : `${Math.round(share)} %`);
    // a line of its own among the output of the action
    this.#run.progress({
      text: `${String(text).slice(0, limits.codeToolUpdateChars)}\n`,
      ...(share === null ? {} : { percent: share }),
    });
  }

  /** @throws ToolError `artifact_too_large`; TypeError for a name or a content of another type */
  #write(name: string, content: string | Uint8Array, mediaType?: string): void {
    if (this.#isOver) return;
    if (typeof name !== 'string' || name === '') throw new TypeError('ctx.artifacts.write needs a name');
    if (typeof content !== 'string' && !(content instanceof Uint8Array)) {
      throw new TypeError(`The artifact "${name}" must be a string or a Uint8Array`);
    }
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    if (this.#files.length >= limits.codeToolFiles || this.#fileBytes + bytes.length > limits.codeToolFileBytes) {
      const most = `${limits.codeToolFiles} files and ${limits.codeToolFileBytes} bytes`;
      throw new ToolError(`The artifact "${name}" exceeds what one call may write (${most})`, {
        code: 'artifact_too_large',
      });
    }
    this.#fileBytes += bytes.length;
    this.#files.push({
      name,
      ...(mediaType === undefined ? {} : { content_type: mediaType }),
      ...(typeof content === 'string' ? { text: content } : { base64: base64Of(bytes) }),
    });
  }
}

function withFiles(result: Json, files: JsonObject[]): JsonObject {
  if (!isJsonObject(result)) return result === null ? { files } : { result, files };
  const { files: own } = result;
  return { ...result, files: Array.isArray(own) ? [...own, ...files] : files };
}

const CODE = /^[a-z][a-z0-9_]{0,63}$/;

function failureOf(name: string, fault: unknown, signal: AbortSignal): ActionOutcome {
  if (signal.aborted) return aborted(signal);
  try {
    return thrownBy(name, fault);
  } catch {
    // a getter or a proxy that throws
    return failure('tool_failed', `The tool "${name}" failed: ${readable(fault)}`);
  }
}

function thrownBy(name: string, fault: unknown): ActionOutcome {
  if (fault instanceof NotJson) {
    return failure('result_not_json', `The tool "${name}" returned a value that JSON cannot hold: ${fault.message}`);
  }
  const message = readable(fault);
  // By name as well: a bundle can contain the class twice.
  if (fault instanceof ToolError || (fault instanceof Error && fault.name === 'ToolError')) {
    const { code = '', retryable = false } = fault as Partial<ToolError>;
    return failure(CODE.test(code) ? code : 'tool_failed', message, { retryable });
  }
  // A rejection of ctx.fetch (X2). That nothing was sent does not mean that the tool had no other effects.
  if (fault instanceof OutboundError) return failure(fault.code, message, { retryable: fault.retryable });
  return failure('tool_failed', `The tool "${name}" failed: ${message}`);
}

function aborted(signal: AbortSignal): Failure {
  return failure('aborted', `stopped: ${readable(signal.reason)}`);
}

/** The message of anything that was thrown, cut. */
function readable(fault: unknown): string {
  try {
    return messageOf(fault).slice(0, limits.codeToolErrorChars) || 'no message';
  } catch {
    return 'a value without a message was thrown';
  }
}
