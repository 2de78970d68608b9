/**
 * Converts an action's head and body to its declaration, or to a rejection (P6, P8). Actions in text and native calls
 * pass the same checks. Pure, except for the repair budget.
 */
import { actionSpec } from '../../../domain/action-types.ts';
import type { ActionDeclaration, ActionType, RejectionCode, TextSpan } from '../../../domain/action.ts';
import { askedBy, isAsked, namedValuesNote } from '../../../domain/call-text.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { idIssue } from '../../references/ids.ts';
import { bodyForm, declaredId, readFields } from './action-fields.ts';
import type { BodyForm, DeclaredFields, FieldWarning, KnownTargets } from './action-fields.ts';
import type { ActionHead } from './action-head.ts';
import { readBody } from './action-json.ts';
import type { BodyText, RepairBudget } from './action-json.ts';
import { delegated, feedReading, toolAsName } from './foreign-calls.ts';
import { plainBody } from './plain-body.ts';

export interface ReadActionOptions {
  /** Null in strict mode: bodies are not repaired (P8). */
  readonly repair: RepairBudget | null;
  /** Whether a target has unsafe effects: then a repaired body is rejected (P8). */
  readonly unsafe?: ((type: ActionType, name: string) => boolean) | undefined;
  /** How to read the body. Default: inferred from head and body (P18). */
  readonly form?: BodyForm;
  readonly targets?: KnownTargets | null;
}

export type ReadAction =
  | {
      readonly ok: true;
      /** The id that the model gave. */
      readonly id: string | null;
      readonly fields: DeclaredFields;
      /** The body was not strict JSON and was repaired (P8). */
      readonly repaired: boolean;
      readonly warnings: readonly FieldWarning[];
    }
  | {
      readonly ok: false;
      readonly id: string | null;
      readonly code: RejectionCode;
      readonly message: string;
      /** Position of the error in the body; null if it is not a JSON error. */
      readonly index: number | null;
    };

export function readAction(head: ActionHead, text: BodyText, options: ReadActionOptions): ReadAction {
  const { targets = null } = options;
  const notes: string[] = [];
  const plain = options.form === undefined && options.repair !== null ? plainBody(head, text) : null;
  if (plain !== null) notes.push(`the body is plain text: it is the ${Object.keys(plain).join()}`);
  const read = plain === null ? readBody(text, options.repair) : { ok: true as const, body: plain, repaired: false };
  if (!read.ok) return { ok: false, id: head.id, code: read.code, message: read.message, index: read.index };
  const { repaired } = read;
  const body = options.form === undefined ? toolAsName(head, read.body, notes) : read.body;
  const form = options.form ?? bodyForm(head, body);
  const id = declaredId(head, body, form);
  const issue = id === null ? null : idIssue('id', id);
  if (issue !== null) return rejected(id, 'invalid_id', issue);
  // `$` can also be written as `\u0024`.
  const mayRefer = repaired || text.source.includes('$') || text.source.includes('\\');
  const written = readFields(head, body, form, mayRefer, targets);
  if (!written.ok) return rejected(id, written.code, written.message);
  const meant = feedReading(head, delegated(written.fields, targets, notes), notes);
  const fields = { fields: meant, warnings: [...written.warnings] };
  const { type, name } = fields.fields;
  if (asksNothing(type, fields.fields.parameters)) {
    return rejected(
      id,
      'invalid_action',
      `the ${type} action has no ${actionSpec(type).text ?? 'text'}: put it in the body`,
    );
  }
  const note = isAsked(type) ? namedValuesNote(type, fields.fields.parameters) : null;
  if (note !== null) notes.push(note);
  if (notes.length > 0) {
    fields.warnings.push({ code: 'foreign_form', message: `${type} "${id ?? name}": ${notes.join('; ')}` });
  }
  if (!repaired) return { ok: true, id, repaired, ...fields };
  if (options.unsafe?.(type, name) === true) {
    const message = `The body is not strict JSON, and ${type} "${name}" has unsafe effects, so a repaired body is not accepted: send strict JSON`;
    return rejected(id, 'repair_refused', message);
  }
  const repairWarning: FieldWarning = {
    code: 'repaired_json',
    message: `The body of "${id ?? name}" was not strict JSON; it was repaired`,
  };
  return { ok: true, id, fields: fields.fields, repaired, warnings: [repairWarning, ...fields.warnings] };
}

/** An agent or a model without a text, or no code. Models often write an empty action first, then the full one. */
function asksNothing(type: ActionType, parameters: JsonObject): boolean {
  if (isAsked(type)) return askedBy(type, parameters) === null;
  return actionSpec(type).text !== null && Object.keys(parameters).length === 0;
}

function rejected(id: string | null, code: RejectionCode, message: string): ReadAction {
  return { ok: false, id, code, message, index: null };
}

/** The properties of a declaration that the fields do not give: its position, ordinal and id. */
export interface Declared {
  readonly ordinal: number;
  readonly id: string;
  readonly embeddedInThought: boolean;
  readonly repaired: boolean;
  readonly span: TextSpan;
}

/** Written out, so that every action's object has the same shape. */
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
