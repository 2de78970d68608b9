/** Context variables in an agent's persona, resolved once per session (M5). */
import { resolveVariables } from '../catalog/variables.ts';
import type { ResolvedAgent } from '../domain/manifest.ts';
import type { SessionRecord } from '../domain/session.ts';

/**
 * The agent with `${DATE}`, `${SESSION_ID}`, `${AGENT_NAME}`, `${USER_ID}` and its own variables in
 * place. The date is the session's first day: the prompt stays the same from call to call (L4).
 */
export function personalise(resolved: ResolvedAgent, record: SessionRecord): ResolvedAgent {
  const { agent } = resolved;
  const variables = {
    ...agent.variables,
    DATE: new Date(record.created_at).toISOString().slice(0, 10),
    SESSION_ID: record.session_id,
    AGENT_NAME: agent.name,
    ...(record.user_id === null ? {} : { USER_ID: record.user_id }),
  };
  const resolve = (text: string): string => resolveVariables(text, variables);
  const persona = {
    agent: resolve(agent.persona.agent),
    user: resolve(agent.persona.user),
    examples: agent.persona.examples.map(resolve),
  };
  return { ...resolved, agent: { ...agent, persona } };
}
