/**
 * Deliberately broken copies of the engine: realistic mistakes, each in the place that guarantees an invariant. The
 * simulation must notice each of them (../broken.test.ts).
 */
import type { Patch } from './patch.ts';
import { ACTION_PATCHES } from './patches/actions.ts';
import { BRANCH_PATCHES } from './patches/branches.ts';
import { CLIENT_PATCHES } from './patches/clients.ts';
import { CODE_TOOL_PATCHES } from './patches/code-tools.ts';
import { CONSOLE_PATCHES } from './patches/console.ts';
import { DIRECTORY_PATCHES } from './patches/directory.ts';
import { TELEMETRY_PATCHES } from './patches/telemetry.ts';
import { FILE_PATCHES } from './patches/files.ts';
import { GENERATION_PATCHES } from './patches/generations.ts';
import { IMAGE_PATCHES } from './patches/images.ts';
import { INCARNATION_PATCHES } from './patches/incarnations.ts';
import { JOURNAL_PATCHES } from './patches/journal.ts';
import { PROTOCOL_PATCHES } from './patches/protocols.ts';
import { READER_PATCHES } from './patches/readers.ts';
import { REDACTION_PATCHES } from './patches/redaction.ts';
import { RUNNER_PATCHES } from './patches/runners.ts';
import { RUN_PATCHES } from './patches/runs.ts';
import { SEEDED_PATCHES } from './patches/seeded.ts';
import { SCHEDULER_PATCHES } from './patches/scheduler.ts';
import { WORKSPACE_PATCHES } from './patches/workspace.ts';

export const PATCHES: readonly Patch[] = [
  ...ACTION_PATCHES,
  ...BRANCH_PATCHES,
  ...CLIENT_PATCHES,
  ...CODE_TOOL_PATCHES,
  ...CONSOLE_PATCHES,
  ...DIRECTORY_PATCHES,
  ...TELEMETRY_PATCHES,
  ...FILE_PATCHES,
  ...GENERATION_PATCHES,
  ...IMAGE_PATCHES,
  ...INCARNATION_PATCHES,
  ...JOURNAL_PATCHES,
  ...PROTOCOL_PATCHES,
  ...READER_PATCHES,
  ...REDACTION_PATCHES,
  ...RUN_PATCHES,
  ...RUNNER_PATCHES,
  ...SCHEDULER_PATCHES,
  ...SEEDED_PATCHES,
  ...WORKSPACE_PATCHES,
];
