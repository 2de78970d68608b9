/** Measures a model: asks the endpoint what it can do, runs the tasks, and makes the report. */
import { probeEndpoint, probeForm } from './probe.ts';
import type { Probe } from './probe.ts';
import { estimateAll } from './estimate.ts';
import { runAll } from './fluency.ts';
import type { WorkEnd, WorkPorts } from './fluency.ts';
import { taskDigests } from '../tasks/digest.ts';
import type { FormName } from '../tasks/forms.ts';
import type { RunMeasures } from '../score/measure.ts';
import { manifestSnippet, recommend } from '../score/recommend.ts';
import type { FluencyReport, FormReport } from '../report/report.ts';
import { formScore } from '../score/score.ts';
import type { Work } from './work.ts';

export interface MeasurePorts extends WorkPorts {
  /** A line for people, before the runs. */
  readonly tell: (line: string) => void;
}

/**
 * @param work its forms that the endpoint cannot do are left out
 * @throws EngineError `model_unavailable` or `model_rejected` if the endpoint cannot be used at all
 */
export async function measureModel(
  work: Work,
  subject: { readonly model: string; readonly endpoint: string },
  ports: MeasurePorts,
): Promise<FluencyReport> {
  const { dataset, grammar, tasks, repeat } = work;
  const { model, signal, tell } = ports;
  await probeEndpoint(model, signal);
  const probes = new Map<FormName, Probe>();
  for (const form of work.forms) probes.set(form, await probeForm(form, model, { grammar, signal }));
  for (const [form, { blocked }] of probes) if (blocked !== null) tell(`${form} is not measured: ${blocked}`);
  const forms = work.forms.filter((form) => probes.get(form)?.blocked === null);
  const possible = { ...work, forms };
  tell(announcement(possible));
  const { runs, omitted, end } = await runAll(possible, ports);
  const reports = work.forms.map((form) =>
    formReport(
      form,
      probes.get(form),
      runs.filter((run) => run.form === form),
      end,
    ),
  );
  const measured = reports.flatMap(({ form, score, runs: own }) =>
    score === null ? [] : [{ form, score, runs: own }],
  );
  const recommendation =
    measured.length === 0
      ? { form: null, protocol: null, tasks: 0, reasons: ['No form could be measured.'] }
      : recommend(measured);
  return {
    ...subject,
    tasks: tasks.length,
    repeat,
    forms: reports,
    recommendation,
    snippet: manifestSnippet(recommendation, grammar?.parameter ?? null),
    omitted,
    end,
    endpointFailure: endpointFailure(runs, end),
    digests: taskDigests(tasks, dataset),
  };
}

/** @returns the last error if the endpoint has ended the work, or has failed all runs */
function endpointFailure(runs: readonly RunMeasures[], end: WorkEnd): string | null {
  const errors = runs.flatMap(({ endpointError }) => endpointError ?? []);
  return end === 'endpoint' || errors.length === runs.length ? (errors.at(-1) ?? null) : null;
}

function announcement(work: Work): string {
  const { tasks, forms, repeat, budget } = work;
  const { calls, tokens, cost } = estimateAll(work);
  const runs = tasks.length * forms.length * repeat;
  const price = cost === null ? '' : `, $${cost.toFixed(2)}`;
  const lacks =
    budget.tokens !== null && budget.tokens < tokens ? `; --max-tokens ${budget.tokens} ends it earlier` : '';
  return (
    `${runs} runs (${tasks.length} tasks, forms: ${forms.join(', ') || 'none'}): at least ${calls} model calls ` +
    `and about ${Math.ceil(tokens / 1_000)} thousand tokens${price}; more if the model makes mistakes${lacks}`
  );
}

/** Why a form has no run. */
const NO_RUN: Readonly<Record<WorkEnd, string>> = {
  complete: 'no task was selected',
  budget: 'the budget allowed no run',
  stopped: 'the command was stopped before its first run',
  endpoint: 'the endpoint failed before its first run',
};

function formReport(form: FormName, probe: Probe | undefined, all: readonly RunMeasures[], end: WorkEnd): FormReport {
  const runs = all.filter(({ endpointError }) => endpointError === null);
  const endpointErrors = all.flatMap(({ endpointError }) => endpointError ?? []);
  const [error] = endpointErrors;
  const isLeftOut = runs.length === 0;
  const why = probe?.blocked ?? (error === undefined ? NO_RUN[end] : `every run failed: ${error}`);
  return {
    form,
    unavailable: isLeftOut ? why : null,
    note: probe?.note ?? null,
    score: isLeftOut ? null : formScore(runs),
    runs,
    endpointErrors: isLeftOut ? [] : endpointErrors,
  };
}
