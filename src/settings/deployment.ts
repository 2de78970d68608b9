/** What this deployment's settings say about the manifests of an API key: unreachable hosts, missing secrets, no runner. */
import type { Deployment } from '../catalog/check/deployment.ts';
import { checkUrl } from '../executors/outbound/address.ts';
import { isSameEndpoint } from '../llm/providers/address.ts';
import type { AiBinding } from '../llm/providers/workers-ai.ts';
import { choiceIssue } from '../llm/routing/select.ts';
import { secretFor } from './secrets.ts';
import { readSettings } from './settings.ts';
import type { Variables } from './settings.ts';

/** A deployment that only reports models; everything else is fine. */
export function modelsOnly({ modelIssue }: Deployment): Deployment {
  const fine = (): null => null;
  return { unreachable: fine, unreachableModel: fine, modelIssue, missingSecret: fine, missingRunner: null };
}

/**
 * @param owners namespaces that the manifests may belong to; a secret is missing if none of them has it
 * @param options.ai the Workers AI binding, if the environment has one
 * @param options.runner whether the runner is known; `npm start` adds one to the settings
 */
export function deploymentOf(
  env: Variables,
  owners: readonly (string | null)[],
  { runner = true, ai = null }: { readonly runner?: boolean; readonly ai?: AiBinding | null } = {},
): Deployment {
  const { allowHosts, model, runners, hasContainers } = readSettings(env);
  const unreachable = (url: string): string | null => {
    const checked = checkUrl(url, { allowHosts });
    if (checked.ok || !URL.canParse(url)) return null;
    return `cannot be reached in this deployment: ${new URL(url).origin} ${checked.reason}`;
  };
  return {
    unreachable,
    unreachableModel: (url) => (model.baseUrl != null && isSameEndpoint(model.baseUrl, url) ? null : unreachable(url)),
    modelIssue: (choice) => choiceIssue(model, ai, choice),
    missingSecret: (name) => {
      let reason: string | null = null;
      for (const owner of owners) {
        const read = secretFor(env, owner, false)(name);
        if (read.ok) return null;
        reason ??= read.reason;
      }
      return reason;
    },
    missingRunner:
      runner && runners.length === 0 && !hasContainers
        ? 'needs a runner, but this deployment has none (RUNNER_URLS)'
        : null,
  };
}
