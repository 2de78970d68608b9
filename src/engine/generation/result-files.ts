/**
 * Images and files in the results of actions, as the model sees them (C2): their base64 is never shown, a marker is, and
 * the bytes are read from the journal only for what is attached.
 */
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { artifactsOf, filesOfOutput } from '../../journal/artifacts.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ReportFile } from '../../protocol/prompt/chat-turn.ts';

/** A result as the model sees it. */
export interface ShownResult {
  readonly output: Json;
  readonly files?: readonly ReportFile[];
}

/** @param seq the event with the output */
export function shownResult(journal: Pick<Journal, 'event'>, seq: number, output: Json): ShownResult {
  const files = filesOfOutput(output);
  return files.length === 0
    ? { output }
    : { output: withoutBytes(output), files: reportFiles(journal, seq, files.map(fileJson)) };
}

/** What a later prompt needs of an output with files, which may be too large to be read again. Stored with its event. */
export function fileState(output: Json | undefined): JsonObject {
  const files = output === undefined ? [] : filesOfOutput(output);
  if (files.length === 0) return {};
  const shown = withoutBytes(output ?? null);
  const isSmall = JSON.stringify(shown).length <= limits.resultPromptChars;
  return { files: files.map(fileJson), ...(isSmall ? { shown } : {}) };
}

/** The result of an earlier turn. @param output as read: its beginning, if it is long */
export function earlierResult(
  journal: Pick<Journal, 'event'>,
  seq: number,
  { output, state }: { readonly output: Json; readonly state: JsonObject | null },
): ShownResult {
  const files = state?.['files'];
  if (!Array.isArray(files)) return { output };
  const shown = state?.['shown'] ?? (typeof output === 'string' ? withoutRuns(output) : withoutBytes(output));
  return { output: shown, files: reportFiles(journal, seq, files) };
}

function fileJson(file: { readonly name: string; readonly type: string; readonly sizeBytes: number }): JsonObject {
  return { name: file.name, type: file.type, size: file.sizeBytes };
}

function reportFiles(journal: Pick<Journal, 'event'>, seq: number, files: readonly Json[]): ReportFile[] {
  return files.filter(isJsonObject).map(({ name, type, size }, index): ReportFile => {
    const artifact = `art_${seq}_${index + 1}`;
    const mediaType = String(type).split(';', 1)[0] ?? '';
    return {
      kind: mediaType.startsWith('image/') ? 'image' : 'file',
      name: String(name),
      mediaType,
      size: Number(size),
      artifact,
      read: async () => {
        const event = journal.event(seq);
        const found = event === null ? undefined : artifactsOf(event).find(({ entry }) => entry.id === artifact);
        if (found === undefined) throw new Error(`The artifact ${artifact} is no longer stored`);
        return found.read();
      },
    };
  });
}

/** The output with a note in place of the base64 of each file. */
function withoutBytes(output: Json): Json {
  if (!isJsonObject(output)) return output;
  const shown: Record<string, Json> = { ...output };
  for (const list of ['files', 'content'] as const) {
    const items = output[list];
    if (Array.isArray(items)) shown[list] = items.map((item) => (isJsonObject(item) ? withoutMember(item) : item));
  }
  return shown;
}

function withoutMember(item: JsonObject): JsonObject {
  const member = typeof item['base64'] === 'string' ? 'base64' : 'data';
  const value = item[member];
  if (typeof value !== 'string' || (member === 'data' && typeof item['mimeType'] !== 'string')) return item;
  return { ...item, [member]: note(value) };
}

function note(base64: string): string {
  return `[${base64.length} characters of base64, not shown]`;
}

/** For the beginning of a long output: base64 in it is a long run of its characters. */
function withoutRuns(text: string): string {
  return text.replace(/[A-Za-z0-9+/=]{256,}/g, note);
}
