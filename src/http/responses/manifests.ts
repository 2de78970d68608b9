/** Responses about the catalogue (M4). */
import * as z from 'zod';
import { MANIFEST_KINDS } from '../../domain/catalog.ts';
import { json, jsonObject } from '../../domain/event-table.ts';
import { at, flag, manifestVersion, number, text } from './members.ts';

const manifestKind = z.enum(MANIFEST_KINDS).describe('Kind of the manifest');

const manifestName = text('Name of the manifest');

export const manifest = z.looseObject({
  kind: manifestKind,
  name: manifestName,
  version: manifestVersion,
  revision: z.int().nullable().describe('Counts the changes of one name, from 1; null for a bundled manifest'),
  summary: text('What it does'),
  tags: z.array(z.string()).describe('As in the manifest'),
  common: flag('Whether it is bundled and cannot be changed'),
  updated_at: at.nullable().describe('Epoch milliseconds; null for a bundled manifest'),
  error: z.string().exactOptional().describe('Why it cannot be used'),
});

const issue = z.looseObject({
  file: text('The file'),
  line: number('Line, 1-based'),
  column: number('Column, 1-based'),
  field: text('Path of the field; empty for the whole manifest'),
  message: text('What was found and what is allowed'),
});

const manifestList = z.array(manifest).describe('The manifests');

const manifestWarnings = z.array(issue).describe('Issues that do not prevent the use');

export const manifests = z.object({ manifests: manifestList });

export const manifestDetail = manifest.extend({
  file: z.string().nullable().describe('Path of its file; null if unknown'),
  source: z.string().nullable().describe('Its source; null if unknown'),
  definition: json.describe('The loaded definition; null if it cannot be read'),
  versions: z.array(jsonObject).describe('Its revisions, with `revision`, `version` and `created_at`'),
});

export const manifestChange = manifest.extend({ warnings: manifestWarnings });

export const manifestReport = z.object({
  manifests: manifestList,
  problems: z.array(issue).describe('Issues of manifests that do not load'),
  warnings: manifestWarnings,
  skipped: z.array(issue).describe('YAML files that are not manifests, such as Compose files and settings'),
});

export const manifestCheck = manifestReport.extend({ valid: flag('True if no problems were found') });

export const manifestReplacement = manifestReport.extend({
  removed: z.array(jsonObject).describe('The removed manifests, with `kind` and `name`'),
});

const nodeId = text('`kind/name`');

export const manifestGraph = z.object({
  nodes: z
    .array(z.object({ id: nodeId, kind: manifestKind, name: manifestName, version: manifestVersion }))
    .describe('The manifests'),
  edges: z
    .array(
      z.object({
        from: nodeId,
        to: nodeId,
        how: z.enum(['import', 'feed']).describe('Whether `from` imports `to`, or has a feed from it'),
      }),
    )
    .describe('What uses what'),
});
