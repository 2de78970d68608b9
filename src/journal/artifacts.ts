/**
 * Artifacts: what actions gave that is better fetched than shown. Nothing is written for them: they are
 * the large outputs, and the files in outputs, of `action_completed` events (J6).
 *
 * A file stands in an output as `files: [{name, content_type, base64 | text}]`, or as tools of the Model
 * Context Protocol write it, `content: [{type, mimeType, data}]`.
 */
import type { Artifact, ArtifactEntry } from '../domain/artifact.ts';
import { EngineError } from '../domain/errors.ts';
import type { SessionEvent } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { Journal } from './journal.ts';

const encoder = new TextEncoder();

/** What a page of another origin would run or render as markup is text here. */
const ACTIVE = /html|xml|svg|script|ecma|xsl|pdf|flash/i;
const CONTENT_TYPE = /^[\w.+-]{1,60}\/[\w.+-]{1,60}(; ?charset=[\w-]{1,30})?$/;

/** The artifacts of completed actions after the event `after`, oldest first; `next` is where the next page begins. */
export function listArtifacts(
  journal: Journal,
  after: number,
): { readonly artifacts: ArtifactEntry[]; readonly next: number | null } {
  const artifacts: ArtifactEntry[] = [];
  let sizeBytes = 0;
  let last = after;
  for (const seq of journal.outcomesWithArtifacts(after)) {
    if (artifacts.length >= limits.pageRows || sizeBytes > limits.artifactPageBytes) return { artifacts, next: last };
    const event = journal.range({ after: seq - 1, limit: 1 })[0]?.event;
    for (const { bytes, ...entry } of event === undefined ? [] : artifactsOf(event)) {
      sizeBytes += bytes.length;
      artifacts.push(entry);
    }
    last = seq;
  }
  return { artifacts, next: null };
}

/** @throws EngineError `unknown_artifact` */
export function readArtifact(journal: Journal, id: string): Artifact {
  const seq = Number(/^art_(\d{1,15})(?:_\d{1,4})?$/.exec(id)?.[1] ?? Number.NaN);
  const event = Number.isNaN(seq) ? undefined : journal.range({ after: seq - 1, limit: 1 })[0]?.event;
  const found = event?.seq === seq ? artifactsOf(event).find((artifact) => artifact.id === id) : undefined;
  if (found !== undefined) return found;
  throw new EngineError('unknown_artifact', `This session has no artifact "${id.slice(0, limits.excerptChars)}"`);
}

/** What one event holds: the whole output, where it is large, then its files. */
export function artifactsOf(event: SessionEvent): Artifact[] {
  if (event.type !== 'action_completed') return [];
  const output = event.data['output'] ?? null;
  const whole = typeof output === 'string' ? output : JSON.stringify(output);
  const common = {
    run_id: event.run_id,
    action_id: event.action_id ?? null,
    action_name: event.action_name ?? null,
    created_at: event.timestamp,
  };
  const made = (id: string, file: File): Artifact => ({
    id,
    ...common,
    name: file.name,
    content_type: file.contentType,
    size_bytes: file.bytes.length,
    bytes: file.bytes,
  });
  const artifacts: Artifact[] = [];
  if (whole.length * 3 > limits.artifactBytes) {
    const bytes = encoder.encode(whole);
    const text = typeof output === 'string';
    const name = `${nameOf(event.action_id) ?? 'output'}.${text ? 'txt' : 'json'}`;
    const contentType = text ? 'text/plain; charset=utf-8' : 'application/json';
    if (bytes.length > limits.artifactBytes) artifacts.push(made(`art_${event.seq}`, { name, contentType, bytes }));
  }
  for (const [index, file] of filesOf(output).entries()) artifacts.push(made(`art_${event.seq}_${index + 1}`, file));
  return artifacts;
}

interface File {
  readonly name: string;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

function filesOf(output: Json): File[] {
  if (!isObject(output)) return [];
  const { files, content } = output;
  const listed = [...(Array.isArray(files) ? files : []), ...(Array.isArray(content) ? content : [])];
  return listed
    .slice(0, limits.filesPerOutcome)
    .flatMap((item, index) => (isObject(item) ? (fileOf(item, index) ?? []) : []));
}

function fileOf(item: JsonObject, index: number): File | null {
  const { name, content_type: type, mimeType, base64, data, text } = item;
  const encoded = typeof base64 === 'string' ? base64 : typeof mimeType === 'string' ? data : undefined;
  const bytes = typeof encoded === 'string' ? decoded(encoded) : named(item) ? encoder.encode(String(text)) : null;
  if (bytes === null) return null;
  return {
    name: nameOf(name) ?? `file-${index + 1}`,
    contentType: contentTypeOf(type ?? mimeType, typeof encoded !== 'string'),
    bytes,
  };
}

/** Text is a file only where it says so: MCP's text parts are the answer itself. */
function named({ name, text }: JsonObject): boolean {
  return typeof name === 'string' && typeof text === 'string';
}

function contentTypeOf(said: Json | undefined, isText: boolean): string {
  const standard = isText ? 'text/plain; charset=utf-8' : 'application/octet-stream';
  if (typeof said !== 'string' || !CONTENT_TYPE.test(said)) return standard;
  return ACTIVE.test(said) ? 'text/plain; charset=utf-8' : said.toLowerCase();
}

/** The last part of a path, of characters that every system and every header takes. */
function nameOf(said: Json | undefined): string | null {
  if (typeof said !== 'string') return null;
  const last = said.split(/[/\\]/).at(-1) ?? '';
  const safe = last.replaceAll(/[^\w.-]+/g, '_').replace(/^\.+/, '');
  return safe === '' ? null : safe.slice(-limits.fileNameChars);
}

function decoded(base64: string): Uint8Array | null {
  try {
    const raw = atob(base64);
    const bytes = new Uint8Array(raw.length);
    for (let at = 0; at < raw.length; at += 1) bytes[at] = raw.charCodeAt(at);
    return bytes;
  } catch {
    return null;
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
