/** Which judge the options of `cortex eval` choose (O3). */
import type { Client } from '../../src/client/client.ts';
import { nearestNames } from '../../src/domain/nearest.ts';
import { UsageError } from '../command.ts';
import type { CommandCall } from '../command.ts';
import { textOption } from '../option-values.ts';
import { warnIfUnencrypted } from '../terminal/connection.ts';
import { endpointUrl } from '../terminal/endpoint-url.ts';
import { visible } from '../terminal/visible.ts';
import { endpointJudge } from './endpoint-judge.ts';
import type { AskJudge } from './judge.ts';
import { agentJudge } from './system-runs.ts';

/** The shipped judge: manifests/agents/eval_judge.yaml. */
const JUDGE_AGENT = 'eval_judge';

export interface ChosenJudge {
  /** For the report: the agent, or the model and the host of its endpoint. */
  readonly label: string;
  /** Whether the judge is an agent of the system. */
  readonly isAgent: boolean;
  /**
   * @param client of the system; null only for a judge that is not an agent
   * @param signal ends what is being asked
   * @throws UsageError if the system has no such agent
   */
  asker(client: Client | null, signal: AbortSignal): Promise<AskJudge>;
}

/** @throws UsageError for options that do not fit together */
export function chosenJudge(call: CommandCall): ChosenJudge {
  const [agent, baseUrl, model] = ['judge-agent', 'judge-base-url', 'judge-model'].map((name) =>
    textOption(call, name),
  );
  if (baseUrl === undefined && model === undefined) {
    const name = agent ?? JUDGE_AGENT;
    return {
      label: `agent ${name}`,
      isAgent: true,
      asker: async (client, signal) => await agentOf(client, name, signal),
    };
  }
  if (agent !== undefined) throw new UsageError('--judge-agent excludes --judge-base-url and --judge-model');
  if (baseUrl === undefined || model === undefined) {
    throw new UsageError('a judge at an endpoint needs both --judge-base-url and --judge-model');
  }
  const url = endpointUrl('--judge-base-url', baseUrl);
  const key = call.environment['JUDGE_API_KEY'] ?? '';
  if (key !== '') warnIfUnencrypted(baseUrl, call.tell);
  const endpoint = { baseUrl, model, apiKey: key === '' ? null : key };
  return {
    label: `${visible(model)} at ${url.host}`,
    isAgent: false,
    asker: async (_client, signal) => endpointJudge(endpoint, Math.random, signal),
  };
}

async function agentOf(client: Client | null, name: string, signal: AbortSignal): Promise<AskJudge> {
  if (client === null) throw new Error('a judge that is an agent needs a system');
  const names = (await client.agents()).map((agent) => agent.name);
  if (names.includes(name)) return agentJudge(client, name, signal);
  const [near] = nearestNames(name, names);
  const advice =
    name === JUDGE_AGENT
      ? 'add its manifest (docs/evaluation.md, Judge), or use --judge-agent, or --judge-base-url and --judge-model'
      : near === undefined
        ? 'see GET /agents'
        : `did you mean "${near}"?`;
  throw new UsageError(`the dataset needs a judge, and the system has no agent "${visible(name)}": ${advice}`);
}
