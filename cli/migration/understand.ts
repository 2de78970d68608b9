/**
 * Rewrites manifests of the original system (Cortex-Prime MK1 and agent-lib) into this system's forms (M1).
 * `docs/migration.md` lists the forms. Each rewritten part has a note, which becomes a warning.
 */
import type { ManifestKind } from '../../src/domain/catalog.ts';
import type { Draft } from './draft.ts';
import { understandAgent } from './agent/agent.ts';
import { understandRelic } from './relic/relic.ts';
import { understandTool } from './tool/tool.ts';
import { understandWorkflow } from './workflow/workflow.ts';

export function understand(kind: ManifestKind, draft: Draft): void {
  switch (kind) {
    case 'agent':
      return understandAgent(draft);
    case 'tool':
      return understandTool(draft);
    case 'relic':
      return understandRelic(draft);
    case 'workflow':
      return understandWorkflow(draft);
    case 'skill':
    case 'monument':
      return;
  }
}
