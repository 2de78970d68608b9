/** Routes for the files of a session's workspace, for people (C7). They need no runner. */
import { Hono } from 'hono';
import type { Context } from 'hono';
import type * as z from 'zod';
import { joinedBytes } from '../../domain/bytes.ts';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { nearestNames } from '../../domain/nearest.ts';
import type { WorkspaceStore } from '../../domain/ports/session-stores.ts';
import { pathIssue } from '../../domain/workspace.ts';
import type { WorkspaceFile } from '../../domain/workspace.ts';
import { attachmentNamed, servedFileType } from '../../policies/served-file.ts';
import { readBytes } from '../body.ts';
import { DOWNLOAD_HEADERS, downloadResponse } from '../download.ts';
import { ifMatch, ifNew, ifNoneMatch, ifRange, range } from '../headers.ts';
import { readHeader, sessionOperation } from '../openapi/describe.ts';
import { readQuery, removeFileQuery, workspaceQuery, writeFileQuery } from '../query.ts';
import * as answers from '../responses/workspace.ts';
import { closedBy } from '../run-response.ts';
import type { SessionEnv } from '../session-env.ts';
import { bytesStream, workspaceZip } from '../workspace-archive.ts';

export const sessionWorkspace = new Hono<SessionEnv>();

sessionOperation(
  sessionWorkspace,
  'GET /agent/session/:id/files',
  { query: workspaceQuery, response: answers.workspaceFiles, media: 'zip' },
  (c) => {
    const { session } = c.env;
    void session.record;
    const { archive, prefix } = readQuery(workspaceQuery, c.req.url);
    const folder = prefix === undefined ? null : requirePath(prefix.replace(/\/$/, ''), '"prefix"');
    const all = session.workspace.list();
    const files = folder === null ? all : all.filter(({ path }) => path.startsWith(`${folder}/`));
    if (archive !== undefined) return archiveResponse(c, files, folder?.split('/').at(-1) ?? 'workspace');
    const bytes = all.reduce((sum, { size }) => sum + size, 0);
    return c.json({ files: files.map(fileDocument), bytes, max_bytes: session.workspace.maxBytes });
  },
);

sessionOperation(
  sessionWorkspace,
  'GET /agent/session/:id/files/:path',
  { headers: [range, ifNoneMatch, ifRange], media: 'file', further: [206, 304] },
  async (c) => {
    const { workspace } = c.env.session;
    void c.env.session.record;
    const path = pathOf(c);
    const file = requireFile(workspace, path, (folder) => `list its files with GET …/files?prefix=${folder}/`);
    const known = readHeader(c, ifNoneMatch);
    if (known !== null && isNamed(known, file.sha256)) {
      return new Response(null, { status: 304, headers: { etag: tagOf(file), 'cache-control': 'private, no-cache' } });
    }
    const bytes = await workspace.read(file.sha256);
    if (bytes === null) throw unknownFile(workspace, path);
    const part = readHeader(c, ifRange);
    const wanted = part === null || isNamed(part, file.sha256) ? readHeader(c, range) : null;
    const name = path.split('/').at(-1) ?? path;
    return downloadResponse({ id: file.sha256, name, content_type: servedFileType(path, bytes), bytes }, wanted, {
      disposition: attachmentNamed(name),
      caching: 'changing',
    });
  },
);

sessionOperation(
  sessionWorkspace,
  'PUT /agent/session/:id/files/:path',
  {
    file: true,
    query: writeFileQuery,
    headers: [ifMatch, ifNew],
    response: answers.workspaceFile,
    status: 201,
    further: [200],
    tagged: true,
  },
  async (c) => {
    const { workspace, record } = c.env.session;
    const path = pathOf(c);
    const { executable } = readQuery(writeFileQuery, c.req.url);
    const [match, unless] = [readHeader(c, ifMatch), readHeader(c, ifNew)];
    let before: WorkspaceFile | null = null;
    const check = (): void => {
      before = workspace.file(path);
      requireFree(workspace, path);
      requireVersion(before, path, match, unless);
    };
    // Before the body is received: a refused request saves the transfer.
    check();
    const of = { session: record.session_id, owner: record.owner };
    return await c.env.bodies.hold(of, async (place) => {
      const pieces: Uint8Array[] = [];
      for await (const piece of readBytes(c.req.raw, limits.workspaceFileBytes)) {
        await place.received(piece.length);
        pieces.push(piece);
      }
      const mode = executable ?? workspace.file(path)?.executable ?? false;
      const [file] = await workspace.write([{ path, bytes: joinedBytes(pieces), executable: mode }], check);
      if (file === undefined) throw new Error('the workspace has not said what it has written');
      return c.json(fileDocument(file), before === null ? 201 : 200, { etag: tagOf(file) });
    });
  },
);

sessionOperation(
  sessionWorkspace,
  'DELETE /agent/session/:id/files/:path',
  { query: removeFileQuery, headers: [ifMatch], response: answers.deletedFiles },
  async (c) => {
    const { workspace } = c.env.session;
    void c.env.session.record;
    const path = pathOf(c);
    const isRecursive = readQuery(removeFileQuery, c.req.url).recursive === true;
    const match = readHeader(c, ifMatch);
    const removed = await workspace.remove(path, () => {
      if (isRecursive && isFolder(workspace, path)) {
        if (match !== null) throw failed(`"${path}" is a folder, and a folder has no ETag`);
        return;
      }
      const file = requireFile(workspace, path, () => 'delete it with everything in it with ?recursive=true');
      requireVersion(file, path, match, null);
    });
    return c.json({ deleted: removed.map((file) => file.path) });
  },
);

