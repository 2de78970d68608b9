import { describeSandbox } from '../support/sandbox-contract.ts';
import { describeWorkspace } from '../support/workspace-contract.ts';

describeSandbox('bubblewrap');
describeWorkspace('bubblewrap');
