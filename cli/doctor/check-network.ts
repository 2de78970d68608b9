/** What answers over the network: runners, the model's endpoint, and a deployed system. */
import { randomUUID } from 'node:crypto';
import { limits as runnerLimits } from '../../container-runner/limits.ts';
import { SERVICE as RUNNER } from '../../container-runner/version.ts';
import { messageOf } from '../../src/domain/errors.ts';
import { isJsonObject, parseObject } from '../../src/domain/json.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { VERSION } from '../../src/domain/version.ts';
import { parseRunnerUrls, parseSigningKeys } from '../../src/executors/runner/list.ts';
import { tokenOf } from '../../src/executors/runner/signature.ts';
import { isPresetName, PRESETS } from '../../src/llm/providers/presets.ts';
import { shownAddress } from '../../src/llm/providers/address.ts';
import { settingIssues } from '../../src/settings/setting-issues.ts';
import { accessHeaders, readSettings } from '../../src/settings/settings.ts';
import type { Connection } from '../terminal/connection.ts';
import { found } from './finding.ts';
import type { CheckResult, Finding } from './finding.ts';
import type { Machine } from './machine.ts';
import type { ProjectFiles } from './project-files.ts';

/** A signature is valid from 10 seconds before its time to 70 seconds after it, by the runner's clock (R7). */
const EARLIEST_MS = -1_000 * runnerLimits.clockSkewSeconds;
const LATEST_MS = 1_000 * (runnerLimits.tokenSeconds + runnerLimits.clockSkewSeconds);
/** Answers of a remote system are longer than these, so they are not read to their end. */
const BODY_CHARS = 1_048_576;

export async function checkRunners({ worker }: ProjectFiles, machine: Machine): Promise<CheckResult> {
  let runners: ReturnType<typeof parseRunnerUrls>;
  try {
    runners = parseRunnerUrls(worker['RUNNER_URLS']);
  } catch {
    // The check of the settings reports it.
    return [];
  }
  if (runners.length === 0) return 'RUNNER_URLS is not set: npm start starts a runner, a deployment has none';
  return await Promise.all(runners.map(async ({ url }) => await checkRunner(url, worker, machine)));
}

async function checkRunner(url: string, worker: ProjectFiles['worker'], machine: Machine): Promise<string | Finding> {
  const shown = shownAddress(url);
  const headers = accessHeaders(worker);
  try {
    const health = await machine.fetch(`${url}/health`, { headers });
    const document = await jsonOf(health);
    if (document?.['service'] !== RUNNER) {
      return found('runner_unreachable', `${shown} answers ${health.status}, and is not a runner`);
    }
    const skew = skewOf(health, machine);
    if (skew !== null && (skew < EARLIEST_MS || skew > LATEST_MS)) {
      return found('clock_skew', `the clock of ${shown} is ${apart(skew)}`);
    }
    const [key] = parseSigningKeys(worker['RUNNER_SECRET']);
    if (key === undefined) return `${shown} answers; without RUNNER_SECRET nothing more can be asked`;
    const target = new URL(`${url}/jobs/doctor-${randomUUID()}`);
    const token = await tokenOf({ method: 'GET', url: target, body: '' }, key, randomUUID(), machine.now());
    const answer = await machine.fetch(target.href, { headers: { ...headers, authorization: `Bearer ${token}` } });
    if (answer.status === 401) return found('runner_secret_differs', `${shown} does not accept the signature`);
    const status = String(document['status']);
    if (status !== 'healthy') return found('runner_unhealthy', `${shown} is ${status}`);
    return `${shown} accepts jobs; version ${String(document['version'])}`;
  } catch (fault) {
    return found('runner_unreachable', `${shown} does not answer: ${reasonOf(fault)}`);
  }
}

