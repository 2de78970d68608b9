/** The catalogue over HTTP (M4): all keys may read, admin keys may change; accepts YAML, returns JSON or YAML. */
import { MANIFEST_KINDS } from '../../domain/catalog.ts';
import type {
  ManifestKind,
  ListedManifest,
  StoredManifest,
  ManifestProblem,
  ManifestProblems,
  ChangeReport,
  ManifestFile,
} from '../../domain/catalog.ts';
import { Hono } from 'hono';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { Principal } from '../auth.ts';
import { parseBody, readJson, readText } from '../body.ts';
import type { EdgeEnv } from '../gateway.ts';
import type { ManifestHost } from '../manifest-host.ts';
import { accepts, operation } from '../openapi/describe.ts';
import { readForm } from '../multipart.ts';
import { filesQuery, manifestQuery, readQuery } from '../query.ts';
import * as answers from '../responses/manifests.ts';
import { manifestFilesBody, validate } from '../schemas.ts';

export function manifestRoutes(host: ManifestHost): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();

  operation(app, 'GET /manifests', { response: answers.manifests }, async (c) =>
    c.json({ manifests: await list(host, c.get('principal'), null) }),
  );

  operation(app, 'GET /manifests/graph', { response: answers.manifestGraph, text: 'text/plain' }, async (c) => {
    const { graph, text } = await host.graph(c.get('principal').owner);
    return accepts(c, 'text/plain') ? c.text(text) : c.json(graph);
  });

  operation(
    app,
    'POST /manifests/validate',
    { yaml: 'folder', query: filesQuery, response: answers.manifestCheck },
    async (c) => {
      const posted = await readFiles(c.req.raw);
      const report = reportJson(await host.validate(c.get('principal').owner, posted.files), posted);
      return c.json({ valid: report.problems.length === 0, ...report });
    },
  );

  operation(
    app,
    'PUT /manifests',
    { yaml: 'folder', query: filesQuery, response: answers.manifestReplacement },
    async (c) => {
      const principal = c.get('principal');
      const posted = await readFiles(c.req.raw);
      if (posted.problems.length > 0) throw refusal(posted);
      const report = await host.replace(principal.owner, posted.files);
      return c.json({ ...reportJson(report, posted), removed: report.removed });
    },
  );

  operation(
    app,
    'POST /manifests',
    { yaml: 'folder', query: filesQuery, status: 201, further: [207], response: answers.manifestReport },
    async (c) => {
      const principal = c.get('principal');
      const posted = await readFiles(c.req.raw);
      const report = reportJson(await host.upload(principal.owner, posted.files), posted);
      requireLoaded(report);
      return c.json(report, report.problems.length > 0 ? 207 : 201);
    },
  );

  operation(app, 'GET /manifests/:kind', { response: answers.manifests }, async (c) =>
    c.json({ manifests: await list(host, c.get('principal'), kindOf(c.req.param('kind'))) }),
  );

  operation(
    app,
    'GET /manifests/:kind/:name',
    { query: manifestQuery, response: answers.manifestDetail, text: 'application/yaml' },
    async (c) => {
      const ref = { kind: kindOf(c.req.param('kind')), name: c.req.param('name') };
      const wanted = readQuery(manifestQuery, c.req.url);
      const found = await host.get(c.get('principal').owner, ref, wanted);
      if (accepts(c, 'application/yaml')) {
        return new Response(found.source ?? '', {
          headers: { 'content-type': 'application/yaml; charset=utf-8' },
        });
      }
      return c.json(detailJson(found));
    },
  );

  operation(
    app,
    'PUT /manifests/:kind/:name',
    { yaml: 'one', status: 201, further: [200], response: answers.manifestChange },
    async (c) => {
      const principal = c.get('principal');
      const ref = { kind: kindOf(c.req.param('kind')), name: c.req.param('name') };
      const text = await readText(c.req.raw, limits.manifestBytes);
      const report = await host.put(principal.owner, ref, text);
      const json = reportJson(report);
      return c.json({ ...json.manifests[0], warnings: json.warnings }, report.manifests[0]?.revision === 1 ? 201 : 200);
    },
  );

  operation(app, 'DELETE /manifests/:kind/:name', { status: 204 }, async (c) => {
    const principal = c.get('principal');
    const ref = { kind: kindOf(c.req.param('kind')), name: c.req.param('name') };
    await host.remove(principal.owner, ref);
    return c.body(null, 204);
  });

  return app;
}

