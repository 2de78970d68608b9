import { describe, expect, test } from 'vitest';
import { checkUrl } from '../../src/executors/outbound/address.ts';
import { settingIssues } from '../../src/settings/setting-issues.ts';

describe('[H8] settings without an effect are found, with the name, the value and an example', () => {
  test.each([
    '127.0.0.1:4000',
    'db.internal',
    'DB.Internal:5432, [::1]:80',
    'localhost:4000 10.0.0.5',
    'my_host:80',
    '[::1]',
    '',
  ])('ALLOW_HOSTS=%s is usable', (hosts) => {
    expect(settingIssues({ ALLOW_HOSTS: hosts })).toEqual([]);
    const first = hosts.toLowerCase().split(/[\s,]+/)[0] ?? '';
    const port = /:\d+$/.test(first) ? '' : ':80';
    if (first !== '') {
      expect(checkUrl(`http://${first}${port}/`, { allowHosts: hosts.split(/[\s,]+/) })).toMatchObject({ ok: true });
    }
  });

  test.each([
    ['http://127.0.0.1:24100', '"http://127.0.0.1:24100" (example: ALLOW_HOSTS=127.0.0.1:24100)'],
    ['HTTPS://crm.internal/x', '"HTTPS://crm.internal/x" (example: ALLOW_HOSTS=crm.internal)'],
    ['http://ann:pass@crm.internal:81', '"…@crm.internal:81" (example: ALLOW_HOSTS=crm.internal:81)'],
    ['127.0.0.1:4000/path', '"127.0.0.1:4000/path" (example: ALLOW_HOSTS=db.internal:5432)'],
    ['*.internal', '"*.internal"'],
    ['10.0.0.0/8', '"10.0.0.0/8"'],
    ['127.1:80', '"127.1:80"'],
    ['::1', '"::1"'],
    [':80', '":80"'],
    ['db.internal.', '"db.internal."'],
    ['db.internal:0', '"db.internal:0"'],
    ['db.internal:99999', '"db.internal:99999"'],
  ])('ALLOW_HOSTS=%s is not', (entry, found) => {
    const [issue, ...others] = settingIssues({ ALLOW_HOSTS: `a.internal, ${entry}` });
    expect(issue).toContain(`ALLOW_HOSTS must be a list of host or host:port, found ${found}`);
    expect(issue).not.toContain('pass');
    expect(others).toEqual([]);
  });

  test.each(['127.0.0.1:24200', 'localhost:24200', 'ftp://x/v1', '/v1'])('LLM_BASE_URL=%s', (url) => {
    expect(settingIssues({ LLM_BASE_URL: url })).toEqual([
      `LLM_BASE_URL "${url}" is not an HTTP(S) URL (example: LLM_BASE_URL=http://127.0.0.1:11434/v1)`,
    ]);
  });

  test('[X3] a password in a wrong LLM_BASE_URL is not shown', () => {
    expect(settingIssues({ LLM_BASE_URL: 'ann:pass@llm.example/v1' }).join('\n')).toMatch(
      /^LLM_BASE_URL "…@llm.example/,
    );
  });

  test.each(['maybe', '2', 'truee'])('DEBUG_PROMPTS=%s', (text) => {
    expect(settingIssues({ DEBUG_PROMPTS: text })).toEqual([`DEBUG_PROMPTS must be 1 or 0, found "${text}"`]);
  });

  test('the usual settings have none', () => {
    const usual = { LLM_BASE_URL: 'https://llm.example/v1', LLM_MODEL: 'm', DEBUG_PROMPTS: '1' };
    expect(settingIssues(usual)).toEqual([]);
    expect(settingIssues({})).toEqual([]);
    expect(settingIssues({ LLM_PROVIDER: 'demo', DEBUG_PROMPTS: 'Off' })).toEqual([]);
  });
});
