/**
 * Images and files in the results of actions, as the model sees them (C2): their base64 is never shown, a marker is, and
 * the bytes are read from the journal only for what is attached.
 */
import type { SessionEvent } from '../../domain/event.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { fileBytes, filesOfOutput } from '../../journal/artifacts.ts';
import { artifactIdOf } from '../../journal/run-id.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ReportFile } from '../../protocol/prompt/chat-turn.ts';

/** A result as the model sees it. */
export interface ShownResult {
  readonly output: Json;
  readonly files?: readonly ReportFile[];
}

/** @param seq the event with the output */
export function shownResult(
  journal: Pick<Journal, 'rawEvent' | 'incarnation'>,
  seq: number,
  output: Json,
): ShownResult {
  const files = filesOfOutput(output);
  const shown = withoutBytes(output);
  return files.length === 0
    ? { output: shown }
    : { output: shown, files: reportFiles(journal, seq, files.map(fileJson)) };
}

/** What a later prompt needs of an output with files, which may be too large to be read again. Stored with its event. */
export function fileState(output: Json | undefined): JsonObject {
  if (output === undefined) return {};
  const files = filesOfOutput(output);
  const shown = withoutBytes(output);
  const isNeeded = shown !== output && JSON.stringify(shown).length <= limits.resultPromptChars;
  return { ...(files.length === 0 ? {} : { files: files.map(fileJson) }), ...(isNeeded ? { shown } : {}) };
}

/** The result of an earlier turn. @param output as read: its beginning, if it is long */
export function earlierResult(
  journal: Pick<Journal, 'rawEvent' | 'incarnation'>,
  seq: number,
  { output, state }: { readonly output: Json; readonly state: JsonObject | null },
): ShownResult {
  const files = state?.['files'];
  const hasFiles = Array.isArray(files);
  const isBeginning = hasFiles && typeof output === 'string';
  const shown = state?.['shown'] ?? (isBeginning ? withoutRuns(output) : withoutBytes(output));
  return hasFiles ? { output: shown, files: reportFiles(journal, seq, files) } : { output: shown };
}

type OutputFile = ReturnType<typeof filesOfOutput>[number];

function fileJson({ name, type, sizeBytes, place }: OutputFile): JsonObject {
  return { name, type, size: sizeBytes, place };
}

function reportFiles(
  journal: Pick<Journal, 'rawEvent' | 'incarnation'>,
  seq: number,
  files: readonly Json[],
): ReportFile[] {
  const stored = eventReader(journal, seq);
  return files.filter(isJsonObject).map(({ name, type, size, place }, index): ReportFile => {
    const artifact = artifactIdOf(journal.incarnation, seq, index + 1);
    const mediaType = String(type).split(';', 1)[0] ?? '';
    return {
      kind: mediaType.startsWith('image/') ? 'image' : 'file',
      name: String(name),
      mediaType,
      size: Number(size),
      artifact,
      read: async () => {
        const event = stored();
        const bytes = event === null ? null : fileBytes(event, Number(place));
        if (bytes === null) throw new Error(`The artifact ${artifact} is no longer stored`);
        return bytes;
      },
    };
  });
}

/**
 * Reads an event that may be large once for all of its files, which one request reads after each other. It is not kept:
 * the results stay in memory until the end of the run, and the event goes as soon as memory is needed.
 */
function eventReader(journal: Pick<Journal, 'rawEvent'>, seq: number): () => SessionEvent | null {
  let known: WeakRef<SessionEvent> | null = null;
  return () => {
    const held = known?.deref();
    if (held !== undefined) return held;
    const event = journal.rawEvent(seq);
    known = event === null ? null : new WeakRef(event);
    return event;
  };
}

/**
 * The output with a note in place of the base64 of files, at any depth: a result may contain an earlier one. The same
 * value if there is nothing to replace.
 */
function withoutBytes(value: Json): Json {
  if (Array.isArray(value)) {
    const shown = value.map(withoutBytes);
    return shown.some((item, index) => item !== value[index]) ? shown : value;
  }
  if (!isJsonObject(value)) return value;
  const member = bytesMember(value);
  let shown: Record<string, Json> | null = null;
  for (const [name, own] of Object.entries(value)) {
    const replaced = name === member && typeof own === 'string' ? note(own) : withoutBytes(own);
    if (replaced === own) continue;
    shown ??= { ...value };
    shown[name] = replaced;
  }
  return shown ?? value;
}

/** The member with the bytes, if the object is a file in one of the forms of artifacts. */
function bytesMember({ base64, name, content_type: type, data, mimeType }: JsonObject): string | null {
  if (typeof base64 === 'string' && (name !== undefined || type !== undefined)) return 'base64';
  return typeof data === 'string' && typeof mimeType === 'string' ? 'data' : null;
}

function note(base64: string): string {
  return `[${base64.length} characters of base64, not shown]`;
}

/** For text that may contain a value with files: base64 in it is a long run of its characters. */
export function withoutRuns(text: string): string {
  return text.replace(/[A-Za-z0-9+/=]{256,}/g, note);
}
