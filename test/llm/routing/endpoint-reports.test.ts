import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { EndpointReports } from '../../../src/llm/routing/endpoint-reports.ts';
import type { EndpointReport } from '../../../src/llm/routing/endpoints.ts';

const report = (model: string, more: Partial<EndpointReport> = {}): EndpointReport =>
  ({ endpoint: 'e', key: 'k', model, state: 'open', next_try_at: null, ...more }) as EndpointReport;

test('[L2] the latest report on a model counts, and a closed endpoint is no longer listed', () => {
  const reports = new EndpointReports();
  reports.record(report('a'), 0);
  reports.record(report('b'), 0);
  reports.record(report('a', { state: 'closed' }), 1);
  expect(reports.list(1).map(({ model }) => model)).toEqual(['b']);
  expect(new EndpointReports(reports.stored()).list(1)).toEqual(reports.list(1));
});

test('[L2] an open endpoint is half open when its time is over', () => {
  const reports = new EndpointReports();
  reports.record(report('a', { next_try_at: 10 }), 0);
  expect(reports.list(9)).toMatchObject([{ state: 'open' }]);
  expect(reports.list(10)).toMatchObject([{ state: 'half_open' }]);
});

test('[L2] a report expires, and the oldest reports are dropped at the limit', () => {
  const reports = new EndpointReports();
  reports.record(report('old'), 0);
  expect(reports.list(limits.endpointReportMs + 1)).toEqual([]);
  for (let n = 0; n <= limits.knownEndpoints; n += 1) reports.record(report(`m${n}`), 1);
  expect(reports.list(1)).toHaveLength(limits.knownEndpoints);
  expect(reports.list(1)[0]?.model).toBe('m1');
});
