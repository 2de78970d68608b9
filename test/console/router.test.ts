import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { go, href, parseRoute, setQuery } from '../../console/app/router.ts';

describe('[U3] the address of a view', () => {
  test.each<[string, string[], Record<string, string>]>([
    ['', [], {}],
    ['#/', [], {}],
    [
      '#/sessions/ses_1/runs/run_1?action=1.a&at=12',
      ['sessions', 'ses_1', 'runs', 'run_1'],
      { action: '1.a', at: '12' },
    ],
    ['#/agents/a%2Fb%3F', ['agents', 'a/b?'], {}],
    ['#/agents/%zz', ['agents', '%zz'], {}],
    ['#/a?b?c=1', ['a'], { b: '' }],
  ])('%s', (hash, path, query) => {
    const route = parseRoute(hash);
    expect(route.path).toEqual(path);
    expect(route.query).toMatchObject(query);
  });

  test.each([
    [['sessions', 'ses_1'], { at: '3', tab: undefined }],
    [['manifests', 'agent', 'a/b? #%'], {}],
    [['agents', '日本'], { q: 'a&b=c' }],
    [[], {}],
  ])('%j comes back as it was written', (path, query) => {
    const known = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
    expect(parseRoute(href(path, query))).toEqual({ path, query: known });
  });

  test('another view is an entry in the history, a detail of the same view is none', () => {
    const entries: string[] = [];
    const noted = (how: string) => (_state: unknown, _title: string, to: string) => entries.push(`${how} ${to}`);
    vi.stubGlobal('history', { pushState: noted('new'), replaceState: noted('same') });
    onTestFinished(() => void vi.unstubAllGlobals());
    go('#/sessions');
    setQuery({ tab: 'log' });
    go('#/');
    expect(entries).toEqual(['new #/sessions', 'same #/sessions?tab=log', 'new #/']);
  });
});
