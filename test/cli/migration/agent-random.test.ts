/** Agents with the fields of the original and any values. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { migrated } from '../../support/migrated.ts';

const FIELDS = `persona agent user system context harness import tools files skills feeds env cognitive_engine primary
  fallback parameters provider model extra_params runtime trim tail cap compaction trigger turns max_iterations history_cap
  memory conversation max_turns environment variables env_file loop iteration_cap budgets sandbox metadata
  allowed_commands context_feeds source type action interval cache ttl enabled grade`;

const scalar = fc.constantFrom(null, true, 0, -3, 7, '', './p.md', 'text', '${X}', 'google', '*', 'exec', 'x=1');
const name = fc.constantFrom(...FIELDS.split(/\s+/));
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  ),
}));

test('[M1] any values in the fields of the original load or give issues with positions', () => {
  fc.assert(
    fc.property(fc.dictionary(name, value, { maxKeys: 8 }), (fields) => {
      const text = JSON.stringify({ kind: 'Agent', version: '1', name: 'helper', summary: 's', ...fields });
      const { catalog, problems, warnings } = migrated([{ path: 'a.yaml', text }]);
      for (const { line, column } of [...problems, ...warnings]) expect(line * column).toBeGreaterThan(0);
      expect(catalog.agent('helper') === null).toBe(problems.length > 0);
    }),
    { numRuns: 200 },
  );
});
