/** The schemas of responses as JSON Schemas; all are converted when the first one is needed. */
import * as z from 'zod';
import { EVENT_SCHEMAS } from '../../domain/event-table.ts';
import * as approvals from '../responses/approvals.ts';
import * as calls from '../responses/calls.ts';
import * as common from '../responses/common.ts';
import * as manifests from '../responses/manifests.ts';
import * as memory from '../responses/memory.ts';
import * as runs from '../responses/runs.ts';
import * as sessions from '../responses/sessions.ts';
import { surfaceDocument, surfaceFrame, surfaceMessages } from '../responses/surfaces.ts';
import * as system from '../responses/system.ts';
import * as workspace from '../responses/workspace.ts';
import * as workflows from '../responses/workflows.ts';

const responses = {
  ...approvals,
  ...calls,
  ...common,
  ...manifests,
  ...memory,
  ...runs,
  ...sessions,
  surfaceDocument,
  surfaceFrame,
  surfaceMessages,
  ...system,
  ...workflows,
  ...workspace,
};

/** Schemas that are components of the document. */
const COMPONENTS: ReadonlyMap<z.ZodType, string> = new Map<z.ZodType, string>([
  [responses.problem, 'Problem'],
  [responses.sessionEvent, 'SessionEvent'],
  ...[...EVENT_SCHEMAS].map(([type, schema]) => [schema, componentName(type)] as const),
  [responses.runResult, 'RunResult'],
  [responses.session, 'Session'],
  [responses.artifact, 'Artifact'],
  [responses.approval, 'Approval'],
  [responses.openApproval, 'OpenApproval'],
  [responses.manifest, 'Manifest'],
  [responses.workspaceFile, 'WorkspaceFile'],
  [responses.fact, 'Fact'],
]);

/** `action_queued` → `ActionQueuedEvent`. */
function componentName(type: string): string {
  return `${type.replaceAll(/(?:^|_)(\w)/g, (_whole, letter: string) => letter.toUpperCase())}Event`;
}

function refTo(id: string): string {
  return `#/components/schemas/${id}`;
}

let converted: ReadonlyMap<z.ZodType, object> | null = null;

function convert(): ReadonlyMap<z.ZodType, object> {
  if (converted !== null) return converted;
  const ids = new Map([...Object.entries(responses).map(([name, schema]) => [schema, name] as const), ...COMPONENTS]);
  const registry = z.registry<{ id: string }>();
  for (const [schema, id] of ids) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { uri: refTo, io: 'input', unrepresentable: 'any' });
  converted = new Map(
    [...ids].map(([schema, id]) => {
      const { $schema: _dialect, $id: _id, ...rest } = schemas[id] ?? {};
      return [schema, rest];
    }),
  );
  return converted;
}

/** `components.schemas` of the document. */
export function componentSchemas(): Record<string, object> {
  return Object.fromEntries([...COMPONENTS].map(([schema, id]) => [id, convert().get(schema) ?? {}]));
}

/** A response's schema in the document; a component is a reference. */
export function responseSchema(schema: z.ZodType): object {
  const id = COMPONENTS.get(schema);
  return id === undefined ? (convert().get(schema) ?? {}) : { $ref: refTo(id) };
}
