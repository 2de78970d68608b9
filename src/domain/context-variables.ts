/** Context variables: names that texts may use without declaring them (M5, P12). */
import type { AgentDefinition } from './manifests/agent.ts';
import type { SessionRecord } from './session.ts';

/** The home and work directory of programs in a sandbox. */
const SANDBOX_HOME = '/work';

/** The time in UTC, by the names of the variables. */
function timeVariables(now: number): Readonly<Record<string, string>> {
  const iso = new Date(now).toISOString();
  const [date = '', time = ''] = iso.slice(0, 19).split('T');
  const [year = '', month = '', day = ''] = date.split('-');
  const TIMESTAMP_UNIX = String(Math.floor(now / 1_000));
  const DATETIME = `${date} ${time}`;
  return { TIMESTAMP: iso, TIMESTAMP_UNIX, DATETIME, DATE: date, TIME: time, YEAR: year, MONTH: month, DAY: day };
}

/** The variables that are known at a time in a session. They never contain the server's environment. */
export function contextVariables(
  { name, version }: Pick<AgentDefinition, 'name' | 'version'>,
  { session_id: session, user_id: user }: Pick<SessionRecord, 'session_id' | 'user_id'>,
  now: number,
): Readonly<Record<string, string>> {
  return {
    ...timeVariables(now),
    AGENT_ID: name,
    AGENT_NAME: name,
    AGENT_VERSION: version,
    SESSION_ID: session,
    ...(user === null ? {} : { USER_ID: user, USER: user }),
    HOME: SANDBOX_HOME,
    PWD: SANDBOX_HOME,
  };
}
