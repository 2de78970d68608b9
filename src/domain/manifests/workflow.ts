/** Workflows after validation. */
import type { Capability, ManifestActionType } from '../action-types.ts';
import type { RetryPolicy } from '../action.ts';
import type { Json, JsonObject } from '../json.ts';
import type { AgentDefinition } from './agent.ts';
import type { PolicyRule } from '../policy.ts';
import type { ManifestBase } from './base.ts';

export type WorkflowTrigger =
  | { readonly type: 'manual' }
  /** `cron` has five or six fields; `timezone` is an IANA name. */
  | { readonly type: 'scheduled'; readonly cron: string; readonly timezone: string; readonly inputs: JsonObject }
  /** Signed with the named secret (X3). */
  | { readonly type: 'webhook'; readonly secret: string }
  | { readonly type: 'event'; readonly event: string };

/** Steps that contain others, or that wait for a person. */
export const GROUP_TYPES = [
  'conditional',
  'switch',
  'parallel',
  'race',
  'for_each',
  'reduce',
  'loop',
  'try',
  'ask',
] as const;

export type GroupType = (typeof GROUP_TYPES)[number];

/** Steps that compute nothing: a value, and the end of the workflow. */
export const VALUE_TYPES = ['value', 'return'] as const;

export type StepType = ManifestActionType | 'shell' | GroupType | (typeof VALUE_TYPES)[number];

/** One step of a workflow (M6). Fields that its type does not use are null or empty. */
export interface WorkflowStep {
  readonly name: string;
  readonly type: StepType;
  /** The tool, agent, relic, workflow, model or internal action. */
  readonly target: string | null;
  /** A relic's endpoint. */
  readonly action: string | null;
  readonly parameters: JsonObject;
  /** CEL, or null. */
  readonly condition: string | null;
  /** Null: after the previous step; an empty list: immediately. */
  readonly dependsOn: readonly string[] | null;
  readonly timeoutMs: number | null;
  readonly onFailure: 'abort' | 'continue' | 'retry' | 'skip';
  /** Steps that undo or report the failure of this one. */
  readonly compensate: readonly WorkflowStep[];
  readonly retry: RetryPolicy | null;
  /** Maps an output name to a path in this step's result. */
  readonly outputMapping: Readonly<Record<string, string>>;
  /** For `conditional` (if true), `parallel`, `race`, `for_each`, `reduce` (for every item), `loop` and `try`. */
  readonly steps: readonly WorkflowStep[];
  /** For `conditional`, if false; for `switch`, if no case has the value. */
  readonly otherwise: readonly WorkflowStep[];
  /** For `for_each` and `reduce`: a reference to a list, or the list itself. */
  readonly items: Json;
  /** For `value` and `return`: the result. For `switch`: what is compared. For `reduce`: the first `$(acc)`. */
  readonly value?: Json;
  /** For `switch`. */
  readonly cases?: readonly { readonly value: string; readonly steps: readonly WorkflowStep[] }[];
  /** For `try`: after a failure, and in any case. */
  readonly rescue?: readonly WorkflowStep[];
  readonly always?: readonly WorkflowStep[];
  /** For `loop`: CEL; ends the loop if it is true after a round. */
  readonly until?: string;
  readonly maxRounds?: number;
  /** For `for_each` and `parallel`: maximum concurrency. */
  readonly concurrency: number | null;
}

/** A sequence or graph of steps, run by the same scheduler as a generation's actions (M6). */
export interface WorkflowDefinition extends ManifestBase {
  readonly kind: 'Workflow';
  readonly trigger: WorkflowTrigger;
  /** Names of the targets of its steps (X4). */
  readonly imports: AgentDefinition['imports'];
  /** JSON Schema of the inputs. */
  readonly inputs: JsonObject;
  /** Values of inputs that a start leaves out. */
  readonly defaults?: JsonObject;
  readonly steps: readonly WorkflowStep[];
  /** Maps an output name to the path that it is read from, such as `steps.s.field`. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly failFast: boolean;
  readonly maxParallelSteps: number;
  /** Types of code that its steps may run (X4). Default: none. */
  readonly capabilities?: readonly Capability[];
  /** What decides about its steps (C9); absent: nothing does. */
  readonly policies?: readonly PolicyRule[];
  /** Patterns of text that does not leave its sessions (C9); absent: none. */
  readonly redact?: readonly string[];
  /** Clients of the protocol may run it (E4). */
  readonly expose?: 'mcp';
}
