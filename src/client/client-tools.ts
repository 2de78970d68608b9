/**
 * Executes the calls of client tools of one run (C3).
 *
 * Invariants:
 *  1. A call is executed only while it is open, and by this client once. In a replay it may have been settled since: what
 *     is open then is in the document of the run.
 *  2. The first result counts: an answer that another client was faster is no error.
 */
import type { EventOf, SessionEvent } from '../domain/event.ts';
import type { Json } from '../domain/json.ts';
import type { ClientTools, RunClientTool } from './declarations.ts';
import type { CallResult, OpenCall, RunDocument } from './documents.ts';
import { CortexError } from './error.ts';
import { LinkedSignal } from './pause.ts';
import { repeated } from './repeated.ts';

export interface ToolCallsOptions {
  readonly tools: ClientTools;
  readonly signal: AbortSignal | undefined;
  readonly document: () => Promise<RunDocument>;
  readonly settle: (callId: string, result: CallResult) => Promise<unknown>;
  readonly fail: (fault: unknown) => void;
}

/** Longest message of an error that the server accepts. */
const MESSAGE_CHARS = 8_192;

export class ToolCalls {
  readonly #options: ToolCallsOptions;
  /** Calls that were executed, or are: their signals. */
  readonly #known = new Map<string, LinkedSignal>();
  /** The last document had no room for all open calls. */
  #hasMore = false;
  readonly #check: () => void;

  constructor(options: ToolCallsOptions) {
    this.#options = options;
    this.#check = repeated(() => this.#startOpen(), options.fail);
  }

  /** @param isLive the call was made just now, so it is open */
  take(event: SessionEvent, isLive: boolean): void {
    if (event.type === 'client_tool_called') this.#called(event, isLive);
    if (event.type === 'client_tool_settled') {
      this.#known.get(event.data.call_id)?.abort(new Error('The call was settled'));
      if (this.#hasMore) this.#check();
    }
  }

  #called({ data }: EventOf<'client_tool_called'>, isLive: boolean): void {
    if (this.#known.has(data.call_id) || !Object.hasOwn(this.#options.tools, data.name)) return;
    if (isLive) this.#start(data);
    else this.#check();
  }

  async #startOpen(): Promise<void> {
    const { pending = [], pending_more: more = 0 } = await this.#options.document();
    this.#hasMore = more > 0;
    for (const call of pending) this.#start(call);
  }

  #start(call: OpenCall): void {
    const { tools, signal, settle, fail } = this.#options;
    const tool = Object.hasOwn(tools, call.name) ? tools[call.name] : undefined;
    if (tool === undefined || this.#known.has(call.call_id) || signal?.aborted === true) return;
    const linked = new LinkedSignal(signal);
    this.#known.set(call.call_id, linked);
    const run = typeof tool === 'function' ? tool : tool.run;
    const answer = async (): Promise<void> => {
      const result = await execute(run, call, linked.signal);
      if (!linked.signal.aborted) await post(result, (each) => settle(call.call_id, each));
    };
    void answer()
      .catch(fail)
      .finally(() => linked.release());
  }
}

async function execute(run: RunClientTool, call: OpenCall, signal: AbortSignal): Promise<CallResult> {
  try {
    const output: unknown = await run(call.parameters, { callId: call.call_id, signal });
    // What JSON cannot express is the tool's error.
    return { output: JSON.parse(JSON.stringify(output ?? null)) as Json };
  } catch (fault) {
    return failure(fault instanceof Error ? fault.message : String(fault));
  }
}

/** @throws CortexError if the server accepts no result */
async function post(result: CallResult, settle: (result: CallResult) => Promise<unknown>): Promise<void> {
  try {
    await settle(result);
  } catch (fault) {
    if (!(fault instanceof CortexError)) throw fault;
    if (fault.code === 'call_settled') return;
    const isOutput = 'output' in result && (fault.status === 400 || fault.status === 413);
    if (!isOutput) throw fault;
    await post(failure(`The output was not accepted: ${fault.message}`), settle);
  }
}

function failure(message: string): CallResult {
  return { error: { message: message.slice(0, MESSAGE_CHARS) || 'The tool failed' } };
}
