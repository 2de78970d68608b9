/** Measures a model: asks the endpoint what it can do, runs the tasks, and makes the report. */
import { probeEndpoint, probeForm } from './probe.ts';
import type { Probe } from './probe.ts';
import { estimateAll } from './estimate.ts';
import { runAll } from './fluency.ts';
import type { WorkPorts } from './fluency.ts';
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
  const { grammar, tasks, repeat } = work;
  const { model, signal, tell } = ports;
  await probeEndpoint(model, signal);
  const probes = new Map<FormName, Probe>();
  for (const form of work.forms) probes.set(form, await probeForm(form, model, { grammar, signal }));
  for (const [form, { blocked }] of probes) if (blocked !== null) tell(`${form} is not measured: ${blocked}`);
  const forms = work.forms.filter((form) => probes.get(form)?.blocked === null);
  const possible = { ...work, forms };
  tell(announcement(possible));
  const { runs, omitted } = await runAll(possible, ports);
  const reports = work.forms.map((form) =>
    formReport(
      form,
      probes.get(form),
      runs.filter((run) => run.form === form),
    ),
  );
  const measured = reports.flatMap(({ form, score, runs: own }) =>
    score === null ? [] : [{ form, score, runs: own }],
  );
  const recommendation =
    measured.length === 0
      ? { form: null, protocol: null, reasons: ['No form could be measured.'] }
      : recommend(measured);
  return {
    ...subject,
    tasks: tasks.length,
    repeat,
    forms: reports,
    recommendation,
    snippet: manifestSnippet(recommendation, grammar?.parameter ?? null),
    omitted,
  };
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

function formReport(form: FormName, probe: Probe | undefined, all: readonly RunMeasures[]): FormReport {
  const runs = all.filter(({ endpointError }) => endpointError === null);
  const endpointErrors = all.flatMap(({ endpointError }) => endpointError ?? []);
  const [error] = endpointErrors;
  const isLeftOut = runs.length === 0;
  const why = probe?.blocked ?? (error === undefined ? 'the budget allowed no run' : `every run failed: ${error}`);
  return {
    form,
    unavailable: isLeftOut ? why : null,
    note: probe?.note ?? null,
    score: isLeftOut ? null : formScore(runs),
    runs,
    endpointErrors: isLeftOut ? [] : endpointErrors,
  };
}
