/** The OpenAPI 3.1 document (H4): what the routes say of themselves (describe.ts), put together by hono-openapi. */
import type { Env, Hono } from 'hono';
import { generateSpecs } from 'hono-openapi';
import type { DescribeRouteOptions } from 'hono-openapi';
import * as z from 'zod';
import { noQuery, queryParameters } from '../query.ts';
import type { Query } from '../query.ts';
import { problem, sessionEvent } from '../responses.ts';
import { manifestFilesBody } from '../schemas.ts';
import { componentSchemas, responseSchema } from './response-schemas.ts';

/** What a route takes and answers. */
export interface RouteDescription {
  readonly summary: string;
  /** What it takes in its query; nothing where it is left out. */
  readonly query?: Query;
  /** The JSON that it takes. */
  readonly body?: z.ZodType;
  /** Also takes protocol text as it is. */
  readonly plainText?: boolean;
  /** Takes YAML; `folder`: or several files as a form or as JSON. */
  readonly yaml?: 'one' | 'folder';
  /** 200 where it is left out. */
  readonly status?: number;
  /** Other statuses with the same answer. */
  readonly further?: readonly number[];
  /** What a JSON answer holds. */
  readonly response?: z.ZodType;
  /** What it answers with instead of JSON, or as well: events (SSE), JSON Lines, or a file. */
  readonly media?: 'events' | 'lines' | 'file';
}

/**
 * The document of every described route of an app.
 *
 * Takes tens of milliseconds: the caller keeps what it gets.
 */
export async function openApiDocument<E extends Env>(app: Hono<E>, version: string): Promise<object> {
  return await generateSpecs(app, {
    excludeStaticFile: false,
    documentation: {
      info: {
        title: 'Cortex Edge',
        description: 'Sessions with agents, executions of protocol text, workflows, and the catalogue of manifests.',
        version,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      security: [{ apiKey: [] }, { sessionToken: [] }, { sessionTokenInQuery: [] }, {}],
      components: {
        securitySchemes: {
          apiKey: { type: 'http', scheme: 'bearer' },
          sessionToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
          sessionTokenInQuery: { type: 'apiKey', in: 'query', name: 'token' },
        },
        schemas: componentSchemas(),
      },
    },
  });
}

/** A description as an operation of the document, without the parameters in its path. */
export function operationOf(description: RouteDescription): DescribeRouteOptions {
  const { summary, query = noQuery, status = 200, further = [] } = description;
  const content = requestContent(description);
  const response = { description: 'Done', ...contentOf(responseContent(description)) };
  return {
    summary,
    parameters: queryParameters(query),
    ...(Object.keys(content).length === 0 ? {} : { requestBody: { content } }),
    responses: {
      ...Object.fromEntries([status, ...further].map((code) => [String(code), response])),
      default: {
        description: 'A problem, with a stable code',
        content: { 'application/problem+json': { schema: responseSchema(problem) } },
      },
    },
  };
}

type Content = Record<string, { schema: object }>;

function requestContent({ body, plainText = false, yaml }: RouteDescription): Content {
  const content: Content = {};
  if (body !== undefined) content['application/json'] = { schema: bodySchema(body) };
  if (yaml !== undefined) content['application/yaml'] = { schema: { type: 'string' } };
  if (yaml === 'folder') {
    content['application/json'] = { schema: bodySchema(manifestFilesBody) };
    content['multipart/form-data'] = {
      schema: {
        type: 'object',
        additionalProperties: { type: 'string', contentMediaType: 'application/octet-stream' },
      },
    };
  }
  if (plainText) content['text/plain'] = { schema: { type: 'string' } };
  return content;
}

/** What a route answers when nothing is wrong. */
function responseContent({ response, media }: RouteDescription): Content {
  const content: Content = {};
  if (response !== undefined) content['application/json'] = { schema: responseSchema(response) };
  if (media === 'file') content['application/octet-stream'] = { schema: { type: 'string', format: 'binary' } };
  if (media === 'lines') content['application/jsonl'] = { schema: { type: 'string' } };
  if (media === 'events') {
    // The schema is that of each frame's data.
    const schema = {
      type: 'string',
      contentMediaType: 'application/json',
      contentSchema: responseSchema(sessionEvent),
    };
    content['text/event-stream'] = { schema };
  }
  return content;
}

function contentOf(content: Content): { content?: Content } {
  return Object.keys(content).length === 0 ? {} : { content };
}

function bodySchema(body: z.ZodType): object {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(body, { io: 'input' });
  return schema;
}
