/**
 * Runs the project's code tools in an invocation of its own, apart from the session's object (K2): it has its own limits
 * of the platform, and what a tool leaves behind ends with it.
 */
import { WorkerEntrypoint } from 'cloudflare:workers';
import type { ActionOutcome } from '../../domain/action.ts';
import { bindingIssue } from '../../domain/bindings.ts';
import type { CodeToolCall } from '../../domain/ports/code-tools.ts';
import type { SessionRecord } from '../../domain/session.ts';
import { runTool } from '../../code-tools/run-tool.ts';
import { secretFor } from '../../settings/secrets.ts';
import { readSettings } from '../../settings/settings.ts';
import type { CodeToolLink, Env } from '../env.ts';
import { servedProject } from '../project.ts';
import { egressOf, outboundOf } from '../runner.ts';

type Whose = Pick<SessionRecord, 'session_id' | 'incarnation' | 'owner' | 'user_id' | 'agent'>;

export class CodeToolHost extends WorkerEntrypoint<Env> {
  /** @param link to the session; it is valid during the call */
  async run(call: CodeToolCall, session: Whose, link: CodeToolLink): Promise<ActionOutcome> {
    const { tools } = servedProject();
    const tool = Object.hasOwn(tools, call.name) ? tools[call.name] : undefined;
    if (tool === undefined) {
      return failed('not_available', `The code of the tool "${call.name}" is not part of this deployment`);
    }
    const bindings = this.#bindings(call.bindings);
    if (typeof bindings === 'string') return failed('missing_binding', bindings);
    const read = secretFor(this.env, session.owner, true);
    const secrets: Record<string, string> = {};
    for (const name of call.secrets) {
      const secret = read(name);
      if (!secret.ok)
        return failed('missing_secret', `The tool needs a secret that is not available: ${secret.reason}`);
      secrets[name] = secret.value;
    }
    const abort = new AbortController();
    // Rejects if the session's host ends; then the call ends as well.
    void link.aborted().then(
      (reason) => abort.abort(new DOMException(reason, 'AbortError')),
      () => abort.abort(new DOMException('the session has gone', 'AbortError')),
    );
    const settings = readSettings(this.env);
    const updates: Promise<void>[] = [];
    const outcome = await runTool(tool, {
      parameters: call.parameters,
      idempotencyKey: call.idempotencyKey,
      attempt: call.attempt,
      session: {
        id: session.session_id,
        agent: session.agent,
        userId: session.user_id,
        namespace: session.owner,
      },
      secrets,
      bindings,
      signal: abort.signal,
      fetch: outboundOf(
        settings,
        egressOf(this.env, settings, () => session),
      ),
      progress: (update) => updates.push(link.progress(update)),
    });
    // what is not delivered when the call ends is lost
    await Promise.allSettled(updates);
    return outcome;
  }

  /** Only the bindings that the tool's manifest lists. @returns a message if one is missing */
  #bindings(names: readonly string[]): Readonly<Record<string, unknown>> | string {
    const found: Record<string, unknown> = {};
    for (const name of names) {
      const issue = bindingIssue(name);
      if (issue !== null) return issue;
      const value: unknown = Object.hasOwn(this.env, name) ? Reflect.get(this.env, name) : undefined;
      if (typeof value === 'string')
        return `${name} is a variable and not a binding; list secrets (TOOL_…) under "secrets"`;
      if (value === undefined) return `The Worker has no binding ${name}; add it to wrangler.toml and deploy again`;
      found[name] = value;
    }
    return found;
  }
}

function failed(code: string, message: string): ActionOutcome {
  return { ok: false, error: { code, message, retryable: false, beforeDispatch: true } };
}
