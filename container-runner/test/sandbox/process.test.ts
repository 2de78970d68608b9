import { describeSandbox } from '../support/sandbox-contract.ts';

describeSandbox('process');
