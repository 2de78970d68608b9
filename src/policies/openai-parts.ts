/** Parts of messages in the forms of OpenAI clients, as parts of our own messages (C1, C2). */
import { EngineError } from '../domain/errors.ts';
import type { GivenFile, GivenPart, MessagePart } from './message-content.ts';

interface ClientFile {
  readonly filename?: string | null | undefined;
  /** Base64, or a `data:` URL. */
  readonly file_data?: string | null | undefined;
  readonly file_id?: string | null | undefined;
}

/** A part as OpenAI clients send it, or one of our own. */
export type ClientPart =
  | MessagePart
  | { readonly type: 'input_text' | 'output_text'; readonly text: string }
  | { readonly type: 'refusal'; readonly refusal: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | {
      readonly type: 'input_image';
      readonly image_url?: string | null | undefined;
      readonly file_id?: string | null | undefined;
    }
  | (ClientFile & { readonly type: 'input_file' })
  | { readonly type: 'file'; readonly file: ClientFile };

/**
 * @throws EngineError `unsupported_content` for a file that only OpenAI has, or that has to be fetched; `invalid_content`
 *   without a file
 */
export function partOf(part: ClientPart): GivenPart {
  switch (part.type) {
    case 'text':
      return part;
    case 'image':
      return sentFile(part);
    case 'input_text':
    case 'output_text':
      return { type: 'text', text: part.text };
    case 'refusal':
      return { type: 'text', text: part.refusal };
    case 'image_url':
      return imageOf(part.image_url.url);
    case 'input_image':
      return imageOf(part.image_url ?? missing(part.file_id, '"image_url"'));
    case 'input_file':
      return fileOf(part);
    case 'file':
      return 'file' in part && part.file !== undefined ? fileOf(part.file) : sentFile(part);
  }
}

/** Fetching at the creation of a session would be repeated by each request of a stateless client, and fail with old URLs. */
function sentFile(part: GivenFile & { readonly url?: string | undefined }): GivenFile {
  const { url, ...file } = part;
  return url === undefined ? file : notFetched();
}

function notFetched(): never {
  throw new EngineError(
    'unsupported_content',
    'files of a history are not fetched from a URL: send the bytes as "data", or as a URL "data:<media type>;base64,<bytes>"',
  );
}

/** The bytes decide about the type of an image: what clients state is often wrong. */
function imageOf(url: string): GivenFile {
  return { type: 'image', data: dataOf(url).data };
}

function fileOf({ filename, file_data: given, file_id: id }: ClientFile): GivenFile {
  const text = given ?? missing(id, '"file_data"');
  const { data, mediaType } = text.startsWith('data:') ? dataOf(text) : { data: text, mediaType: null };
  return {
    type: 'file',
    data,
    ...(filename == null ? {} : { name: filename }),
    ...(mediaType === null ? {} : { media_type: mediaType }),
  };
}

function missing(id: string | null | undefined, member: string): never {
  if (id == null) throw new EngineError('invalid_content', `expected ${member}`);
  throw new EngineError('unsupported_content', `"file_id" names a file that this system does not have; send ${member}`);
}

const DATA_URL = /^data:([^;,]{0,160})(;[^,]{0,160})?,/i;

/** The parts of a `data:` URL. Only its beginning is searched. */
function dataOf(url: string): { readonly data: string; readonly mediaType: string | null } {
  const [head, mediaType = '', parameters = ''] = DATA_URL.exec(url.slice(0, 400)) ?? [];
  if (head === undefined) return notFetched();
  if (!/;base64$/i.test(parameters)) throw new EngineError('invalid_content', 'a data: URL must be in base64');
  return { data: url.slice(head.length), mediaType: mediaType === '' ? null : mediaType };
}
