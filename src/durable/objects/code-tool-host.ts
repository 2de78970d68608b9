/**
 * Runs the project's code tools in an invocation of its own, apart from the session's object (K2): it has its own limits
 * of the platform, and what a tool leaves behind ends with it.
 */
import { WorkerEntrypoint } from 'cloudflare:workers';
import type { ActionOutcome } from '../../domain/action.ts';
import type { CodeToolCall, CodeToolSession } from '../../domain/ports/code-tools.ts';
import { callTool, parseCall } from '../../code-tools/call-tool.ts';
import type { ToolHost } from '../../code-tools/call-tool.ts';
import { secretFor } from '../../settings/secrets.ts';
import { readSettings } from '../../settings/settings.ts';
import type { CodeToolHostRpc, CodeToolLink, Env } from '../env.ts';
import { invocationNetwork } from '../network.ts';
import { servedProject } from '../project.ts';
import { egressOf, outboundOf } from '../runner.ts';

const ADVICE: ToolHost['advice'] = {
  tool: 'deploy the project again',
  binding: () => 'add it to wrangler.toml and deploy again',
};

export class CodeToolHost extends WorkerEntrypoint<Env> implements CodeToolHostRpc {
  async parse(
    call: Pick<CodeToolCall, 'name' | 'parameters'>,
    link: Pick<CodeToolLink, 'aborted'>,
  ): Promise<ActionOutcome> {
    return await parseCall(call, { tools: servedProject().tools, advice: ADVICE }, signalOf(link));
  }

  /** @param link to the session; it is valid during the call */
  async run(call: CodeToolCall, session: CodeToolSession, link: CodeToolLink): Promise<ActionOutcome> {
    const settings = readSettings(this.env);
    const updates: Promise<void>[] = [];
    const host = {
      tools: servedProject().tools,
      env: this.env,
      secret: secretFor(this.env, session.owner, true),
      advice: ADVICE,
    };
    const network = invocationNetwork(settings);
    const egress = egressOf(this.env, settings, network, () => session);
    const outcome = await callTool(call, host, session, {
      signal: signalOf(link),
      fetch: outboundOf(settings, network, egress),
      progress: (update) => updates.push(link.progress(update)),
    });
    // what is not delivered when the call ends is lost
    await Promise.allSettled(updates);
    return outcome;
  }
}

function signalOf(link: Pick<CodeToolLink, 'aborted'>): AbortSignal {
  const abort = new AbortController();
  // Rejects if the session's host ends; then the call ends as well.
  void link.aborted().then(
    (reason) => abort.abort(new DOMException(reason, 'AbortError')),
    () => abort.abort(new DOMException('the session has gone', 'AbortError')),
  );
  return abort.signal;
}
