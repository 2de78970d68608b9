/** Documents of the original system that describe something without a program of their own (M1). */
import type { ManifestKind } from '../../../src/domain/catalog.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { quoted } from '../../../src/catalog/check/problem.ts';
import { compiledFeed, compiledTool } from './compiled-in.ts';
import { isFeedDocument } from './feed-document.ts';

/** Fields that name a program. */
const PROGRAM = ['implementation', 'executor', 'execution', 'service', 'entrypoint', 'script', 'command', 'url'];

/** Why a document is skipped, which becomes a warning; null if it is a manifest. */
export function skipReason(kind: ManifestKind, document: JsonObject): string | null {
  const { name, runtime } = document;
  if (kind !== 'tool' || typeof name !== 'string' || PROGRAM.some((field) => document[field] !== undefined))
    return null;
  if (runtime !== undefined && runtime !== 'builtin') return null;
  if (isFeedDocument(document)) {
    const advice = compiledFeed(name)?.advice ?? 'give it a runtime and an entrypoint';
    return `${quoted(name)} has no script: agent-lib compiles such a feed into its program, and it is skipped here; ${advice}`;
  }
  const known = compiledTool(name);
  return known === null
    ? null
    : `${quoted(name)} has no script: agent-lib compiles this tool into its program, and it is skipped here; ${known.advice}`;
}
