/** How the images and files of messages and results are written in the prompt (C2). Their names and texts are hostile input. */
import { quotedName } from '../../domain/content.ts';
import type { Attachment } from '../../domain/ports/model.ts';
import type { ReportFile } from './chat-turn.ts';
import { escapeReservedTags, sanitizeText } from './escape-reserved-tags.ts';

/** The files of a conversation that the model gets, next to their placeholders. */
export interface ShownFiles {
  /** The files whose bytes are in the request, each with what is sent for it. */
  readonly attached: ReadonlyMap<Attachment, Attachment>;
  /** The beginnings of text files. */
  readonly texts: ReadonlyMap<Attachment, FileText>;
}

export interface FileText {
  readonly text: string;
  /** Bytes of the file that `text` shows, and of the whole file; null if `text` is all of it. */
  readonly cut: { readonly after: number; readonly of: number } | null;
}

export const NO_FILES: ShownFiles = { attached: new Map(), texts: new Map() };

const TEXT =
  /^(text\/[\w.+-]+|image\/svg\+xml|application\/([\w.-]+\+)?(json|xml|yaml)|application\/(x-)?(ndjson|jsonl|javascript|yaml|toml|sql|sh))$/;

/** Whether a file is shown as text, to every model. Markup is text as well, also that of a drawing. */
export function isTextFile({ mediaType }: Pick<Attachment, 'mediaType'>): boolean {
  return TEXT.test(mediaType);
}

/** Whether some provider takes the bytes. */
export function isAttachable({ kind, mediaType }: Pick<Attachment, 'kind' | 'mediaType'>): boolean {
  return (kind === 'image' && !TEXT.test(mediaType)) || mediaType === 'application/pdf';
}

/** The line for a file of a result: `[image "chart.png", image/png, 12345 bytes, artifact art_12_1]`. */
export function resultMarker({ kind, name, mediaType, size, artifact }: ReportFile): string {
  const id = artifact === undefined ? '' : `, artifact ${artifact}`;
  return `[${kind} ${quotedName(name)}, ${mediaType}, ${size} bytes${id}]`;
}

/** The text of a file, in the runtime's own tag; tags in it have no effect (X1). */
export function fileBlock({ name, mediaType }: Attachment, { text, cut }: FileText): string {
  const safe = escapeReservedTags(sanitizeText(text));
  const note = cut === null ? '' : `\n[cut after ${cut.after} of ${cut.of} bytes]`;
  const head = `name=${quotedName(name).replaceAll('\\"', '&quot;')} type="${mediaType}"`;
  return `<attached_file ${head}>\n${safe}${note}\n</attached_file>`;
}
