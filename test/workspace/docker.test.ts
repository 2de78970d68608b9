import { describeWorkspace } from './levels-contract.ts';

describeWorkspace('docker');
