import { describeWorkspace } from './levels-contract.ts';

describeWorkspace('bubblewrap');
