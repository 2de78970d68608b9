/**
 * From an action's head and body to its declaration, or to why there is none (P6, P8): the checks that an action
 * passes whether it came as text or as a native call. Pure, but for the budget of repair.
 */
import type { ActionDeclaration, ActionType, RejectionCode, TextSpan } from '../../domain/action.ts';
import { idIssue } from '../references/ids.ts';
import { bodyForm, givenId, readFields } from './action-fields.ts';
import type { BodyForm, DeclaredFields, FieldWarning } from './action-fields.ts';
import type { ActionHead } from './action-head.ts';
import { readBody } from './action-json.ts';
import type { BodyText, RepairBudget } from './action-json.ts';

export interface ReadActionOptions {
  /** Null in strict mode: bodies are not mended (P8). */
  readonly repair: RepairBudget | null;
  /** Whether a target's effects are unsafe: then a mended body is rejected (P8). */
  readonly unsafe?: ((type: ActionType, name: string) => boolean) | undefined;
  /** What the body is; default: what head and body say (P18). */
  readonly form?: BodyForm;
}

export type ReadAction =
  | {
      readonly ok: true;
      /** The id that the model gave. */
      readonly id: string | null;
      readonly fields: DeclaredFields;
      /** The body was not strict JSON and was mended (P8). */
      readonly repaired: boolean;
      readonly warnings: readonly FieldWarning[];
    }
  | {
      readonly ok: false;
      readonly id: string | null;
      readonly code: RejectionCode;
      readonly message: string;
      /** Where in the body the error is; null where it is not in its JSON. */
      readonly index: number | null;
    };

export function readAction(head: ActionHead, text: BodyText, options: ReadActionOptions): ReadAction {
  const read = readBody(text, options.repair);
  if (!read.ok) return { ok: false, id: head.id, code: read.code, message: read.message, index: read.index };
  const { body, repaired } = read;
  const form = options.form ?? bodyForm(head, body);
  const id = givenId(head, body, form);
  const issue = id === null ? null : idIssue('id', id);
  if (issue !== null) return rejected(id, 'invalid_id', issue);
  // A `$` can also be written `\u0024`.
  const mayRefer = repaired || text.source.includes('$') || text.source.includes('\\');
  const fields = readFields(head, body, form, mayRefer);
  if (!fields.ok) return rejected(id, fields.code, fields.message);
  if (!repaired) return { ok: true, id, fields: fields.fields, repaired, warnings: fields.warnings };
  const { type, name } = fields.fields;
  if (options.unsafe?.(type, name) === true) {
    const message = `The body is not strict JSON, and ${type} "${name}" has effects that must not rest on a mended body: send strict JSON`;
    return rejected(id, 'repair_refused', message);
  }
  const mended: FieldWarning = {
    code: 'repaired_json',
    message: `The body of "${id ?? name}" was not strict JSON; it was mended`,
  };
  return { ok: true, id, fields: fields.fields, repaired, warnings: [mended, ...fields.warnings] };
}

function rejected(id: string | null, code: RejectionCode, message: string): ReadAction {
  return { ok: false, id, code, message, index: null };
}

/** What the fields do not say: where and as which one of its generation the action was declared. */
export interface Declared {
  readonly ordinal: number;
  readonly id: string;
  readonly embeddedInThought: boolean;
  readonly repaired: boolean;
  readonly span: TextSpan;
}

/** One object of one shape: made for every action, so it is written out. */
export function declarationOf(fields: DeclaredFields, declared: Declared): ActionDeclaration {
  return {
    ordinal: declared.ordinal,
    id: declared.id,
    type: fields.type,
    mode: fields.mode,
    name: fields.name,
    parameters: fields.parameters,
    outputKey: fields.outputKey,
    dependsOn: fields.dependsOn,
    waitForAll: fields.waitForAll,
    timeoutMs: fields.timeoutMs,
    retry: fields.retry,
    onError: fields.onError,
    when: fields.when,
    priority: fields.priority,
    idempotencyKey: fields.idempotencyKey,
    cacheTtlMs: fields.cacheTtlMs,
    references: fields.references,
    embeddedInThought: declared.embeddedInThought,
    repaired: declared.repaired,
    span: declared.span,
  };
}
