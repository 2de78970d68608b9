/** The original's registry of manifests, as other names of the catalogue's routes (M4). */
import { Hono } from 'hono';
import type { ManifestKind } from '../../domain/catalog.ts';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import { readJson } from '../body.ts';
import type { EdgeEnv } from '../gateway.ts';
import type { ManifestHost } from '../manifest-host.ts';
import { operation } from '../openapi/describe.ts';
import { filesQuery } from '../query.ts';
import { manifestDetail } from '../responses/manifests.ts';
import { detailJson, kindOf, list, pathOf, readFiles, reportJson, requireLoaded } from '../routes/manifests.ts';
import { validate } from '../schemas.ts';
import * as answers from './answers.ts';
import { parseBody } from './bodies.ts';

const KINDS = [
  ['agents', 'agent', answers.registeredAgents],
  ['tools', 'tool', answers.registeredTools],
  ['relics', 'relic', answers.registeredRelics],
  ['workflows', 'workflow', answers.registeredWorkflows],
] as const;

export function registryRoutes(host: ManifestHost): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();

  operation(app, 'GET /registry/status', { response: answers.registryStatus }, async (c) => {
    const found = await list(host, c.get('principal'), null);
    const counts = KINDS.map(([plural, kind]) => [plural, found.filter((one) => one.kind === kind).length] as const);
    const times = found.flatMap(({ updated_at: time }) => (time === null ? [] : [time]));
    return c.json({
      total_manifests: counts.reduce((sum, [, count]) => sum + count, 0),
      by_type: Object.fromEntries(counts),
      last_updated: times.length === 0 ? null : times.reduce((a, b) => Math.max(a, b)),
    });
  });

  for (const [plural, kind, response] of KINDS) {
    operation(app, `GET /registry/${plural}`, { response }, async (c) => {
      const manifests = await list(host, c.get('principal'), kind);
      return c.json({ [capitalized(kind)]: manifests.map(({ name }) => name), manifests });
    });
  }

  operation(app, 'GET /registry/manifest/:kind/:name', { response: manifestDetail }, async (c) => {
    const ref = { kind: kindOf(c.req.param('kind').toLowerCase()), name: c.req.param('name') };
    return c.json(detailJson(await host.get(c.get('principal').owner, ref, {})));
  });

  operation(app, 'GET /registry/dependencies/:kind/:name', { response: answers.dependencies }, async (c) => {
    const { owner } = c.get('principal');
    const ref = { kind: kindOf(c.req.param('kind').toLowerCase()), name: c.req.param('name') };
    const id = `${ref.kind}/${ref.name}`;
    const { edges, nodes } = (await host.graph(owner)).graph;
    if (!nodes.some((node) => node.id === id)) {
      throw new EngineError('unknown_manifest', `There is no ${ref.kind} "${ref.name.slice(0, limits.excerptChars)}"`);
    }
    const imports = edges.filter(({ from, how }) => from === id && how === 'import').map(({ to }) => to);
    const named = (kind: ManifestKind): string[] =>
      imports.filter((to) => to.startsWith(`${kind}/`)).map((to) => to.slice(kind.length + 1));
    return c.json({ dependencies: Object.fromEntries(KINDS.map(([plural, kind]) => [plural, named(kind)])) });
  });

  operation(
    app,
    'POST /manifests/upload',
    { yaml: 'folder', query: filesQuery, further: [207], response: answers.uploaded },
    async (c) => {
      const { owner } = c.get('principal');
      const posted = await readFiles(c.req.raw);
      const report = reportJson(await host.upload(owner, posted.files), posted);
      requireLoaded(report);
      return c.json({ ...firstOf(report), ...report }, report.problems.length > 0 ? 207 : 200);
    },
  );

  operation(app, 'POST /manifests/parse', { body: parseBody, response: answers.parsed }, async (c) => {
    const { content } = validate(parseBody, await readJson(c.req.raw));
    const file = { path: pathOf(content), text: content, isAlone: true };
    const report = reportJson(await host.validate(c.get('principal').owner, [file]));
    return c.json({ valid: report.problems.length === 0, ...firstOf(report), ...report });
  });

  return app;
}

function firstOf({ manifests, problems }: ReturnType<typeof reportJson>): object {
  const [first] = manifests;
  return {
    status: problems.length === 0 ? 'success' : 'error',
    manifest_type: first === undefined ? null : capitalized(first.kind),
    manifest_name: first?.name ?? null,
  };
}

function capitalized(kind: string): string {
  return kind.charAt(0).toUpperCase() + kind.slice(1);
}
