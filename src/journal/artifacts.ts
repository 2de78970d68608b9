/**
 * Artifacts: results that are downloaded rather than shown. They are not stored separately: they are the large outputs,
 * and the files in outputs, of `action_completed` events (J6).
 *
 * An output contains files as `files: [{name, content_type, base64 | text}]`, or in the form of the Model Context
 * Protocol, `content: [{type, mimeType, data}]`.
 */
import { decodeBase64 } from '../domain/base64.ts';
import type { ArtifactEntry } from '../domain/artifact.ts';
import { encodeData } from '../domain/event.ts';
import type { EventOf, SessionEvent } from '../domain/event.ts';
import { isJsonObject } from '../domain/json.ts';
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { endOf, itemsAt, membersAt, stringAt } from './raw-json.ts';
import type { Place } from './raw-json.ts';
import { incarnationIn } from '../domain/session.ts';
import { artifactIdOf } from './run-id.ts';

const encoder = new TextEncoder();

/** An artifact whose bytes are produced on demand. */
export interface LazyArtifact {
  readonly entry: ArtifactEntry;
  readonly read: () => Uint8Array;
}

/** The start of a completed action's data. */
const OUTPUT = '{"output":';

/** Types that a browser could run or render as markup; they are served as text. */
const ACTIVE = /html|xml|svg|script|ecma|xsl|pdf|flash/i;
const CONTENT_TYPE = /^[\w.+-]{1,60}\/[\w.+-]{1,60}(; ?charset=[\w-]{1,30})?$/;

/** The output of an action as JSON, cut out of its event's data without parsing it. */
export function outputJson(completed: EventOf<'action_completed'>): string {
  const text = encodeData(completed);
  if (text.startsWith(OUTPUT)) return text.slice(OUTPUT.length, endOf(text, OUTPUT.length));
  return JSON.stringify(completed.data.output ?? null);
}

/** The artifacts of one event: the whole output, if it is large, then its files. */
export function artifactsOf(event: SessionEvent): LazyArtifact[] {
  if (event.type !== 'action_completed') return [];
  const output = outputJson(event);
  const incarnation = incarnationIn(event.run_id);
  const common = {
    run_id: event.run_id,
    action_id: event.action_id,
    action_name: event.action_name ?? null,
    created_at: event.timestamp,
  };
  const artifacts: LazyArtifact[] = [];
  if (output.length * 3 > limits.artifactBytes) {
    const text = stringAt(output, { from: 0, to: output.length });
    const read = (): Uint8Array => encoder.encode(text ?? output);
    const sizeBytes = read().length;
    const name = `${safeName(event.action_id) ?? 'output'}.${text === undefined ? 'json' : 'txt'}`;
    const type = text === undefined ? 'application/json' : 'text/plain; charset=utf-8';
    if (sizeBytes > limits.artifactBytes) {
      const id = artifactIdOf(incarnation, event.seq);
      artifacts.push({ entry: { id, ...common, name, content_type: type, size_bytes: sizeBytes }, read });
    }
  }
  for (const [index, { name, type, sizeBytes, read }] of filesOf(output).entries()) {
    const id = artifactIdOf(incarnation, event.seq, index + 1);
    artifacts.push({ entry: { id, ...common, name, content_type: type, size_bytes: sizeBytes }, read });
  }
  return artifacts;
}

/** The files in an output, in the order of their artifacts. */
export function filesOfOutput(output: Json): readonly Omit<File, 'read'>[] {
  const mayHave = isJsonObject(output) && (Array.isArray(output['files']) || Array.isArray(output['content']));
  return mayHave ? filesOf(JSON.stringify(output)) : [];
}

/** The bytes of one file of an event, by its place among the items of the output; the others are not decoded. */
export function fileBytes(event: SessionEvent, place: number): Uint8Array | null {
  if (event.type !== 'action_completed') return null;
  const output = outputJson(event);
  const item = itemsOf(output)[place];
  return item === undefined ? null : (fileOf(output, item, place)?.read() ?? null);
}

interface File {
  /** Among all items, of which some may not be files. */
  readonly place: number;
  readonly name: string;
  readonly type: string;
  readonly sizeBytes: number;
  readonly read: () => Uint8Array;
}

/** @param output JSON */
function filesOf(output: string): File[] {
  return itemsOf(output).flatMap((item, place) => fileOf(output, item, place) ?? []);
}

function itemsOf(output: string): readonly Place[] {
  const members = membersAt(output, 0);
  return [members.get('files'), members.get('content')]
    .flatMap((list) => (list === undefined ? [] : itemsAt(output, list.from, limits.filesPerOutcome)))
    .slice(0, limits.filesPerOutcome);
}

function fileOf(output: string, item: Place, place: number): File | null {
  const members = membersAt(output, item.from);
  const value = (member: string): string | undefined => stringAt(output, members.get(member));
  const mimeType = value('mimeType');
  const encoded = value('base64') ?? (mimeType === undefined ? undefined : value('data'));
  const name = value('name');
  const stated = members.get('content_type');
  const hasType = stated !== undefined && !output.startsWith('null', stated.from);
  const head = {
    place,
    name: safeName(name) ?? `file-${place + 1}`,
    type: servedType(hasType ? value('content_type') : mimeType, encoded === undefined),
  };
  if (encoded !== undefined) {
    const sizeBytes = decodedBytes(encoded);
    return sizeBytes === null ? null : { ...head, sizeBytes, read: () => decodeBase64(encoded) ?? new Uint8Array() };
  }
  // Text is a file only if it has a name: MCP's text parts are the answer itself.
  const text = name === undefined ? undefined : value('text');
  if (text === undefined) return null;
  return { ...head, sizeBytes: encoder.encode(text).length, read: () => encoder.encode(text) };
}

/** The type that a browser is told: nothing that it could run or render as markup. */
export function servedType(given: string | undefined, isText: boolean): string {
  const standard = isText ? 'text/plain; charset=utf-8' : 'application/octet-stream';
  if (given === undefined || !CONTENT_TYPE.test(given)) return standard;
  return ACTIVE.test(given) ? 'text/plain; charset=utf-8' : given.toLowerCase();
}

/** The last part of a path, restricted to characters that are safe in every system and header. */
export function safeName(given: string | undefined): string | null {
  if (given === undefined) return null;
  const last = given.split(/[/\\]/).at(-1) ?? '';
  const safe = last.replaceAll(/[^\w.-]+/g, '_').replace(/^\.+/, '');
  return safe === '' ? null : safe.slice(-limits.fileNameChars);
}

/** Length of the decoded bytes; null if the text is not base64. */
function decodedBytes(base64: string): number | null {
  try {
    return atob(base64).length;
  } catch {
    return null;
  }
}
