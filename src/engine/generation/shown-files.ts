/**
 * Chooses which images and files of a conversation a request shows, and reads the text files among them (C2).
 *
 * The newest ones within `limits.attachmentsPerRequest` and `limits.attachmentBytesPerRequest` are attached; text files
 * have a budget of their own. Both are chosen from sizes alone, in the order of the conversation, so the same
 * conversation always gives the same request.
 */
import { newestWithin } from '../../domain/attachment-window.ts';
import { limits } from '../../domain/limits.ts';
import type { MemoryPolicy } from '../../domain/manifests/agent.ts';
import type { Attachment } from '../../domain/ports/model.ts';
import { isAttachable, isTextFile, NO_FILES } from '../../protocol/prompt/attached-files.ts';
import type { FileText, ShownFiles } from '../../protocol/prompt/attached-files.ts';
import type { ChatTurn, EarlierTurns } from '../../protocol/prompt/chat-turn.ts';
import { compact } from '../../protocol/prompt/compaction.ts';

export interface ChosenFiles {
  readonly files: ShownFiles;
  /** For the readers of the run: what of the current turn is not shown; null if everything is. */
  readonly notice: string | null;
}

/** Whether a request has any file to choose. */
export function hasFiles(turns: readonly ChatTurn[]): boolean {
  return turns.some((turn) => groupsOf(turn).length > 0);
}

/**
 * @param turns oldest first, the current one last
 * @param lost called for each file that is chosen and cannot be read: the model gets its placeholder only. For an
 *   attachment, when it is read
 */
export async function chooseFiles(
  turns: readonly ChatTurn[],
  memory: MemoryPolicy,
  earlier?: EarlierTurns,
  lost: (file: Attachment) => void = () => undefined,
): Promise<ChosenFiles> {
  const current = turns.at(-1);
  if (current === undefined) return { files: NO_FILES, notice: null };
  const { kept } = compact(turns.slice(0, -1), memory, earlier);
  const all = [...kept, current];
  const chosen = newestWithin(
    all.flatMap(groupsOf).map((group) => group.filter(isAttachable)),
    { most: limits.attachmentsPerRequest, bytes: limits.attachmentBytesPerRequest },
    ({ size }) => size,
  );
  const ofMessages = all.flatMap(messagesOf).map((files) => files.filter(isTextFile));
  const shownAsText = newestWithin(
    ofMessages,
    { most: limits.attachedTextsPerRequest, bytes: limits.attachedTextsBytes },
    ({ size }) => Math.min(size, limits.attachedTextBytes),
  );
  const isCurrent = new Set(groupsOf(current).flat());
  const attached = new Map<Attachment, Attachment>();
  const reported = (file: Attachment, fault: unknown): never => {
    lost(file);
    throw fault;
  };
  for (const file of chosen) {
    const read = async (): Promise<Uint8Array> => await file.read().catch((fault: unknown) => reported(file, fault));
    attached.set(file, { ...file, read, ...(isCurrent.has(file) ? { isCurrent: true } : {}) });
  }
  const texts = new Map<Attachment, FileText>();
  for (const file of shownAsText) {
    const text = await textOf(file);
    if (text === null) lost(file);
    else texts.set(file, text);
  }
  const left = [...isCurrent].filter((file) => !chosen.has(file) && !shownAsText.has(file));
  const own = new Set(messagesOf(current).flat());
  return { files: { attached, texts }, notice: noticeOf(left.filter((file) => own.has(file) || isAttachable(file))) };
}

/** The files of one turn: of its messages and of the results of each generation, in the order of the prompt. */
function groupsOf({ files = [], generations, received = [] }: ChatTurn): (readonly Attachment[])[] {
  const before = (index: number): (readonly Attachment[])[] =>
    received.filter((message) => message.before === index).map((message) => message.files ?? []);
  const rest = generations.flatMap(({ results }, index) => [
    ...before(index),
    results.flatMap((report) => report.files ?? []),
  ]);
  return [files, ...rest, ...before(generations.length)].filter((group) => group.length > 0);
}

/** The files of each message of a turn. One that came while this generation was being prepared is shown in the next one (C5). */
function messagesOf({ files = [], received = [], generations }: ChatTurn): (readonly Attachment[])[] {
  const shown = received.filter(({ before }) => before <= generations.length);
  return [files, ...shown.map((message) => message.files ?? [])];
}

/** The beginning of a text file; null if its bytes are lost. */
async function textOf(file: Attachment): Promise<FileText | null> {
  const bytes = await file.read().catch(() => null);
  if (bytes === null) return null;
  if (bytes.length <= limits.attachedTextBytes) return { text: new TextDecoder().decode(bytes), cut: null };
  const after = wholeCharacters(bytes, limits.attachedTextBytes);
  return { text: new TextDecoder().decode(bytes.subarray(0, after)), cut: { after, of: bytes.length } };
}

/** The end of the last character of UTF-8 that does not extend beyond `end`. In other bytes, `end` or just before it. */
function wholeCharacters(bytes: Uint8Array, end: number): number {
  let from = end;
  // A character has at most three continuation bytes.
  while (from > end - 3 && isContinuation(bytes[from])) from -= 1;
  return isContinuation(bytes[from]) ? end : from;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** Files named in a notice. */
const NAMED = 5;

/** For the readers of a run. */
export function lostNotice({ kind, name }: Attachment): string {
  return `The model gets only a text placeholder for the ${kind} ${JSON.stringify(name.slice(0, 80))}: its bytes could not be read from the storage of files`;
}

function noticeOf(left: readonly Attachment[]): string | null {
  if (left.length === 0) return null;
  const names = left.slice(0, NAMED).map(({ kind, name }) => `the ${kind} ${JSON.stringify(name.slice(0, 80))}`);
  const more = left.length > NAMED ? ` and ${left.length - NAMED} more` : '';
  return `The model gets only a text placeholder for ${names.join(', ')}${more}: a request holds at most ${limits.attachmentsPerRequest} images and PDFs with ${limits.attachmentBytesPerRequest} bytes in total, ${limits.attachedTextsPerRequest} text files with ${limits.attachedTextsBytes} bytes, and no other types; send fewer or smaller files, or let an action read them`;
}
