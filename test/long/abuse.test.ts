/** The hostile programs of the tables that take long (R2, C7): see `container-runner/test/sandbox/abuse-*.test.ts`. */
import { describeAbuse } from '../../container-runner/test/support/abuse-table.ts';
import { describeWorkspaceAbuse } from '../../container-runner/test/support/workspace-abuse.ts';

for (const level of ['docker', 'bubblewrap'] as const) describeAbuse(level, 'long');
for (const level of ['docker', 'bubblewrap', 'wasm'] as const) describeWorkspaceAbuse(level, 'long');