type ManifestJson = Omit<ListedManifest, 'updatedAt'> & { readonly updated_at: number | null };

function manifestJson({ updatedAt, ...rest }: ListedManifest): ManifestJson {
  return { ...rest, updated_at: updatedAt };
}

async function list(host: ManifestHost, principal: Principal, kind: ManifestKind | null): Promise<ManifestJson[]> {
  return (await host.list(principal.owner, kind)).map(manifestJson);
}

interface ReportJson extends ManifestProblems {
  readonly manifests: readonly ManifestJson[];
}

function reportJson(report: ChangeReport, posted: ManifestProblems = NO_ISSUES): ReportJson {
  return {
    manifests: report.manifests.map(manifestJson),
    problems: [...posted.problems, ...report.problems],
    warnings: [...posted.warnings, ...report.warnings],
    skipped: [...posted.skipped, ...report.skipped],
  };
}

const NO_ISSUES: ManifestProblems = { problems: [], warnings: [], skipped: [] };

/** The error for files of which nothing was stored. */
function refusal(report: ManifestProblems & Partial<ReportJson>): EngineError {
  const { manifests = [], problems, warnings, skipped } = report;
  const isReserved = problems.length > 0 && problems.every(({ code }) => code === 'manifest_read_only');
  const [first] = [...problems, ...skipped];
  const message = `Nothing could be loaded; the first problem: ${issueLine(first)}`;
  const code = isReserved ? 'manifest_read_only' : 'invalid_manifest';
  return new EngineError(code, message, { manifests, problems, warnings, skipped });
}

function detailJson({ definition, source, file, versions, ...rest }: StoredManifest): object {
  const history = versions.map(({ createdAt, ...one }) => ({ ...one, created_at: createdAt }));
  return { ...manifestJson(rest), file, source, definition, versions: history };
}

/** @throws EngineError if nothing of an upload was stored */
function requireLoaded(report: ReportJson): void {
  const { manifests, problems, skipped } = report;
  if (manifests.length === 0 && problems.length + skipped.length > 0) throw refusal(report);
}

function issueLine(problem: ManifestProblem | undefined): string {
  if (problem === undefined) return 'none';
  const { file, line, column, field, message } = problem;
  return `${file}:${line}:${column}: ${field === '' ? '' : `${field}: `}${message}`;
}

/** Accepts both `tool` and `tools`. */
function kindOf(written: string): ManifestKind {
  const kind = MANIFEST_KINDS.find((known) => written === known || written === `${known}s`);
  if (kind !== undefined) return kind;
  throw new EngineError(
    'not_found',
    `"${written.slice(0, limits.excerptChars)}" is not a kind of manifest (known: ${MANIFEST_KINDS.join(', ')})`,
  );
}

/** The posted files, and the issues of those that cannot be files of a folder. */
interface Posted extends ManifestProblems {
  readonly files: readonly ManifestFile[];
}

/**
 * The posted files by path: a folder as `multipart/form-data` (a part's name or file name is its path), a folder as
 * JSON `{files: {path: text}}` regardless of its content type (H8), or a single manifest.
 *
 * @throws EngineError `invalid_request`, `body_too_large`
 */
