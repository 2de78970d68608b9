/** Limits that short histories reach. Imported before the engine, because some statements contain a limit. */
import { limits } from '../../src/domain/limits.ts';

Object.assign(limits, {
  approvalExpiryMs: 30_000,
  attachedTextsPerRequest: 3,
  attachmentsPerRequest: 6,
  clientToolMs: 30_000,
  forkPageBytes: 2_000,
  inlineBytes: 400,
  messageFileBytes: 4_000,
  messagePartBytes: 2_000,
  pageRows: 7,
  questionsPerAction: 3,
  queuedMessages: 2,
  readerPageBytes: 1_500,
  readerQueueBytes: 4_000,
  recoveries: 2,
  rowEvents: 4,
  rowBytes: 1_200,
  unsavedTextChars: 120,
  unsavedTextMs: 150,
  unsavedTextLaterMs: 600,
});
