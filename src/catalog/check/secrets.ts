/**
 * Secrets in manifests (X3): only names that begin with `TOOL_`, only in requests that tools send at run time, and only
 * secrets of the session's namespace, or of the operator for bundled manifests.
 */
import type { ImportedDefinitions } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import { escapeBraces } from '../../domain/request-template.ts';
import { readSecret } from '../../domain/secrets.ts';
import type { SecretRead, SecretUser } from '../../domain/secrets.ts';
import type { AnyDefinition } from '../catalog.ts';
import type { FieldPath } from './problem.ts';

const NAMED = /\$\{(TOOL_[A-Z0-9_]{1,64})\}/g;

export interface SecretScope extends Omit<SecretUser, 'bundled'> {
  readonly lookup: (variable: string) => string | null;
}

/**
 * Replaces `${TOOL_…}` in URLs and headers of http tools. A tool without access to its secret fails with the reason
 * when it is called. What names no secret is not copied.
 *
 * @param allowed names that an agent allows its tools; default: those that the tools refer to
 */
export function withSecrets<T extends ImportedDefinitions>(
  definitions: T,
  allowed: readonly string[],
  { owner, owners, lookup }: SecretScope,
): T {
  const { bundled } = definitions;
  const shared = new Set(owners).size > 1;
  const tools = new Map(
    [...definitions.tools].map(([name, tool]): [string, ToolDefinition] => {
      const user = { owner, owners, bundled: bundled?.tools.includes(name) ?? false };
      if (tool.implementation.type === 'code') return [name, withMissing(tool, allowed, user, lookup)];
      if (tool.implementation.type === 'mcp') return [name, withMissingAuth(tool, allowed, user, lookup)];
      const missing: string[] = [];
      let filled = false;
      const ready = inRequest(tool, (text) =>
        text.replace(NAMED, (written, secret: string) => {
          const read = readAllowed(secret, allowed, user, lookup);
          if (!read.ok) {
            missing.push(read.reason);
            return written;
          }
          filled = true;
          // the value is data: it contains no variables and no placeholders
          return escapeBraces(read.value).split('${').join('$${');
        }),
      );
      const { implementation } = ready;
      if (implementation.type !== 'http' || (!filled && missing.length === 0)) return [name, tool];
      // an agent that imports a bundled tool must not redirect its request, which contains the operator's secret
      const sealed = shared && user.bundled && bundled?.subject !== true;
      const [reason] = missing;
      const marks = { ...(sealed ? { sealed } : {}), ...(reason === undefined ? {} : { missingSecret: reason }) };
      return [name, { ...ready, implementation: { ...implementation, ...marks } }];
    }),
  );
  const isChanged = [...tools].some(([name, tool]) => tool !== definitions.tools.get(name));
  return isChanged ? { ...definitions, tools } : definitions;
}

/** Code reads its secrets when it runs; here only whether it may. */
function withMissing(
  tool: ToolDefinition,
  allowed: readonly string[],
  user: SecretUser,
  lookup: SecretScope['lookup'],
): ToolDefinition {
  const { implementation } = tool;
  if (implementation.type !== 'code') return tool;
  for (const secret of implementation.secrets) {
    const read = readAllowed(secret, allowed, user, lookup);
    if (!read.ok) return { ...tool, implementation: { ...implementation, missingSecret: read.reason } };
  }
  return tool;
}

/** The agent names the secret of its MCP server, which is read when a call is sent; here only whether it may be. */
function withMissingAuth(
  tool: ToolDefinition,
  allowed: readonly string[],
  user: SecretUser,
  lookup: SecretScope['lookup'],
): ToolDefinition {
  const { implementation } = tool;
  if (implementation.type !== 'mcp' || implementation.auth === null) return tool;
  const read = readAllowed(implementation.auth, allowed, { ...user, bundled: implementation.bundled }, lookup);
  return read.ok ? tool : { ...tool, implementation: { ...implementation, missingSecret: read.reason } };
}

function readAllowed(
  secret: string,
  allowed: readonly string[],
  user: SecretUser,
  lookup: SecretScope['lookup'],
): SecretRead {
  const reason = notAllowed(secret, allowed);
  return reason === null ? readSecret(secret, user, lookup) : { ok: false, reason };
}

/** @returns why an agent that allows these names does not allow this one, or null */
export function notAllowed(secret: string, allowed: readonly string[]): string | null {
  const isAllowed = allowed.length === 0 || allowed.includes(secret);
  return isAllowed ? null : `${secret} is not among the "secrets" of the agent`;
}

/** Replaces texts in a tool's request; returns the same tool if it makes no request. */
export function inRequest(
  tool: ToolDefinition,
  fill: (text: string) => string,
  fillUrl: (text: string) => string = fill,
): ToolDefinition {
  const { implementation } = tool;
  if (implementation.type !== 'http') return tool;
  const headers = Object.fromEntries(Object.entries(implementation.headers).map(([name, text]) => [name, fill(text)]));
  return { ...tool, implementation: { ...implementation, url: fillUrl(implementation.url), headers } };
}

/** Every secret in a definition, with its field. */
export function secretsNamedBy(definition: AnyDefinition): { readonly name: string; readonly path: FieldPath }[] {
  const inText = (text: string, path: FieldPath): { name: string; path: FieldPath }[] =>
    [...text.matchAll(NAMED)].map(([, name = '']) => ({ name, path }));
  switch (definition.kind) {
    case 'Tool': {
      const { implementation } = definition;
      if (implementation.type === 'code') {
        return implementation.secrets.map((name, at) => ({ name, path: ['implementation', 'secrets', at] }));
      }
      if (implementation.type !== 'http') return [];
      return [
        ...inText(implementation.url, ['implementation', 'url']),
        ...Object.entries(implementation.headers).flatMap(([header, text]) =>
          inText(text, ['implementation', 'headers', header]),
        ),
      ];
    }
    case 'Agent': {
      const { engine, secrets, mcpServers } = definition;
      const choices = [engine.primary, ...engine.fallbacks];
      return [
        ...choices.flatMap(({ keySecret }, at) =>
          keySecret === null
            ? []
            : [{ name: keySecret, path: ['cognitive_engine', at === 0 ? 'primary' : 'fallback', 'api_key_secret'] }],
        ),
        ...secrets.map((name) => ({ name, path: ['environment', 'secrets'] })),
        ...(mcpServers ?? []).flatMap(({ auth }, at) =>
          auth === null ? [] : [{ name: auth, path: ['mcp_servers', at, 'auth'] }],
        ),
      ];
    }
    case 'Workflow':
      return definition.trigger.type === 'webhook'
        ? [{ name: definition.trigger.secret, path: ['trigger', 'secret'] }]
        : [];
    case 'Relic':
    case 'Skill':
    case 'Monument':
      return [];
  }
}
