/**
 * The values of references as readers see them (C9): redacted as JSON before they become text, because escapes and the marks
 * of tables may hide a match.
 */
import type { Redaction } from '../../bounded/redaction.ts';
import type { Json } from '../../domain/json.ts';
import type { Reference } from '../../domain/protocol-event.ts';
import { follow } from '../../protocol/references/substitution.ts';
import { redactedValue } from '../run/outgoing-events.ts';
import type { RenderedReference } from '../run/resolve-names.ts';
import type { NameValue } from '../run/results.ts';

export class ShownValues {
  readonly #redaction: Redaction | null;
  readonly #render: (reference: Reference, value: NameValue) => RenderedReference;
  /** Several references may have the same value. */
  readonly #known = new WeakMap<object, Json>();

  constructor(redaction: Redaction | null, render: (reference: Reference, value: NameValue) => RenderedReference) {
    this.#redaction = redaction;
    this.#render = render;
  }

  /** Null if nothing is redacted here. Plain strings are redacted with the text around them. */
  rendered(reference: Reference, value: NameValue): RenderedReference | null {
    if (this.#redaction === null || value.type !== 'value') return null;
    const raw = follow(value.value, reference.path).value;
    if (typeof raw === 'string' ? !raw.includes('\\') : typeof raw !== 'object' || raw === null) return null;
    const safe = this.#safe(this.#redaction, raw);
    return safe === raw ? null : this.#render({ ...reference, path: [] }, { ...value, value: safe });
  }

  #safe(redaction: Redaction, raw: Json): Json {
    if (typeof raw !== 'object' || raw === null) return redactedValue(raw, redaction.texts());
    const safe = this.#known.get(raw) ?? redactedValue(raw, redaction.texts());
    this.#known.set(raw, safe);
    return safe;
  }
}