function fileDocument({
  path,
  size,
  modifiedAt,
  sha256,
  executable,
}: WorkspaceFile): z.output<typeof answers.workspaceFile> {
  return { path, size, modified_at: modifiedAt, sha256, ...(executable ? { executable } : {}) };
}

function tagOf({ sha256 }: WorkspaceFile): string {
  return `"${sha256}"`;
}

/**
 * The path of the request, decoded once. The routers decode it in their own way, so it is read from the URL.
 *
 * @throws EngineError `invalid_request`
 */
function pathOf(c: Context<SessionEnv>): string {
  const { pathname } = new URL(c.req.url);
  const given = pathname.slice(pathname.indexOf('/files/') + '/files/'.length);
  if (/%2f/i.test(given)) throw invalidPath('"/" in a path must not be encoded: write it between the names');
  let path: string;
  try {
    path = decodeURIComponent(given);
  } catch {
    throw invalidPath('the path is not valid UTF-8 in percent encoding');
  }
  return requirePath(path, 'the path');
}

/** @throws EngineError `invalid_request` */
function requirePath(path: string, what: string): string {
  const issue = pathIssue(path);
  if (issue !== null) throw invalidPath(`${what} cannot name a file of the workspace: ${issue}`);
  return path;
}

function invalidPath(message: string): EngineError {
  return new EngineError('invalid_request', message);
}

function isFolder(workspace: WorkspaceStore, path: string): boolean {
  return workspace.list().some((file) => file.path.startsWith(`${path}/`));
}

/**
 * @param advice what to do with a folder
 * @throws EngineError `unknown_file` for a folder, and for a path without a file
 */
function requireFile(workspace: WorkspaceStore, path: string, advice: (folder: string) => string): WorkspaceFile {
  const file = workspace.file(path);
  if (file !== null) return file;
  if (!isFolder(workspace, path)) throw unknownFile(workspace, path);
  throw new EngineError('unknown_file', `"${path}" is a folder: ${advice(path)}`);
}

function unknownFile(workspace: WorkspaceStore, path: string): EngineError {
  const [near] = nearestNames(path, () => workspace.list().map((file) => file.path));
  const hint = near === undefined ? '' : `; did you mean "${near}"?`;
  return new EngineError('unknown_file', `The workspace has no file "${path}"${hint}`);
}

/** Programs may replace a folder with a file, and the other way round; people would lose files by a mistake in a path. */
function requireFree(workspace: WorkspaceStore, path: string): void {
  if (isFolder(workspace, path)) {
    throw invalidPath(`"${path}" is a folder: choose another path, or delete it first with ?recursive=true`);
  }
  const levels = path.split('/');
  for (let depth = 1; depth < levels.length; depth += 1) {
    const folder = levels.slice(0, depth).join('/');
    if (workspace.file(folder) === null) continue;
    throw invalidPath(`"${folder}" is a file and cannot contain others: choose another path, or delete it first`);
  }
}

/**
 * Whether a list of entity tags names this version. A proxy that compresses marks a tag as weak, but the bytes are the
 * same, so the mark does not count.
 */
function isNamed(tags: string, sha256: string): boolean {
  return tags.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === `"${sha256}"`);
}

/** @throws EngineError `precondition_failed` */
function requireVersion(file: WorkspaceFile | null, path: string, match: string | null, unless: string | null): void {
  if (file === null) {
    if (match !== null) throw failed(`"${path}" does not exist`);
    return;
  }
  if (match !== null && !isNamed(match, file.sha256)) {
    throw failed(`"${path}" has the ETag ${tagOf(file)}, not ${excerpt(match)}`);
  }
  if (unless !== null && isNamed(unless, file.sha256)) {
    throw failed(`"${path}" exists already, with the ETag ${tagOf(file)}`);
  }
}

function failed(message: string): EngineError {
  return new EngineError('precondition_failed', message);
}

function excerpt(text: string): string {
  return text.slice(0, limits.excerptChars);
}

function archiveResponse(c: Context<SessionEnv>, files: readonly WorkspaceFile[], name: string): Response {
  return new Response(bytesStream(archiveOf(c, files)), {
    headers: {
      ...DOWNLOAD_HEADERS,
      'content-type': 'application/zip',
      'content-disposition': attachmentNamed(`${name}.zip`),
      'cache-control': 'no-store',
    },
  });
}

/** Ends with an error when the session is deleted, or the token has expired. */
async function* archiveOf(c: Context<SessionEnv>, files: readonly WorkspaceFile[]): AsyncGenerator<Uint8Array> {
  const { session } = c.env;
  const closed = closedBy(c);
  let isGone = false;
  const leave = session.listen((batch) => {
    isGone ||= batch === null;
  });
  try {
    const requireOpen = (): void => {
      if (isGone) throw unknownSession();
      const fault = closed();
      if (fault !== null) throw fault;
    };
    const read = (sha256: string): Promise<Uint8Array | null> => session.workspace.read(sha256);
    yield* workspaceZip(files, { read, slices: session.read().slices, requireOpen });
  } finally {
    leave();
  }
}
