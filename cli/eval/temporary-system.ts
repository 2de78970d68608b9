/**
 * A system of this machine for one evaluation (O3): the project's Worker and runner on free ports of loopback, with another
 * model, an empty state, and a key that only this process knows.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../src/domain/errors.ts';
import { EXIT, UsageError } from '../command.ts';
import type { CommandCall } from '../command.ts';
import { readInput } from '../input-file.ts';
import { textOption } from '../option-values.ts';
import { PROJECT_ROOT } from '../project/folders.ts';
import { readScript } from '../scripted-llm/script.ts';
import { startScriptedLlm } from '../scripted-llm/server.ts';
import { freePort } from '../system/services.ts';
import { settingsOf } from '../system/settings.ts';
import { startSystem } from '../system/system.ts';
import type { System } from '../system/system.ts';
import { warnIfUnencrypted } from '../terminal/connection.ts';
import type { Connection } from '../terminal/connection.ts';
import { endpointUrl } from '../terminal/endpoint-url.ts';
import { SIGNALS } from './interruption.ts';
import type { Interruption } from './interruption.ts';

export interface TemporarySystem extends AsyncDisposable {
  readonly connection: Connection;
}

/** Whether the options ask for one. @throws UsageError for options that exclude each other */
export function needsTemporarySystem(call: CommandCall): boolean {
  const [model, baseUrl, script] = ['model', 'base-url', 'script'].map((name) => textOption(call, name));
  if (script !== undefined && (model !== undefined || baseUrl !== undefined)) {
    throw new UsageError('--script is the model: it excludes --model and --base-url');
  }
  if (baseUrl !== undefined) endpointUrl('--base-url', baseUrl);
  const isTemporary = [model, baseUrl, script].some((one) => one !== undefined);
  if (isTemporary && (textOption(call, 'url') !== undefined || textOption(call, 'key') !== undefined)) {
    throw new UsageError(
      '--model, --base-url and --script start a system on this machine: they exclude --url and --key. ' +
        "The model of another system is that of its settings and of the agent's manifest",
    );
  }
  return isTemporary;
}

/**
 * @param interruption signals that it does not take end the system and the process
 * @throws UsageError for options that name no model; Error if the system does not start
 */
export async function startTemporarySystem(call: CommandCall, interruption: Interruption): Promise<TemporarySystem> {
  const script = textOption(call, 'script');
  const llm = script === undefined ? null : await startScriptedLlm(repliesOf(script));
  const stateDir = mkdtempSync(join(tmpdir(), 'cortex-eval-'));
  let system: System | null = null;
  const stop = async (): Promise<void> => {
    for (const name of SIGNALS) process.off(name, interrupted);
    await system?.stop();
    await llm?.[Symbol.asyncDispose]();
    rmSync(stateDir, { recursive: true, force: true });
  };
  const interrupted = (): void => {
    if (interruption.takesNext) return;
    void stop().finally(() => process.exit(EXIT.failed));
  };
  for (const name of SIGNALS) process.on(name, interrupted);
  try {
    const vars = modelSettings(call, settingsOf(PROJECT_ROOT, call.environment).worker, llm?.baseUrl ?? null);
    const key = randomBytes(24).toString('hex');
    call.tell(`starting a system for the evaluation, with the model ${vars['LLM_MODEL'] ?? ''} …`);
    system = await startSystem({
      port: await freePort(),
      runnerPort: await freePort(),
      stateDir,
      vars: { ...vars, API_KEYS: `eval:admin:${key}` },
      ownRunner: vars['RUNNER_URLS'] === undefined,
      progress: () => undefined,
    });
    return { connection: { url: system.url, key }, [Symbol.asyncDispose]: stop };
  } catch (fault) {
    await stop();
    throw fault;
  }
}

/**
 * The project's settings with another model. A key is sent only to the endpoint that it was given for.
 *
 * @param settings of the Worker
 * @param scriptUrl of the scripted model; null without one
 * @throws UsageError for options that name no model
 */
export function modelSettings(
  call: Pick<CommandCall, 'values' | 'environment' | 'tell'>,
  settings: Readonly<Record<string, string>>,
  scriptUrl: string | null,
): Record<string, string> {
  const { API_KEYS: _keys, ...kept } = settings;
  const { LLM_PROVIDER: provider, LLM_BASE_URL: url, LLM_API_KEY: apiKey, LLM_MODEL: _model, ...plain } = kept;
  if (scriptUrl !== null) return { ...plain, LLM_BASE_URL: scriptUrl, LLM_API_KEY: 'none', LLM_MODEL: 'scripted' };
  const model = textOption(call, 'model');
  const baseUrl = textOption(call, 'base-url');
  if (baseUrl !== undefined) {
    if (model === undefined) throw new UsageError('--base-url needs --model: the name of the model there');
    const key = call.environment['EVAL_API_KEY'] ?? '';
    if (key !== '') warnIfUnencrypted(baseUrl, call.tell);
    return { ...plain, LLM_BASE_URL: baseUrl, LLM_MODEL: model, ...(key === '' ? {} : { LLM_API_KEY: key }) };
  }
  if (provider === 'demo' || [provider, url, apiKey].every((one) => one === undefined)) {
    throw new UsageError('--model needs an endpoint: --base-url, or LLM_BASE_URL in the environment or in .dev.vars');
  }
  return { ...kept, LLM_MODEL: model ?? '' };
}

function repliesOf(file: string): ReturnType<typeof readScript> {
  const text = readInput(file);
  try {
    return readScript(text);
  } catch (fault) {
    throw new UsageError(`${file}: ${messageOf(fault)}`, { cause: fault });
  }
}