async function readFiles(request: Request): Promise<Posted> {
  const type = request.headers.get('content-type') ?? '';
  const { path } = readQuery(filesQuery, request.url);
  const folder = (posted: Posted): Posted => {
    if (path === undefined) return posted;
    throw new EngineError('invalid_request', '"path" is for a single file; the files of a folder have their own paths');
  };
  if (type.startsWith('multipart/form-data')) return folder(await readParts(request));
  if (type.startsWith('application/json')) return folder(folderOf(await readJson(request)));
  const text = await readText(request);
  if (/^\s*\{\s*"files"\s*:/.test(text)) return folder(folderOf(parseBody(text)));
  if (new TextEncoder().encode(text).length > limits.manifestBytes) {
    throw new EngineError('body_too_large', `A manifest may have at most ${limits.manifestBytes} bytes`, {
      limit_bytes: limits.manifestBytes,
    });
  }
  const file = { path: path === undefined ? pathOf(text) : requirePath(path), text, isAlone: true };
  return { ...NO_ISSUES, files: [file] };
}

function folderOf(body: unknown): Posted {
  const { files } = validate(manifestFilesBody, body);
  if (Object.keys(files).length > limits.catalogFiles) {
    throw new EngineError('invalid_request', `A folder may have at most ${limits.catalogFiles} files`);
  }
  return posted(Object.entries(files));
}

async function readParts(request: Request): Promise<Posted> {
  const form = await readForm(request);
  const parts = await Promise.all(
    [...form].map(async ([name, value]): Promise<[string, string | null]> => {
      // `-F manifests/a.yaml=@a.yaml` and `-F file=@a.yaml;filename=manifests/a.yaml` give the same path.
      if (typeof value === 'string') return [name, value];
      return [/[./]/.test(name) ? name : value.name, textOf(await value.arrayBuffer())];
    }),
  );
  if (parts.length === 0) throw new EngineError('invalid_request', 'The form contains no file');
  return posted(parts);
}

/** @param parts path and text; null for a file that is not text */
function posted(parts: readonly (readonly [string, string | null])[]): Posted {
  const files: ManifestFile[] = [];
  const problems: ManifestProblem[] = [];
  const warnings: ManifestProblem[] = [];
  const [first] = parts;
  // without a single usable path, the request is at fault
  if (first !== undefined && parts.every(([written]) => pathIn(written) === null)) requirePath(first[0]);
  for (const [written, text] of parts) {
    const path = pathIn(written);
    const at = { file: (path ?? written).slice(0, limits.excerptChars), line: 1, column: 1, field: '' };
    if (path === null) problems.push({ ...at, message: 'is not a path inside a folder' });
    else if (text !== null) files.push({ path, text });
    else if (/\.(ya?ml|md|markdown)$/i.test(path)) problems.push({ ...at, message: 'is not UTF-8 text' });
    else warnings.push({ ...at, message: 'is not UTF-8 text and was ignored' });
  }
  return { files, problems, warnings, skipped: [] };
}

function textOf(bytes: ArrayBuffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    return null;
  }
}

/** Path of a single manifest: derived from its kind and name, so that a new version replaces it. */
function pathOf(text: string): string {
  // the front matter of a skill has no kind (C8)
  const [front] = /^\uFEFF?---[ \t]*\r?\n(?:(?!---).*\r?\n)*---/.exec(text) ?? [];
  if (front !== undefined && !/^kind[ \t]*:/m.test(front)) {
    return `skills/${/^name[ \t]*:[ \t]*["']?([A-Za-z0-9][\w-]{0,63})/m.exec(front)?.[1] ?? 'unnamed'}/SKILL.md`;
  }
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}[ \\t]*:[ \\t]*["']?([A-Za-z][A-Za-z0-9_-]{0,63})`, 'm').exec(text)?.[1];
  return `${(field('kind') ?? 'manifest').toLowerCase()}s/${field('name') ?? 'unnamed'}.yaml`;
}

/** A path inside a folder, or null. */
function pathIn(written: string): string | null {
  const plain = written.replaceAll('\\', '/').replace(/^(\.?\/)+/, '');
  return plain !== '' && plain.length <= 255 && !/(^|\/)\.{1,2}(\/|$)|[\p{Cc}]|\/\//u.test(plain) ? plain : null;
}

function requirePath(written: string): string {
  const path = pathIn(written);
  if (path !== null) return path;
  throw new EngineError('invalid_request', `"${written.slice(0, limits.excerptChars)}" is not a path inside a folder`);
}
