/** The sessions of a namespace, or of a token's user (C6). One session: session-reading.ts. */
import { Hono } from 'hono';
import type { DirectoryEntry, DirectoryPage } from '../../domain/directory.ts';
import type { DirectoryPosition } from '../../domain/list-page.ts';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { EdgeEnv } from '../gateway.ts';
import { operation } from '../openapi/describe.ts';
import { readQuery, sessionsQuery } from '../query.ts';
import * as answers from '../responses/sessions.ts';
import type { Token } from '../tokens.ts';
import { requireAgentOf } from './sessions.ts';

/** A page of one namespace. @throws EngineError `directory_unavailable` */
export type DirectoryOf = (
  owner: string | null,
  page: DirectoryPage,
) => Promise<{ readonly entries: readonly DirectoryEntry[]; readonly next: DirectoryPosition | null }>;

export function directoryRoutes(directory: DirectoryOf): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();
  operation(app, 'GET /sessions', { query: sessionsQuery, response: answers.sessions }, async (c) => {
    const { owner, token } = c.get('principal');
    const {
      user_id: userId = null,
      agent,
      status = null,
      limit = limits.pageRows,
      before,
    } = readQuery(sessionsQuery, c.req.url);
    if (token !== null && agent !== undefined) requireAgentOf(token, agent);
    const { entries, next } = await directory(owner, {
      limit,
      before: before === undefined ? null : placeIn(before),
      userId: token === null ? userId : userOf(token, userId),
      agents: agent === undefined ? agentsOf(token) : [agent],
      status,
    });
    return c.json({ sessions: entries, next: next === null ? null : `${next.at}-${next.id}` });
  });
  return app;
}

/** @param before matches `sessionsQuery` */
function placeIn(before: string): DirectoryPosition {
  const dash = before.indexOf('-');
  return { at: Number(before.slice(0, dash)), id: before.slice(dash + 1) };
}

/** @throws EngineError `forbidden` if another user is asked for */
function userOf(token: Token, asked: string | null): string {
  if (token.type === 'user' && (asked === null || asked === token.userId)) return token.userId;
  throw new EngineError('forbidden', 'A user token lists the sessions of its own user only');
}

/** The only agents whose sessions a token may see; null: all. */
function agentsOf(token: Token | null): readonly string[] | null {
  return token?.type === 'user' ? token.agents : null;
}
