/** The text of `npm start` names what to set and suggests a command that works as it is printed. */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { startScreen } from '../../cli/system/start-screen.ts';
import type { StartScreen } from '../../cli/system/start-screen.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';

const sandbox = { active: { python3: 'bubblewrap' }, levels: [] };
const health = {
  status: 'healthy',
  version: '9',
  executors: [],
  model: 'm at host',
  runner: { status: 'healthy', sandbox },
};

const screen = (changed: Partial<StartScreen> = {}): string =>
  stripVTControlCharacters(
    startScreen({
      url: 'http://127.0.0.1:1',
      health,
      keys: [],
      hidden: [],
      stateDir: '.cortex',
      manifests: { folders: ['manifests'], errors: 0 },
      external: null,
      ...changed,
    }),
  );

const example = (text: string): string => /Try: (.*)/.exec(text)?.[1] ?? '';

describe('[H5] the example', () => {
  test('without keys needs no key', () => {
    expect(example(screen())).toBe(
      String.raw`curl -N http://127.0.0.1:1/execute/direct -d '{"protocol_text":"<action type=\"python\" id=\"x\">{\"code\":\"print(2**64)\"}</action><response final=\"true\">$x</response>"}'`,
    );
    expect(screen()).not.toContain('CORTEX_API_KEY');
  });

  test('with keys sends one from the environment, and says how to set it; no key is printed', () => {
    const text = screen({ keys: parseApiKeys('ann:admin:the-key-of-ann@home', undefined) });
    expect(example(text)).toContain('/execute/direct -H "authorization: Bearer $CORTEX_API_KEY" -d ');
    expect(text).toContain('export CORTEX_API_KEY=<key>');
    expect(text).toContain('ann (admin, namespace home)');
    expect(text).not.toContain('the-key-of-ann');
  });
});

test('[U1] the address of the console is the first line after the title', () => {
  expect(screen()).toMatch(/is ready\n\n {2}console {3}http:\/\/127\.0\.0\.1:1\/ /);
});

describe('[H1] a runner that is not usable', () => {
  const urls = ['http://user:secret@runner.example:8790/path'];

  test.each<[string, Partial<StartScreen>, string]>([
    [
      'an external one that does not answer',
      { health: { ...health, runner: null }, external: { urls, hasSecret: true } },
      'none: the runner http://runner.example:8790 (RUNNER_URLS) does not answer; python and shell actions fail',
    ],
    [
      'several',
      { health: { ...health, runner: null }, external: { urls: [...urls, 'https://b.example'], hasSecret: true } },
      'none: each runner of RUNNER_URLS (http://runner.example:8790, https://b.example) does not answer; python and shell actions fail',
    ],
    [
      'external ones without a secret',
      { health: { ...health, runner: null }, external: { urls, hasSecret: false } },
      'none: RUNNER_URLS needs RUNNER_SECRET; python and shell actions fail',
    ],
    [
      'one that accepts no jobs',
      { health: { ...health, runner: { status: 'draining', sandbox } }, external: { urls, hasSecret: true } },
      'none: the runner http://runner.example:8790 (RUNNER_URLS) is draining; python and shell actions fail (python3: bubblewrap)',
    ],
    [
      'the own one',
      { health: { ...health, runner: { status: 'starting', sandbox: null } } },
      'none: the runner is starting; python and shell actions fail',
    ],
  ])('%s: the setting and the state are named, and the example needs no runner', (_, changed, line) => {
    const text = screen(changed);
    expect(text).toContain(`  sandbox   ${line}\n`);
    expect(text).not.toContain('secret@');
    expect(example(text)).toContain('{\\"name\\":\\"calculator\\"');
    expect(text).not.toContain('python\\"');
  });

  test('with an external runner, Ctrl-C stops one service', () => {
    expect(screen()).toContain('Ctrl-C stops both services.');
    expect(screen({ external: { urls, hasSecret: true } })).toContain('Ctrl-C stops the Worker.');
  });
});

test('[H5] all folders with manifests are named, and how many errors they have', () => {
  expect(screen()).toContain('manifests manifests/ (a change counts from the next message on)');
  const manifests = { folders: ['manifests', '../old/'], errors: 2 };
  expect(screen({ manifests })).toContain('manifests manifests/, ../old/   2 errors, see above (a change counts');
});
