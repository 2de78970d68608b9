/** Events that the parser produces from the model's text, in document order (P1-P18). */
import type { ActionDeclaration, ActionMode, ActionRejection, ActionType } from './action.ts';

/** One step into a referenced value: `.name` or `[0]`. */
export type PathStep = string | number;

/** `$name.path[0]` as found in text or parameters (P12). */
export interface Reference {
  readonly name: string;
  readonly path: readonly PathStep[];
  /** The reference verbatim, shown if the name is unknown. */
  readonly raw: string;
}

/** `true`, `false`, or null for `auto` (P10). */
export type Finality = boolean | null;

export type ProtocolEvent =
  | { readonly type: 'thought_started'; readonly offset: number; readonly reasoning: boolean }
  | { readonly type: 'thought'; readonly delta: string }
  | { readonly type: 'thought_completed'; readonly unclosed: boolean }
  | { readonly type: 'text_started'; readonly offset: number }
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'text_completed' }
  | { readonly type: 'response_started'; readonly offset: number; readonly final: Finality }
  | { readonly type: 'response'; readonly delta: string }
  | { readonly type: 'response_reference'; readonly reference: Reference }
  | { readonly type: 'response_completed'; readonly unclosed: boolean }
  /** The opening tag of an action is complete, so that a sandbox can be prepared. Has no other effect. */
  | {
      readonly type: 'action_opened';
      readonly actionType: ActionType | null;
      readonly name: string | null;
      readonly mode: ActionMode | null;
    }
  | { readonly type: 'action_declared'; readonly action: ActionDeclaration }
  | { readonly type: 'action_rejected'; readonly rejection: ActionRejection }
  | { readonly type: 'warning'; readonly code: WarningCode; readonly message: string; readonly offset: number };

/** Stable codes of tolerated input, each with a row in docs/protocol.md. */
export type WarningCode =
  | 'forged_tag'
  | 'stray_close_tag'
  | 'unclosed'
  | 'repaired_json'
  | 'unknown_field'
  | 'unknown_attribute'
  | 'conflicting_field'
  /** A form of another system was understood, as the message says (P6). */
  | 'foreign_form'
  | 'invalid_field'
  | 'duplicate_action'
  | 'unknown_reference'
  | 'missing_path'
  | 'fire_and_forget_awaited'
  | 'action_in_reasoning'
  | 'text_too_large'
  | 'tag_too_large'
  | 'truncated'
  | 'unknown_name'
  | 'generation_cut'
  | 'cache_ignored'
  | 'overloaded'
  | 'unknown_price'
  /** The manifest names a provider for which the deployment has no setting (L3). */
  | 'model_not_configured'
  /** Another model answers, because the first one could not (L2). */
  | 'model_fallback'
  /** The endpoint ended the generation for a reason that is not known: it counts as failed (N1). */
  | 'unknown_finish_reason'
  /** A server whose tools the agent uses did not list them, or not all of them are used (E5). */
  | 'mcp_unavailable'
  /** The run has no facts about its user, because they could not be read in time (C10). */
  | 'memory_unavailable'
  /** The model got a text placeholder for an image or file of the current turn (C2). */
  | 'attachments_not_shown'
  /** A feed that the text refers to has no current value (F2). */
  | 'feed_unavailable'
  /** A native call, or text after one, was ignored (P17). */
  | 'tool_call_ignored'
  /** Another writer changed a file after the action had begun, and the file of the action counts (C7). */
  | 'workspace_conflict'
  /** A link, or another entry that is not a file, is not kept (C7). */
  | 'workspace_skipped';
