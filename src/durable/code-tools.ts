/**
 * The code tools of the project, as one session calls them (K2).
 *
 * A tool whose host ended is suspected: suspects run one after another, so that the next death is evidence against one of
 * them only. After three deaths within an hour, a tool is set aside for the rest of the hour, or until its code changes.
 */
import { messageOf } from '../domain/errors.ts';
import { failure } from '../domain/failure.ts';
import { limits } from '../domain/limits.ts';
import type { ActionOutcome } from '../domain/action.ts';
import type { CodeToolCall, CodeTools, ToolUpdate } from '../domain/ports/code-tools.ts';
import type { SessionRecord } from '../domain/session.ts';
import { readSettings } from '../settings/settings.ts';
import type { CodeToolStates } from '../policies/tool-deaths.ts';
import type { CodeToolHostRpc, Env, Remote, StatusKinds } from './env.ts';
import { platformClock } from './platform.ts';
import { servedProject } from './project.ts';
import { statusOf } from './status.ts';

/** Shared by all objects of an isolate. */
let known: { readonly at: number; readonly states: Promise<CodeToolStates> } | null = null;
let suspect: Promise<unknown> = Promise.resolve();

/** @param loopback the Worker's own entrypoints (`ctx.exports`) */
export function codeToolsOf(env: Env, loopback: unknown, record: () => SessionRecord): CodeTools {
  const guarded = async (
    name: string,
    signal: AbortSignal,
    work: () => Promise<ActionOutcome>,
  ): Promise<ActionOutcome> => {
    const { setAside, suspects } = await statesOf(env);
    if (setAside.includes(name)) return setAsideFailure(name);
    return suspects.includes(name) ? await alone(work, signal) : await work();
  };
  return {
    parse: (call, signal) =>
      guarded(call.name, signal, () => hostOf(loopback).parse(call, { aborted: abortedBy(signal) })),
    run: (call, { signal, progress }) =>
      guarded(call.name, signal, () => {
        const { session_id, incarnation, owner, user_id, agent } = record();
        const whose = { session_id, ...(incarnation === undefined ? {} : { incarnation }), owner, user_id, agent };
        const link = { aborted: abortedBy(signal), progress: async (update: ToolUpdate) => progress(update) };
        return hostOf(loopback).run(call, whose, link);
      }),
    async lost(name) {
      const { life } = readSettings(env).host;
      await deathsOf(env).toolDied(name, {
        // The host was the life before this one.
        host: life === null ? null : life - 1,
        session: record().session_id,
      });
      known = null;
    },
  };
}

function hostOf(loopback: unknown): CodeToolHostRpc {
  const { CodeToolHost: host } = loopback as { readonly CodeToolHost?: CodeToolHostRpc };
  if (host === undefined) throw new Error('the entry of the Worker does not export CodeToolHost');
  return host;
}

function deathsOf(env: Env): Remote<StatusKinds['code-tools']> {
  return statusOf(env, 'code-tools', servedProject().version);
}

async function statesOf(env: Env): Promise<CodeToolStates> {
  const now = platformClock.now();
  if (known === null || now > known.at + limits.codeToolStateMs) known = { at: now, states: deathsOf(env).tools() };
  try {
    return await known.states;
  } catch {
    // The list protects the host; a call does not depend on it.
    known = null;
    return { setAside: [], suspects: [] };
  }
}

/** After every earlier suspect. @throws the signal's reason if it aborts meanwhile */
async function alone<T>(run: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const before = suspect;
  const { promise, resolve } = Promise.withResolvers<void>();
  suspect = before.then(() => promise);
  try {
    await before;
    signal.throwIfAborted();
    return await run();
  } finally {
    resolve();
  }
}

/** The abort of a call, as a function that the tool's invocation calls back. */
function abortedBy(signal: AbortSignal): () => Promise<string> {
  const { promise: aborted, resolve } = Promise.withResolvers<string>();
  if (signal.aborted) resolve(messageOf(signal.reason));
  else signal.addEventListener('abort', () => resolve(messageOf(signal.reason)), { once: true });
  return () => aborted;
}

function setAsideFailure(name: CodeToolCall['name']): ActionOutcome {
  const message =
    `The tool "${name}" is set aside for up to an hour: ${limits.codeToolDeaths} hosts ended while it ran. ` +
    'Correct its code and deploy again; a changed version is used at once';
  return failure('tool_set_aside', message, { beforeDispatch: true });
}
