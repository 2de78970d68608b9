/** The mistakes of a run: what the model wrote wrong, and what the runtime said. */
import type { EventOf, SessionEvent } from '../../../src/domain/event.ts';
import type { RecordedGeneration } from '../run/recorder.ts';
import type { FormName } from '../tasks/forms.ts';

export interface Mistake {
  /**
   * The code of the rejection, failure or warning; or `no_protocol`, `native_call`, `protocol_text`, `wrong_answer`,
   * `missing_call`, `premature_call`, `model_rejected`.
   */
  readonly code: string;
  /** What the runtime, or the check of the answer, says about it. */
  readonly message: string;
  /** What the model wrote, cut. */
  readonly wrote: string;
}

/** How well a generation keeps to the form: 1 without any mistake, 0.5 with tolerated ones only, else 0. */
export interface JudgedGeneration {
  readonly validity: 0 | 0.5 | 1;
  readonly mistakes: readonly Mistake[];
}

const WROTE_CHARS = 200;

/** Warnings about how the text is written. Others are about values, or about the runtime. */
const FORM_WARNINGS: ReadonlySet<string> = new Set([
  'forged_tag',
  'stray_close_tag',
  'unclosed',
  'repaired_json',
  'unknown_field',
  'unknown_attribute',
  'foreign_form',
  'conflicting_field',
  'invalid_field',
  'duplicate_action',
  'action_in_reasoning',
  'tool_call_ignored',
  'text_too_large',
  'tag_too_large',
  'generation_cut',
]);

/** Warnings about references without a value. */
export const REFERENCE_WARNINGS: ReadonlySet<string> = new Set(['unknown_reference', 'missing_path']);

/** Events of what makes a generation protocol text. Actions may also be native calls. */
const ACTIONS: ReadonlySet<string> = new Set(['action_queued', 'action_rejected']);
const RESPONSES: ReadonlySet<string> = new Set(['response_started']);
const THOUGHTS: ReadonlySet<string> = new Set(['thought_started']);

export function judgeGenerations(
  form: FormName,
  events: readonly SessionEvent[],
  generations: readonly RecordedGeneration[],
): JudgedGeneration[] {
  return generations.map((generation, index) => {
    const own = events.filter(({ iteration }) => iteration === index + 1);
    const wrote = writtenIn(generation);
    const grave = own.flatMap((event) => graveMistake(event, wrote) ?? []);
    const light = own.flatMap((event): Mistake[] =>
      event.type === 'warning' && FORM_WARNINGS.has(event.data.code) ? [{ ...event.data, wrote }] : [],
    );
    light.push(...otherForm(form, own, generation));
    const validity = grave.length > 0 ? 0 : light.length > 0 ? 0.5 : 1;
    return { validity, mistakes: [...grave, ...light] };
  });
}

/** What is written in another form than the one that was asked for: the runtime takes it nevertheless. */
function otherForm(form: FormName, own: readonly SessionEvent[], generation: RecordedGeneration): Mistake[] {
  const { calls } = generation;
  const has = (types: ReadonlySet<string>): boolean => own.some(({ type }) => types.has(type));
  const wrote = writtenIn(generation);
  if (form === 'tool_calls') {
    const isText = has(RESPONSES) || (calls.length === 0 && has(ACTIONS));
    return isText ? [{ code: 'protocol_text', message: 'the model wrote tags in place of function calls', wrote }] : [];
  }
  if (calls.length > 0) {
    return [{ code: 'native_call', message: 'the model called functions in place of writing actions', wrote }];
  }
  const isProtocol = has(THOUGHTS) || has(RESPONSES) || has(ACTIONS);
  return isProtocol ? [] : [{ code: 'no_protocol', message: 'the text has no thought, action or response', wrote }];
}

/** An action that does not run because of how it was written. A failing tool is not a mistake of the model. */
function graveMistake(event: SessionEvent, wrote: string): Mistake | null {
  if (event.type === 'action_rejected') return ofRejection(event, wrote);
  if (event.type !== 'action_failed' || event.data.error.code !== 'invalid_parameters') return null;
  const { code, message } = event.data.error;
  return { code, message, wrote };
}

function ofRejection({ data: { code, message, excerpt } }: EventOf<'action_rejected'>, wrote: string): Mistake {
  return { code, message, wrote: excerpt === undefined ? wrote : cut(excerpt) };
}

/** What a generation has written, cut: text, else calls. */
export function writtenIn(generation: RecordedGeneration | undefined): string {
  if (generation === undefined) return '';
  return cut(generation.text.trim() === '' ? generation.calls.join('; ') : generation.text);
}

function cut(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > WROTE_CHARS ? `${line.slice(0, WROTE_CHARS)}…` : line;
}
