/**
 * Decides which attachments of a request a model gets, and what a run is told about the others (C2). The bytes are read
 * later, by the connection.
 */
import { newestWithin } from '../../domain/attachment-window.ts';
import type { Attachment, ChatMessage } from '../../domain/ports/model.ts';
import type { AttachmentQuirks } from '../providers/presets.ts';
import type { Quirk } from './endpoints.ts';
import type { ModelFailure } from './failure.ts';

/** What a model takes. */
export interface Sight {
  readonly takes: AttachmentQuirks;
  /** The manifest's `vision`; null: found out with the first image. */
  readonly vision: boolean | null;
}

/** The kinds that are sent without their bytes from now on. */
export type Kind = Extract<Quirk, 'images' | 'files'>;

/** Why a model does not get an attachment. */
type Reason = 'vision_off' | 'refused' | 'type' | 'size' | 'budget';

export interface ShownMessages {
  readonly messages: readonly ChatMessage[];
  /** The kinds among the attachments that remain. */
  readonly kinds: ReadonlySet<Kind>;
  /** For the readers of the run: what of the current turn is not shown, and why; null if everything is. */
  readonly notice: string | null;
}

/**
 * @param refused the kinds that the endpoint has refused
 * @param model its name in the notice
 */
export function shownMessages(
  messages: readonly ChatMessage[],
  sight: Sight,
  { refused, model }: { readonly refused: ReadonlySet<Quirk>; readonly model: string },
): ShownMessages {
  const hidden = new Map<Attachment, Reason>();
  const groups = messages.flatMap(({ attachments = [] }) => {
    const taken = attachments.filter((attachment) => {
      const reason = refusal(attachment, sight, refused);
      if (reason !== null) hidden.set(attachment, reason);
      return reason === null;
    });
    return taken.length === 0 ? [] : [taken];
  });
  const { most, bytes } = sight.takes;
  const shown = newestWithin(groups, { most, bytes }, ({ size }) => size);
  for (const attachment of groups.flat()) if (!shown.has(attachment)) hidden.set(attachment, 'budget');
  return {
    messages: hidden.size === 0 ? messages : messages.map((message) => withOnly(message, shown)),
    kinds: new Set(Array.from(shown, kindOf)),
    notice: noticeOf(hidden, sight, model),
  };
}

function withOnly(message: ChatMessage, shown: ReadonlySet<Attachment>): ChatMessage {
  const { attachments, ...rest } = message;
  const left = attachments?.filter((attachment) => shown.has(attachment)) ?? [];
  return left.length === 0 ? rest : { ...rest, attachments: left };
}

function kindOf({ kind }: Attachment): Kind {
  return kind === 'image' ? 'images' : 'files';
}

function refusal(attachment: Attachment, { takes, vision }: Sight, refused: ReadonlySet<Quirk>): Reason | null {
  const kind = kindOf(attachment);
  if (kind === 'images' && vision === false) return 'vision_off';
  const types = kind === 'images' ? takes.imageTypes : takes.fileTypes;
  if (!types.includes(attachment.mediaType)) return 'type';
  if (attachment.size > takes.bytesEach || attachment.size > takes.bytes) return 'size';
  return refused.has(kind) ? 'refused' : null;
}

/** Attachments named in a notice. */
const NAMED = 5;

function noticeOf(hidden: ReadonlyMap<Attachment, Reason>, { takes }: Sight, model: string): string | null {
  const current = [...hidden].filter(([{ isCurrent }]) => isCurrent === true);
  const [first] = current;
  if (first === undefined) return null;
  const names = current.slice(0, NAMED).map(([{ kind, name }]) => `the ${kind} ${JSON.stringify(name.slice(0, 80))}`);
  const more = current.length > NAMED ? ` and ${current.length - NAMED} more` : '';
  const reasons = new Set(current.map(([, reason]) => reason));
  const told = Array.from(reasons, (reason) => reasonText(reason, takes)).join('; ');
  return `The model ${model} got only a text placeholder for ${names.join(', ')}${more}: ${told}`;
}

function reasonText(reason: Reason, takes: AttachmentQuirks): string {
  const types = [...takes.imageTypes, ...takes.fileTypes].join(', ');
  switch (reason) {
    case 'vision_off':
      return 'the manifest says that it has no vision (cognitive_engine.vision: false)';
    case 'refused':
      return 'its endpoint refused the request with it; choose a model that takes it, or set cognitive_engine.vision: false so that images are not tried';
    case 'type':
      return `its provider takes ${types} only; convert the file`;
    case 'size':
      return `its provider takes at most ${Math.min(takes.bytes, takes.bytesEach)} bytes each; send a smaller file`;
    case 'budget':
      return `a request holds at most ${takes.most} images and files with ${takes.bytes} bytes in total; send fewer`;
  }
}

/** Messages about a model without vision, as opposed to those about one image. */
const UNSUPPORTED =
  /(not|n't|only|that) support|only supported|unknown variant|(must|should) be (a|of type) (valid )?string|valid string|'array' not in 'string'|not (a )?multi-?modal|text[- ]only|no vision|mmproj|at most 0 image|does not (accept|take|have)|cannot (see|view|accept|process) images/i;
/** Messages about one image or file: the next one may be accepted. */
const ABOUT_ONE = /format|mime|media[ _-]type|too (large|big|many)|exceed|decod|corrupt|dimension|resolution|download/i;
const ABOUT: readonly (readonly [Kind, RegExp])[] = [
  ['images', /image|vision|multi-?modal|mmproj/i],
  ['files', /\bfiles?\b|file_data|document|pdf/i],
];
const ABOUT_CONTENT =
  /content.{0,60}(string|text)|(string|text).{0,60}content|content[ _-]?type|content part|unknown variant|too large/i;
const REFUSALS: ReadonlySet<number> = new Set([400, 404, 413, 415, 422]);

/**
 * Whether a request failed because of its attachments, so that it is repeated without them.
 *
 * @param kinds the kinds in the request
 * @returns the kinds to leave out, and whether the model refuses them in general; null for another failure
 */
export function refusedKinds(
  { status, error }: ModelFailure,
  kinds: ReadonlySet<Kind>,
): { readonly kinds: readonly Kind[]; readonly isGeneral: boolean } | null {
  const { message } = error;
  const isGeneral = UNSUPPORTED.test(message) && !ABOUT_ONE.test(message);
  // Some servers answer 500, and the Workers AI binding has no status: then the message must be clear.
  const isRefusal = status === null || status >= 500 ? isGeneral : REFUSALS.has(status);
  if (kinds.size === 0 || !isRefusal) return null;
  const named = ABOUT.filter(([kind, pattern]) => kinds.has(kind) && pattern.test(message)).map(([kind]) => kind);
  if (named.length > 0) return { kinds: named, isGeneral };
  const isAboutAll = status === 413 || status === 415 || ABOUT_CONTENT.test(message);
  return isAboutAll ? { kinds: [...kinds], isGeneral } : null;
}
