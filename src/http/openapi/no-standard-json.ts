/**
 * In place of `@standard-community/standard-json` (`[alias]` in wrangler.toml). hono-openapi converts schemas with it; we convert
 * ours ourselves, and the package would bring a second version of zod into the Worker.
 */
export function toJsonSchema(): never {
  return unused();
}

export function loadVendor(): never {
  return unused();
}

function unused(): never {
  throw new Error('Schemas of routes are JSON Schemas already (src/http/openapi/describe.ts)');
}
