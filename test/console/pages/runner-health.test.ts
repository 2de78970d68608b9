/** The health of a runner, which is of another program and may be older or newer (U4). */
import { describe, expect, test } from 'vitest';
import { missingOf } from '../../../console/pages/runner-health.ts';
import type { Json } from '../../../src/client/index.ts';

describe('[U4] what a runner cannot execute', () => {
  test('is named once for each reason of a level', () => {
    const missing = { python3: 'no engine', shell: 'no engine', node: 'off' };
    expect(missingOf([{ level: 'docker', missing }, { level: 'bubblewrap', missing: {} }, { level: 'wasm' }])).toEqual([
      { level: 'docker', reason: 'no engine', interpreters: ['python3', 'shell'] },
      { level: 'docker', reason: 'off', interpreters: ['node'] },
    ]);
  });

  test.each<Json>([null, 7, 'text', true, [], {}, [null, 1, 'text', []]])('is nothing that is known: %j', (levels) => {
    expect(missingOf(levels)).toEqual([]);
  });

  test('is readable whatever the values are', () => {
    expect(missingOf([{ level: { toString: 1 }, missing: { node: { toString: 1 } } }])).toEqual([
      { level: '{"toString":1}', reason: '{"toString":1}', interpreters: ['node'] },
    ]);
    expect(missingOf([{ missing: ['off'] }])).toEqual([{ level: '', reason: 'off', interpreters: ['0'] }]);
  });
});
