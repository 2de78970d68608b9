/**
 * Tests of a project's agents, without a key and without sleeping (K6): a session in the process of the test.
 *
 * ```ts
 * import { openSession, scripted, matchers } from 'cortex-edge/testing';
 * import project from '../src/project.generated.ts';
 *
 * expect.extend(matchers);
 *
 * test('the assistant looks up the order', async () => {
 *   const session = await openSession(project, {
 *     agent: 'assistant',
 *     model: scripted(
 *       '<action type="tool" name="orders" mode="async" id="o">{"customer": "ada"}</action><response final="true">$o</response>',
 *     ),
 *     tools: { orders: async ({ customer }) => ({ customer, count: 2 }) },
 *   });
 *   const run = await session.send('How many orders has Ada?');
 *   expect(run).toHaveCompleted();
 *   expect(run).toHaveCalled('orders', { customer: 'ada' });
 * });
 * ```
 */
export { assertRun } from './assert-run.ts';
export { matchers } from './matchers.ts';
export { openSession } from './open-session.ts';
export { scripted } from './scripted.ts';
export { ToolError } from '../src/code-tools/define-tool.ts';
export type { Capability } from '../src/domain/action-types.ts';
export type {
  Attachment,
  ChatMessage,
  FinishReason,
  ModelDelta,
  ModelRequest,
  ToolSummary,
  Usage,
} from '../src/domain/ports/model.ts';
export type { SeededCall } from '../src/domain/seeded.ts';
export type { OpenApproval } from '../src/engine/actions/approval-list.ts';
export type { ShownQuestion } from '../src/engine/actions/questions.ts';
export type { RunResult } from '../src/view/result.ts';
export type { PassedTool } from '../src/engine/session/passed-tools.ts';
export type { GivenFile, GivenPart, MessagePart } from '../src/policies/message-content.ts';
export type { ClientPart } from '../src/policies/openai-parts.ts';
export type { GivenMessage } from '../src/policies/seeded-history.ts';
export type { RunAssertions } from './assert-run.ts';
export type { CallContext, CallFunction } from './functions.ts';
export type { RunMatchers } from './matchers.ts';
export type { TestClock, TestSession } from './open-session.ts';
export type { SessionOptions } from './options.ts';
export type { Reply, ScriptedModel, Step } from './scripted.ts';
export type { TestAction, TestRun } from './test-run.ts';
export type { SentRequest } from './world.ts';
