/** Language models: what they are sent, and what they stream. */
import type { Capability } from '../action-types.ts';
import type { JsonObject } from '../json.ts';

/** An image or file of a message or a result (C2). Its bytes are read only if a model gets them. */
export interface Attachment {
  readonly kind: 'image' | 'file';
  /** As the client or the tool wrote it: hostile input. */
  readonly name: string;
  readonly mediaType: string;
  /** Bytes. */
  readonly size: number;
  /** Lower-case hexadecimal; absent for files in results. */
  readonly sha256?: string;
  /** Belongs to the turn in progress; a run warns if its model does not get it. */
  readonly isCurrent?: boolean;
  /** @throws Error if the bytes are no longer stored */
  read(): Promise<Uint8Array>;
}

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  /** Contains a placeholder line for each attachment. */
  readonly content: string;
  /** Only of user messages, in order. */
  readonly attachments?: readonly Attachment[];
  readonly toolCallId?: string;
  readonly toolCalls?: readonly {
    readonly id: string;
    readonly name: string;
    readonly arguments: string;
    readonly extra?: JsonObject;
  }[];
}

/** A tool as described to a model. */
export interface ToolSummary {
  readonly name: string;
  readonly summary: string;
  /** JSON Schema of the parameters. */
  readonly parameters: JsonObject;
}

export interface ModelRequest {
  readonly messages: readonly ChatMessage[];
  readonly model: string | null;
  readonly temperature: number | null;
  readonly maxTokens: number | null;
  /** Additional request fields from the manifest, passed through. */
  readonly extra: JsonObject;
  /**
   * What the agent may use, for the demo provider. Null for a call outside the conversation (`type="llm"`), whose
   * answer is plain text and not protocol text.
   */
  readonly agent: {
    readonly name: string;
    readonly tools: readonly ToolSummary[];
    readonly capabilities: readonly Capability[];
    /** The form that the prompt teaches (P18). */
    readonly form: 'full' | 'compact';
    /** Names of callable agents. */
    readonly agents?: readonly string[];
    readonly workflows?: readonly ToolSummary[];
    /** Each endpoint separately, as `relic.endpoint`. */
    readonly relics?: readonly ToolSummary[];
  } | null;
  /** Functions declared to the endpoint (P17); absent means none. */
  readonly tools?: readonly ToolSummary[];
  /** The declared functions must not be called this time: the generation may only answer (S11). */
  readonly answerOnly?: boolean;
  /** The `traceparent` of the call (O1); absent: it is not traced. */
  readonly trace?: string;
  readonly signal: AbortSignal;
}

/** Tokens of one model call. `estimated` if the provider sent none (L6). */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly estimated: boolean;
  /** The requested model; absent if unknown. Its price depends on it (S12). */
  readonly model?: string;
}

/** Why a stream ended (P15). */
export type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls' | 'error' | 'abort';

export type ModelDelta =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | {
      readonly type: 'tool_call';
      readonly index: number;
      readonly id: string | null;
      readonly name: string | null;
      readonly argumentsDelta: string;
      /** Opaque data that the endpoint expects back with the call, such as a signature. */
      readonly extra?: JsonObject;
      /**
       * Number of its chunk, counted from the one with the finish reason. Such chunks may repeat calls of earlier ones (N4).
       */
      readonly ending?: number;
      /** The next delta continues this one: it was cut for storage. */
      readonly more?: true;
    }
  /** Information for the readers of the run, for example that a fallback model answers. */
  | {
      readonly type: 'notice';
      readonly code: 'model_fallback' | 'attachments_not_shown' | 'unknown_finish_reason';
      readonly message: string;
    }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: FinishReason };

/** The name of the demo model, which is not a language model. */
export const DEMO_MODEL = 'demo';

/** A source of model text. `stream` throws `EngineError` `model_*` for errors that it cannot recover from. */
export interface ModelProvider {
  /** The model that it asks first, as its endpoint calls it: `gpt-4.1-mini`; `demo` for the demo model. */
  readonly name: string;
  /** What a reader of a run should know about the choice of the model; told once per run. */
  readonly notice?: string;
  stream(request: ModelRequest): AsyncIterable<ModelDelta>;
}
