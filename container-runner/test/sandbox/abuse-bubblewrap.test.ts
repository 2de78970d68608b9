import { describeAbuse } from '../support/abuse-table.ts';
import { describeWorkspaceAbuse } from '../support/workspace-abuse.ts';

describeAbuse('bubblewrap');
describeWorkspaceAbuse('bubblewrap');
