/** The wire form of the plan report, shared by `plan_generated` and `POST /plan`. */
import type { EventData } from '../../domain/event.ts';
import type { PlanReport } from '../../scheduler/plan.ts';

export function planJson(report: PlanReport): EventData['plan_generated'] {
  return {
    total: report.actions.length,
    by_type: { ...report.byType },
    by_mode: { ...report.byMode },
    waves: report.waves.map((wave) => [...wave]),
    estimates: { ...report.estimates },
    critical_path: [...report.criticalPath],
    edges: report.edges.map(({ from, to }) => ({ from, to })),
  };
}
