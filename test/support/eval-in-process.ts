/** Runs of an evaluation in the process of the test: a session of the test kit instead of a system, and a script as the model. */
import { evaluate } from '../../cli/eval/evaluate.ts';
import type { CaseResult, RunCase } from '../../cli/eval/evaluate.ts';
import type { Dataset } from '../../cli/eval/dataset.ts';
import { scriptedTexts } from '../../cli/scripted-llm/script.ts';
import type { Project } from '../../src/durable/project.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { openSession, scripted } from '../../testing/index.ts';
import type { SessionOptions, TestRun } from '../../testing/index.ts';

/** Model calls of one run at most. */
const MOST_REPLIES = 50;

/** What stands at the ports of the runtime instead of a runner and the network. */
export type Outside = Pick<SessionOptions, 'actions' | 'tools' | 'fetch' | 'allowHosts'>;

/** @param script YAML of a scripted model, which answers for all agents */
export async function evaluateInProcess(
  project: Project,
  dataset: Dataset,
  script: string,
  outside: Outside,
): Promise<CaseResult[]> {
  let now = 0;
  return await evaluate(dataset, {
    agent: dataset.agent ?? '',
    repeat: 1,
    concurrency: 1,
    run: inProcess(project, script, outside),
    askJudge: async () => {
      throw new Error('an evaluation in process has no judge');
    },
    newCode: () => '',
    now: () => (now += 1),
    done: () => undefined,
  });
}

function inProcess(project: Project, script: string, outside: Outside): RunCase {
  return async ({ agent, message, variables, history, approvals }) => {
    const textFor = scriptedTexts(script);
    const reply = ({ messages }: { readonly messages: Parameters<typeof textFor>[0] }): string => textFor(messages);
    const session = await openSession(project, {
      agent,
      variables,
      history,
      model: scripted(...Array.from({ length: MOST_REPLIES }, () => reply)),
      ...outside,
    });
    let run = await session.send(message);
    const decide = { approve: () => session.approve(), deny: () => session.deny() };
    const answer = approvals === null ? null : decide[approvals];
    if (answer !== null) while (run.status === 'waiting' && run.approvals.length > 0) run = await answer();
    if (run.status === 'waiting') {
      await session.cancel();
      run = await session.run();
    }
    return { document: documentOf(run), models: ['scripted'] };
  };
}

/** As the API shows it. */
function documentOf({ id, status, text, actions, usage, error, warnings, iterations }: TestRun): JsonObject {
  const shown = { run_id: id, session_id: null, status, response: text, actions, usage, error, warnings, iterations };
  return JSON.parse(JSON.stringify(shown)) as JsonObject;
}
