/** Policies: rules that decide about actions once their parameters are known (C9). */
import type { ActionType, Effects } from './action-types.ts';
import type { Json, JsonObject } from './json.ts';

/** From the least strict to the strictest. */
export const POLICY_DECISIONS = ['allow', 'ask', 'deny'] as const;
export type PolicyDecision = (typeof POLICY_DECISIONS)[number];

export interface PolicyRule {
  /** A CEL expression over the members of `PolicySubject`; null: the rule always applies. */
  readonly when: string | null;
  readonly do: PolicyDecision;
  /** For people and for the model; null: none. */
  readonly message: string | null;
}

/** The rules of one manifest, or of the deployment. */
export interface PolicyList {
  /** `deployment`, `agent NAME` or `workflow NAME`. */
  readonly source: string;
  readonly rules: readonly PolicyRule[];
}

/** What a policy can see. Its names are those of the expressions. */
export interface PolicySubject {
  readonly action: {
    readonly type: ActionType;
    /** As the manifest names the target; of a relic, with its endpoint. */
    readonly name: string;
    readonly id: string;
    readonly mode: string;
    readonly effects: Effects;
    /** Where a tool runs: `builtin`, `script`, `http`, `container`, `code`, `client` or `mcp`; empty for other types. */
    readonly implementation: string;
    /** The MCP server of the tool; else empty. */
    readonly server: string;
    /** The feed that is fetched; empty for an action. */
    readonly feed: string;
  };
  readonly parameters: JsonObject;
  /** Values that are passed to code. */
  readonly inputs: JsonObject;
  readonly session: {
    readonly id: string;
    readonly agent: string;
    readonly kind: string;
    readonly user_id: string;
    readonly namespace: string;
    /** Sessions above it: 0 for one that no agent has started. */
    readonly depth: number;
    readonly metadata: JsonObject;
    /** US dollars of all its runs, as far as prices are known. */
    readonly cost: number;
  };
  readonly run: {
    readonly iteration: number;
    readonly actions: number;
    /** Started actions with the same type and name. */
    readonly calls: number;
    readonly model_calls: number;
    readonly tokens: number;
    /** US dollars, as far as prices are known. */
    readonly cost: number;
    readonly seconds: number;
  };
  /** Epoch milliseconds; a timestamp in expressions. */
  readonly now: number;
}

/** What the strictest rule that applies says. */
export interface PolicyVerdict {
  readonly decision: PolicyDecision;
  readonly source: string;
  /** Its position in its list, 1-based. */
  readonly rule: number;
  /** The rule's message, or why its condition could not be evaluated. */
  readonly message: string | null;
}

/** The stored form of lists, as a parent passes them to its children. */
export function policyListsOf(stored: Json | undefined): readonly PolicyList[] {
  // This code wrote them.
  return Array.isArray(stored) ? (stored as unknown as readonly PolicyList[]) : [];
}
