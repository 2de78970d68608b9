/**
 * The result of a tool of an MCP server as an action's output (C2).
 *
 * Structured content is the output as it is, so that `$name.member` works; text that is JSON is parsed for the same reason.
 * Images, sounds and embedded resources become `files`, which are artifacts, and which the model sees as parts. Everything is
 * data: nothing in it is read as protocol.
 */
import type { CallToolResult, ReadResourceResult } from '@modelcontextprotocol/client';
import type { ActionOutcome } from '../../domain/action.ts';
import { failure } from '../../domain/failure.ts';
import { parseJson } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { validateJson } from '../validate-parameters.ts';

type Content = NonNullable<CallToolResult['content']>[number];

/** @param schema of structured content, as the server lists it; null: it promises none */
export function outcomeOf(server: string, result: CallToolResult, schema: JsonObject | null = null): ActionOutcome {
  const { content = [], structuredContent, isError } = result;
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  if (isError === true) {
    const said = text === '' ? 'no reason given' : text.slice(0, limits.mcpErrorChars);
    return failure('tool_failed', `The MCP server "${server}" says: ${said}`);
  }
  const files = content.slice(0, limits.filesPerOutcome).flatMap(fileOf);
  const links = content.slice(0, limits.filesPerOutcome).flatMap(linkOf);
  const structured = structuredContent as Json | undefined;
  const issue = schema === null ? null : promiseIssue(structured, schema);
  if (issue !== null) {
    return failure('mcp_failed', `The MCP server "${server}" returned a result that does not fit its schema: ${issue}`);
  }
  if (files.length === 0 && links.length === 0) return { ok: true, output: structured ?? jsonOr(text) };
  return {
    ok: true,
    output: {
      ...(text === '' ? {} : { text }),
      ...(structured === undefined ? {} : { structured }),
      ...(files.length === 0 ? {} : { files }),
      ...(links.length === 0 ? {} : { links }),
    },
  };
}

function promiseIssue(structured: Json | undefined, schema: JsonObject): string | null {
  return structured === undefined ? 'it has no structured content' : validateJson(schema, structured, 'result');
}

/** A resource that was read: its text, or its files. */
export function outcomeOfResource({ contents }: ReadResourceResult): ActionOutcome {
  const [first] = contents;
  if (contents.length === 1 && first !== undefined && 'text' in first) return { ok: true, output: jsonOr(first.text) };
  return { ok: true, output: { files: contents.slice(0, limits.filesPerOutcome).map(resourceFile) } };
}

function fileOf(part: Content, at: number): JsonObject[] {
  switch (part.type) {
    case 'image':
    case 'audio': {
      const { type, mimeType, data } = part;
      return [{ name: `${type}-${at + 1}${extensionOf(mimeType)}`, content_type: mimeType, base64: data }];
    }
    case 'resource':
      return [resourceFile(part.resource)];
    default:
      return [];
  }
}

function resourceFile(resource: ReadResourceResult['contents'][number]): JsonObject {
  const { uri, mimeType } = resource;
  const type = mimeType === undefined ? {} : { content_type: mimeType };
  const common = { name: nameOf(uri), uri, ...type };
  return 'text' in resource ? { ...common, text: resource.text } : { ...common, base64: resource.blob };
}

function linkOf(part: Content): JsonObject[] {
  if (part.type !== 'resource_link') return [];
  const { uri, name, description, mimeType } = part;
  return [
    {
      uri,
      name,
      ...(description === undefined ? {} : { description: description.slice(0, limits.mcpDescriptionChars) }),
      ...(mimeType === undefined ? {} : { content_type: mimeType }),
    },
  ];
}

/** The last part of a resource's address. */
function nameOf(uri: string): string {
  const [path = ''] = uri.split(/[?#]/, 1);
  return path.split('/').findLast((part) => part !== '') ?? 'resource';
}

function extensionOf(mimeType: string): string {
  const [, subtype = ''] = /^\w+\/(?:x-)?([a-z0-9]{1,8})/i.exec(mimeType) ?? [];
  return subtype === '' ? '' : `.${subtype.toLowerCase()}`;
}

/** Only objects and lists: a number or `true` in a text is text. */
function jsonOr(text: string): Json {
  if (!/^\s*[{[]/.test(text)) return text;
  const value = parseJson(text);
  return value === undefined ? text : value;
}
