/** `POST /execute/tool`, `/execute/agent` and `/execute/workflow`: one call, answered when it has ended. */
import { Hono } from 'hono';
import type { Context } from 'hono';
import { EngineError } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { nearestNames } from '../../domain/nearest.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import { checkInputs } from '../../engine/workflow/workflow-inputs.ts';
import { readJson } from '../body.ts';
import { traceHeader } from '../gateway.ts';
import type { EdgeEnv, Gateway } from '../gateway.ts';
import type { ManifestHost } from '../manifest-host.ts';
import { operation } from '../openapi/describe.ts';
import { recordOf, requireWorkflow } from '../routes/workflows.ts';
import type { WorkflowHost } from '../routes/workflows.ts';
import { validate } from '../schemas.ts';
import * as answers from './answers.ts';
import { agentBody, toolBody, workflowStartBody } from './bodies.ts';
import type { CallContext } from './bodies.ts';
import { programOf } from '../tool-program.ts';
import { WORK_PATH } from './session-routes.ts';
import type { Work } from './session-routes.ts';

export function executeRoutes(gateway: Gateway, workflows: WorkflowHost, manifests: ManifestHost): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();
  const response = { response: answers.execution, run: true } as const;

  operation(app, 'POST /execute/tool', { body: toolBody, ...response }, async (c) => {
    const body = validate(toolBody, await readJson(c.req.raw));
    const { context, parameters } = body;
    const name = body.tool_name ?? body.name ?? '';
    const agent = await agentWith(name, body.agent, c.get('principal').owner);
    const session = { agent, ...sessionOf(context), kind: 'execution' } as const;
    const { session_id: id } = await gateway.createSession(c.get('principal'), session, {});
    return await work(c, id, { type: 'program', text: programOf(name, parameters, timeoutOf(context)) });
  });

  operation(app, 'POST /execute/agent', { body: agentBody, ...response }, async (c) => {
    const body = validate(agentBody, await readJson(c.req.raw));
    const agent = body.agent_name ?? body.name ?? '';
    await gateway.requireAgent(agent, c.get('principal').owner);
    const content = messageOf(body.input_data ?? body.input ?? '');
    if (content.trim() === '') throw new EngineError('invalid_request', '"input_data": a message must not be empty');
    const session = { agent, ...sessionOf(body.context), kind: 'chat' } as const;
    const { session_id: id } = await gateway.createSession(c.get('principal'), session, {});
    return await work(c, id, { type: 'message', content });
  });

  operation(app, 'POST /execute/workflow', { body: workflowStartBody, ...response }, async (c) => {
    const body = validate(workflowStartBody, await readJson(c.req.raw));
    const { owner } = c.get('principal');
    const workflow = await requireWorkflow(workflows, body.workflow_name ?? body.name ?? '', owner);
    const inputs = body.input_data ?? body.input ?? {};
    checkInputs(workflow, inputs);
    const record = recordOf(workflows, workflow.name, owner, await workflows.newSessionId());
    await workflows.create({ ...record, ...sessionOf(body.context) });
    return await work(c, record.session_id, { type: 'workflow', inputs });
  });

  /** The agent to call a tool with. @throws EngineError `unknown_manifest` if it does not import the tool */
  const agentWith = async (tool: string, given: string | undefined, owner: string | null): Promise<string> => {
    const agent = await gateway.requireAgent(given ?? 'assistant', owner);
    if (agent.tools.has(tool)) return agent.agent.name;
    if (given !== undefined) throw unknownTool(agent, tool);
    const { edges } = (await manifests.graph(owner)).graph;
    const importers = edges
      .filter(({ from, to, how }) => to === `tool/${tool}` && how === 'import' && from.startsWith('agent/'))
      .map(({ from }) => from.slice('agent/'.length));
    const [first] = importers.toSorted();
    if (first === undefined) throw unknownTool(agent, tool, true);
    return first;
  };

  const work = async (c: Context<EdgeEnv>, sessionId: string, body: Work): Promise<Response> => {
    const request = new Request(c.req.url, { method: 'POST', headers: traceHeader(c), body: JSON.stringify(body) });
    return await gateway.forward(sessionId, WORK_PATH, request, c.get('principal'));
  };

  return app;
}

/**
 * With the nearest names.
 *
 * @param isForAll whether no other agent imports the tool either
 */
function unknownTool({ agent, tools }: ResolvedAgent, name: string, isForAll = false): EngineError {
  const known = [...tools.keys()];
  const near = nearestNames(name, known).map((one) => `"${one}"`);
  const hint = near.length === 0 ? '' : `did you mean ${near.join(' or ')}? `;
  const advice = isForAll
    ? 'no other agent imports it either: add it to import.tools of an agent'
    : 'name another agent in "agent"';
  const message = `The agent "${agent.name}" imports no tool "${name.slice(0, limits.excerptChars)}" (${hint}known: ${known.join(', ') || 'none'}); ${advice}`;
  return new EngineError('unknown_manifest', message, { known });
}

/** The message of an agent call: a text, the only text of an object, or the object as JSON. */
function messageOf(input: string | JsonObject): string {
  if (typeof input === 'string') return input;
  const [only, ...others] = Object.values(input);
  return typeof only === 'string' && others.length === 0 ? only : JSON.stringify(input);
}

function sessionOf(context: CallContext): { readonly user_id: string | null; readonly metadata: JsonObject } {
  const { user_id = null, session_id, request_id } = context ?? {};
  const labels = Object.entries({ session_id, request_id }).filter(([, value]) => typeof value === 'string');
  return { user_id: user_id === '' ? null : user_id, metadata: Object.fromEntries(labels) as JsonObject };
}

/** The shorter of the given timeouts, in seconds; null without one. */
function timeoutOf(context: CallContext): number | null {
  const given = [context?.timeout_seconds, context?.resource_limits?.max_execution_time_seconds];
  const seconds = given.filter((value): value is number => typeof value === 'number');
  return seconds.length === 0 ? null : Math.min(...seconds);
}