export async function checkModel({ worker }: ProjectFiles, machine: Machine): Promise<CheckResult> {
  const { LLM_BASE_URL: url, LLM_MODEL: model, LLM_API_KEY: key } = worker;
  if (url !== undefined && model === undefined) {
    return found('model_incomplete', `LLM_BASE_URL is ${shownAddress(url)}, and LLM_MODEL is not set`);
  }
  const own = Object.fromEntries(Object.entries(worker).filter(([name]) => name.startsWith('LLM_')));
  const issue = modelIssueOf(own);
  if (issue !== null) return found('model_incomplete', issue, fixOfModel(issue));
  const { provider } = readSettings(own).model;
  const base = url ?? (provider != null && isPresetName(provider) ? PRESETS[provider].baseUrl : null);
  if (base === null) return provider ?? 'the demo model';
  const shown = shownAddress(base);
  try {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}`, 'x-api-key': key };
    const { status } = await machine.fetch(`${base.replace(/\/+$/, '')}/models`, { headers });
    if (status === 401 || status === 403) {
      return found(
        'model_key_refused',
        `${shown} answers ${status}${key === undefined ? '; LLM_API_KEY is not set' : ''}`,
      );
    }
    if (status >= 500) return found('model_unreachable', `${shown} answers ${status}`);
    return `${model ?? 'the default model'} at ${shown}`;
  } catch (fault) {
    return found('model_unreachable', `${shown} does not answer: ${reasonOf(fault)}`);
  }
}

function modelIssueOf(settings: ProjectFiles['worker']): string | null {
  try {
    return settingIssues(settings)[0] ?? null;
  } catch (fault) {
    return messageOf(fault);
  }
}

function fixOfModel(issue: string): string {
  const [name = 'LLM_MODEL'] = /LLM_[A-Z_]+/.exec(issue) ?? [];
  return `${name}=… in .dev.vars`;
}

/** A system that runs elsewhere, or on this machine; null means none. */
export async function checkSystem(system: Connection | null, machine: Machine): Promise<CheckResult> {
  if (system === null) return [];
  const { url: address, key } = system;
  const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` };
  try {
    const health = await machine.fetch(`${address}/health`, { headers });
    const document = await jsonOf(health);
    if (document?.['service'] !== 'cortex-edge') {
      return found('system_unreachable', `${address} answers ${health.status}, and is not a Cortex Edge`);
    }
    return [
      systemFindings(address, document),
      clockOf(address, health, machine),
      await checkKey(address, headers, key, machine),
    ].flat();
  } catch (fault) {
    return found('system_unreachable', `${address} does not answer: ${reasonOf(fault)}`);
  }
}

function systemFindings(address: string, { status, version, missing }: JsonObject): string | Finding[] {
  const parts = Array.isArray(missing) ? missing.filter(isJsonObject) : [];
  const findings = parts.map(({ part, reason }) => {
    const fix = part === 'runner' ? 'start the runner, and compare RUNNER_URLS and RUNNER_SECRET' : undefined;
    return found('system_part_missing', `${String(part)}: ${String(reason)}`, fix);
  });
  if (status !== 'healthy' && findings.length === 0) {
    findings.push(found('system_starting', `${address} is ${String(status)}`, `npx cortex doctor --url ${address}`));
  }
  if (version !== VERSION) {
    findings.push(found('system_version', `${address} has version ${String(version)}, this project ${VERSION}`));
  }
  return findings.length > 0 ? findings : `${address} is healthy, version ${VERSION}`;
}

function clockOf(address: string, health: Response, machine: Machine): Finding | [] {
  const skew = skewOf(health, machine);
  if (skew === null || (skew >= EARLIEST_MS && skew <= -EARLIEST_MS)) return [];
  return found('system_clock', `the clock of ${address} is ${apart(skew)}`);
}

async function checkKey(
  address: string,
  headers: Record<string, string>,
  key: string | null,
  machine: Machine,
): Promise<string | Finding> {
  const { status } = await machine.fetch(`${address}/agents`, { headers });
  if (status === 401) {
    const message = key === null ? `${address} requires a key` : `${address} does not know this key`;
    return found('system_key_refused', message, `npx cortex doctor --url ${address} --key <key>`);
  }
  return key === null ? 'no key is needed from here' : 'the key works';
}

/** By how much the clock that answers is ahead, in milliseconds; null if it does not say. */
function skewOf({ headers }: Response, machine: Machine): number | null {
  const date = Date.parse(headers.get('date') ?? '');
  return Number.isNaN(date) ? null : date - machine.now();
}

function apart(skew: number): string {
  const seconds = Math.round(Math.abs(skew) / 1_000);
  return `${seconds} s ${skew > 0 ? 'ahead of' : 'behind'} the clock of this machine`;
}

async function jsonOf(response: Response): Promise<JsonObject | null> {
  return parseObject((await response.text()).slice(0, BODY_CHARS));
}

/** Node's `fetch failed` hides the reason in the cause. */
function reasonOf(fault: unknown): string {
  const cause = fault instanceof Error ? fault.cause : null;
  return messageOf(cause instanceof Error && cause.message !== '' ? cause : fault);
}
