/**
 * Settings whose values have no effect, or another one than intended. `npm start` does not start with them; a deployment
 * continues to serve, and logs them. Pure.
 */
import { isAllowEntry } from '../executors/outbound/address.ts';
import { shownAddress } from '../llm/providers/address.ts';
import { modelIssue } from '../llm/routing/select.ts';
import type { AiBinding } from '../llm/providers/workers-ai.ts';
import { platformIssue } from './platform.ts';
import { parseTelemetry } from './telemetry.ts';
import { parseSwitch, readSettings } from './settings.ts';
import type { Variables } from './settings.ts';

/**
 * @param ai the Workers AI binding, if the environment has one
 * @returns a sentence for each such setting: its name, the value in short without a password, and an example
 * @throws EngineError `internal` for a setting that no system starts with
 */
export function settingIssues(env: Variables, ai: AiBinding | null = null): string[] {
  const { model, allowHosts, host } = readSettings(env);
  const issue = modelIssue(model, ai);
  const platform = platformIssue(env, host.life !== null);
  return [
    ...(issue === null ? [] : [issue]),
    ...allowHosts.filter((entry) => !isAllowEntry(entry)).map(hostIssue),
    ...(parseSwitch(env.DEBUG_PROMPTS) === null
      ? [`DEBUG_PROMPTS must be 1 or 0, found "${shownAddress(env.DEBUG_PROMPTS ?? '')}"`]
      : []),
    ...(platform === null ? [] : [platform]),
    ...parseTelemetry(env).issues,
  ];
}

/** The example is the entry that a URL stands for. */
function hostIssue(entry: string): string {
  const url = /^https?:\/\//i.test(entry) && URL.canParse(entry) ? new URL(entry) : null;
  const meant = url === null || url.hostname === '' ? 'db.internal:5432' : url.host;
  return `ALLOW_HOSTS must be a list of host or host:port, found "${shownAddress(entry)}" (example: ALLOW_HOSTS=${meant})`;
}
