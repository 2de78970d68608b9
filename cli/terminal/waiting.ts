/** What a run waits for, and the commands that continue it. */
import type { OpenApproval, OpenCall, Session } from '../../src/client/index.ts';
import type { CommandCall } from '../command.ts';
import { commandLine } from '../project/command-line.ts';
import { textOption } from '../option-values.ts';
import { visible } from './visible.ts';

export interface Waiting {
  /** Also those of sub-agents. */
  readonly approvals: readonly OpenApproval[];
  readonly calls: readonly OpenCall[];
}

/** @returns null if it waits for nothing any more */
export async function waitingOf(session: Session, runId: string): Promise<Waiting | null> {
  const [approvals, { pending: calls = [] }] = await Promise.all([session.approvals(), session.run(runId).document()]);
  return approvals.length === 0 && calls.length === 0 ? null : { approvals, calls };
}

/** A line for each thing that the run waits for, with the command that decides it. */
export function waitingLines({ approvals, calls }: Waiting, sessionId: string, call: CommandCall): string[] {
  return [
    ...approvals.map(
      ({ approval_id: id, action_id: action, name, type, question }) =>
        `waits for ${question == null ? 'the approval of' : 'an answer to the question of'} ${visible(`${action} (${name ?? type})`)}: ${again(call, 'approve', id)}`,
    ),
    ...calls.map(
      ({ name }) => `waits for the result of the client tool ${visible(name)}: ${again(call, 'chat', sessionId)}`,
    ),
  ];
}

/** Another command for the same system. The key is not repeated. */
export function again(call: CommandCall, name: string, ...args: readonly string[]): string {
  const url = textOption(call, 'url');
  return commandLine(name, ...args, ...(url === undefined ? [] : ['--url', url]));
}
