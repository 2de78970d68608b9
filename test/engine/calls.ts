/** Protocol text, outcomes, tools and rules that tests of actions have in common. */
import type { ActionOutcome } from '../../src/domain/action.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import type { ToolDefinition } from '../../src/domain/manifests/tool.ts';
import type { PolicyRule } from '../../src/domain/policy.ts';
import { toolOf } from '../support/definitions.ts';

export const ACTION = (id: string, name: string, parameters: JsonObject = {}, fields: JsonObject = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name, parameters, ...fields })}</action>`;
/** Sets the variable `to`. */
export const SET = (id: string, value: Json, fields: JsonObject = {}): string =>
  `<action type="internal" mode="async" id="${id}">${JSON.stringify({ name: 'set_variable', parameters: { key: 'to', value }, ...fields })}</action>`;

export const OK: ActionOutcome = { ok: true, output: 'done' };
export const FLAKY: ActionOutcome = { ok: false, error: { code: 'flaky', message: 'again', retryable: true } };

export const builtin = (fields: Partial<ToolDefinition> & { readonly name: string }): ToolDefinition =>
  toolOf({ type: 'builtin', entrypoint: 'echo' }, { effects: 'idempotent', approval: 'never', ...fields });

export const rule = (
  decision: PolicyRule['do'],
  when: string | null = null,
  message: string | null = null,
): PolicyRule => ({ when, do: decision, message });
