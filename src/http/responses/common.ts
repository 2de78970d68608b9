/**
 * Schemas of the responses, for the OpenAPI document and the tests (H4). Nothing is validated with them at run time.
 * Future versions may add members; clients must ignore unknown ones. One file for each group of routes; this one has what
 * every route can send.
 */
import * as z from 'zod';
import { ERROR_TABLE } from '../../domain/errors.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import { EVENT_SCHEMAS } from '../../domain/event-table.ts';
import { text } from './members.ts';

export const problem = z
  .looseObject({
    type: z.literal('about:blank').describe('Always `about:blank`; the kind of the problem is `code`'),
    title: text('What the code means'),
    status: z.int().describe('The HTTP status'),
    code: z.enum(Object.keys(ERROR_TABLE) as ErrorCode[]).describe('A stable code'),
    detail: text('What happened, which one, and what was allowed'),
  })
  .describe('RFC 9457; branch on `code`. Some codes have further members, such as `issues` or `run_id`');

export const sessionEvent = z
  .union([...EVENT_SCHEMAS.values()])
  .describe('Discriminated by `type`; ignore unknown types');
