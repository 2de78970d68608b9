/**
 * Secrets in manifests (X3): only those that begin with `TOOL_`, only in the requests of tools, only when they run,
 * and only those of the API key whose session it is, or of the operator for what came with the deployment.
 */
import type { ImportedDefinitions, ToolDefinition } from '../../domain/manifest.ts';
import { readSecret } from '../../domain/secrets.ts';
import type { SecretRead, SecretUser } from '../../domain/secrets.ts';
import type { AnyDefinition } from '../catalog.ts';
import type { FieldPath } from './problem.ts';

const NAMED = /\$\{(TOOL_[A-Z0-9_]{1,64})\}/g;

export interface SecretScope extends Omit<SecretUser, 'bundled'> {
  readonly lookup: (variable: string) => string | null;
}

/**
 * The definitions with `${TOOL_…}` in place in addresses and headers of http tools. A tool whose secret cannot be had
 * says so when it is called.
 *
 * @param allowed names that an agent allows its tools; none = what the tools name
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
      const missing: string[] = [];
      let filled = false;
      const ready = inRequest(tool, (text) =>
        text.replace(NAMED, (written, secret: string) => {
          const read: SecretRead =
            allowed.length === 0 || allowed.includes(secret)
              ? readSecret(secret, user, lookup)
              : { ok: false, reason: `${secret} is not among the "secrets" of the agent` };
          if (!read.ok) {
            missing.push(read.reason);
            return written;
          }
          filled = true;
          // what a secret holds is no text with variables in it
          return read.value.split('${').join('$${');
        }),
      );
      const { implementation } = ready;
      if (implementation.type !== 'http' || (!filled && missing.length === 0)) return [name, ready];
      // Whoever imports the operator's tool must not lead its request, and the secret in it, elsewhere.
      const sealed = shared && user.bundled && bundled?.subject !== true;
      const [reason] = missing;
      const marks = { ...(sealed ? { sealed } : {}), ...(reason === undefined ? {} : { missingSecret: reason }) };
      return [name, { ...ready, implementation: { ...implementation, ...marks } }];
    }),
  );
  return { ...definitions, tools };
}

/** A tool with its request's texts replaced; the same tool when it makes none. */
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

/** Every secret that a definition names, with its field. */
export function secretsNamedBy(definition: AnyDefinition): { readonly name: string; readonly path: FieldPath }[] {
  const inText = (text: string, path: FieldPath): { name: string; path: FieldPath }[] =>
    [...text.matchAll(NAMED)].map(([, name = '']) => ({ name, path }));
  switch (definition.kind) {
    case 'Tool': {
      const { implementation } = definition;
      if (implementation.type !== 'http') return [];
      return [
        ...inText(implementation.url, ['implementation', 'url']),
        ...Object.entries(implementation.headers).flatMap(([header, text]) =>
          inText(text, ['implementation', 'headers', header]),
        ),
      ];
    }
    case 'Agent': {
      const { engine, secrets } = definition;
      const choices = [engine.primary, ...engine.fallbacks];
      return [
        ...choices.flatMap(({ keySecret }, at) =>
          keySecret === null
            ? []
            : [{ name: keySecret, path: ['cognitive_engine', at === 0 ? 'primary' : 'fallback', 'api_key_secret'] }],
        ),
        ...secrets.map((name) => ({ name, path: ['environment', 'secrets'] })),
      ];
    }
    case 'Workflow':
      return definition.trigger.type === 'webhook'
        ? [{ name: definition.trigger.secret, path: ['trigger', 'secret'] }]
        : [];
    case 'Relic':
    case 'Monument':
      return [];
  }
}
